"""Raw texts: prepared for a system, and for what it reads later."""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path

import pytest
from helpers.files import read_gz

from moses_feature.api import translate
from moses_feature.building.built_text import text_of_system
from moses_feature.building.preparation import Preparation, Preparer, letters_of, oddities
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.system_directory import write_tuned

pytest.importorskip("sacremoses")

LANGUAGES = ["--source-language", "en", "--target-language", "fr"]


@pytest.fixture
def raw(tmp_path, monkeypatch):
    """Raw texts, one pair of which is of unequal lengths, and links of the others."""
    monkeypatch.chdir(tmp_path)
    Path("en").write_text("The dog’s here, isn't it?\nA cat & a dog.\nYes.\n" * 6 + "Yes\n")
    Path("fr").write_text("Le chien est là ?\nUn chat & un chien.\nOui.\n" * 6 + "oui " * 40 + "\n")
    Path("links").write_text("0-0\n0-0 1-1\n0-0\n" * 6 + "\n")


@pytest.mark.usefixtures("raw")
def test_texts_are_prepared_as_moses_prepares_them(run):
    build = ["system", "build", "en", "fr", "s", "--alignment", "links", "--order", 2]
    done = run(*build, "--raw", "--case", "lower", *LANGUAGES)
    assert "18 sentence pairs of" in done.stderr
    table = gzip.decompress(Path("s/phrase-table.gz").read_bytes()).decode()
    assert table.startswith("&amp; a ||| ") or "a cat ||| un chat ||| " in table
    text = "The dog’s here, isn't it?\n".encode()
    prepared = run("text", "prepare", "s", stdin=text).stdout
    assert prepared == "the dog &apos;s here , isn &apos;t it ?\n"
    prepared = run("text", "prepare", "s", "--side", "target", stdin=b"L'eau [x]\n").stdout
    assert prepared == "l&apos; eau &#91; x &#93;\n"
    said = run("translate", "s", stdin=b"A cat & a dog.\n").stdout
    assert translate("s", ["A cat & a dog."]) == said.splitlines()
    tokens = run("translate", "s", "--tokens", stdin=b"a cat\n").stdout
    assert translate("s", ["a cat"], as_tokens=True) == tokens.splitlines()
    raw_text = run("doctor", "s", "--source", "en", exit_code=1).stdout
    assert "raw text is prepared by moses-feature text prepare s)\n" in raw_text
    described = run("describe", "s").stdout
    assert re.search("built of +en and fr\n", described)
    assert re.search("of these +18 sentence pairs with", described)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ẹ́kọ́ jẹ́ dára.", "ẹ́kọ́ jẹ́ dára ."),
        ("ˈfəʊ̯nə, t͡ʃ", "ˈfəʊ̯nə , t͡ʃ"),
        ("ភាសា ខ្មែរ", "ភាសា ខ្មែរ"),
        ("မြန်မာ စာ", "မြန်မာ စာ"),
        ("e\u0301te\u0301", "été"),
        ("see http://a.b/c?x=1&y=2|3, now", "see http://a.b/c?x=1&amp;y=2&#124;3 , now"),
        ("(me.you@x-y.org) @home", "( me.you@x-y.org ) @ home"),
        ("www.foo.com.", "www.foo.com ."),
        ("http://x.org/a,http://y.org/b", "http://x.org/a , http://y.org/b"),
        ('<a href="http://x.org/a">', "&lt; a href = &quot; http://x.org/a &quot; &gt;"),
        ("https://es.x.org/Perú/é=á.", "https://es.x.org/Perú/é=á ."),
        ("ftp://x.org/a", "ftp://x.org/a"),
        ("http://x.org/a看", "http://x.org/a 看"),
        ("awww.that", "awww.that"),
    ],
)
def test_letters_keep_their_marks_and_addresses_stay_whole(text, expected):
    assert Preparer(Preparation("es", "keep"))(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n'a nda’hi, he'i.", "n&apos;a nda&apos;hi , he&apos;i ."),
        ("'he'i' 'a", "&apos; he&apos;i &apos; &apos; a"),
        ("k'a'b'o ndak'a'b'o", "k&apos;a&apos;b&apos;o ndak&apos;a&apos;b&apos;o"),
        ("e̱t'o yo'e̱", "e̱t&apos;o yo&apos;e̱"),
        ("http://a.b/c it'e", "http://a.b/c it&apos;e"),
        ("m+k+ p+t+kai, nunutsi.", "m+k+ p+t+kai , nunutsi ."),
        ("t+'+ri 'iki hik+'", "t+&apos;+ri &apos; iki hik+ &apos;"),
        ("e̱+k_e 1+1 a * b", "e̱+k_e 1+1 a * b"),
    ],
)
def test_symbols_are_letters_where_there_are_no_rules(text, expected):
    assert Preparer(Preparation("hch", "keep", letters="'+_"))(text) == expected


def test_which_symbols_are_letters(tmp_path):
    """Those that often stand between letters, with or without marks, and not now and then."""
    path = tmp_path / "text"
    path.write_text(50 * "m+k+ hik+ e̱+a, (he'i) y/o a-b a[a]a.\n" + 70 * "a:b:\n" + "a~b 1*2\n")
    assert letters_of(str(path), "hch") == "'+:"
    assert letters_of(str(path), "es") == ""
    said = [*oddities(str(path), "hch", "'+:")]
    assert said[1].endswith("as they often stand between letters: + :")
    path.write_text("a*b\n" + 200 * "* a\n")
    assert letters_of(str(path), "hch") == "'"


@pytest.mark.usefixtures("raw")
def test_unknown_words_are_spelt_like_known_ones(run):
    build = ["system", "build", "en", "fr", "s", "--alignment", "links", "--order", 2]
    run(*build, "--raw", *LANGUAGES)
    prepared = run("text", "prepare", "s", stdin=b"A cat & a hhere heree chien.\n")
    assert prepared.stdout == "a cat &amp; a here here chien .\n"
    assert "2 unknown words were spelt like near known ones, such as hhere like here" in (
        prepared.stderr
    )
    assert "unknown words spelt like near known ones" in run("describe", "s").stdout
    side = run("text", "prepare", "s", "--side", "target", stdin=b"chienn\n").stdout
    assert side == "chienn\n"
    assert translate("s", ["heree"]) == translate("s", ["here"])
    Path("tuned").mkdir()
    MosesIni.read("s/moses.ini").write(Path("tuned/moses.ini"))
    write_tuned(Path("tuned"), Path("s"), [], None, 1, {})
    assert run("text", "prepare", "tuned", stdin=b"heree\n").stdout == "here\n"
    Path("s/text.target.gz").unlink()
    refused = run("text", "prepare", "s", stdin=b"a\n", exit_code=1).stderr
    assert "text.target.gz: expected the text of the system, found none" in refused


def test_systems_of_before_prepare_as_they_did():
    assert Preparer(Preparation("es", "keep", protects=False))("jẹ́ a@b.c") == "jẹ ́ a @ b.c"


def test_a_byte_order_mark_is_no_word():
    assert Preparer(Preparation("es", "keep"))("\ufeffhola .") == "hola ."


def test_what_is_odd_about_raw_texts(tmp_path):
    (tmp_path / "tar").write_text("bi'chígi ko\nnapu\nbi’a\n")
    (tmp_path / "th").write_text("สวัสดีครับ\n")
    (tmp_path / "es").write_text("hola\n")
    [said] = oddities(str(tmp_path / "tar"), "tar", "'")
    assert "no rules for the language 'tar'" in said
    assert "(2 lines)" in said
    assert [*oddities(str(tmp_path / "es"), "es", "")] == []
    [said] = oddities(str(tmp_path / "es"), "ES-mx", "'")
    assert "(expected a code such as es): abbreviations are those of English" in said
    assert "apostrophes" not in said
    [said] = oddities(str(tmp_path / "th"), "es", "")
    assert "Thai letters: this script has no spaces" in said


@pytest.mark.usefixtures("raw")
def test_a_truecaser_is_trained_on_the_text(run):
    build = ["system", "build", "en", "fr", "s", "--alignment", "links", "--order", 2]
    run(*build, "--raw", "--case", "truecase", *LANGUAGES)
    prepared = run("text", "prepare", "s", stdin=b"A cat & THE Dog\n").stdout
    assert prepared == "a cat &amp; THE dog\n"


@pytest.mark.usefixtures("raw")
def test_more_text_is_prepared_like_the_target_text(run):
    Path("more").write_text("A New Word, there!\n" * 3)
    build = ["system", "build", "en", "fr", "s", "--alignment", "links", "--order", 2]
    run(*build, "--raw", *LANGUAGES, "--lm-text", "more")
    content = read_gz(Path("s/lm.arpa.gz"))
    assert b"\tword ,\n" in content
    assert b"Word" not in content
    (prepared,) = text_of_system(Path("s"), None).model_texts
    assert read_gz(Path(prepared)) == b"a new word , there !\n" * 3


@pytest.mark.usefixtures("raw")
def test_errors(run, monkeypatch):
    build = ["system", "build", "en", "fr", "s", "--alignment", "links", "--order", 2]
    assert "--raw needs --source-language" in run(*build, "--raw", exit_code=2).stderr
    assert "are for --raw" in run(*build, *LANGUAGES, exit_code=2).stderr
    Path("en").write_bytes(Path("en").read_bytes().replace(b"cat", b"c\xe4t"))
    assert "en at line 2: expected UTF-8" in run(*build, "--raw", *LANGUAGES, exit_code=1).stderr
    assert not Path("s/phrase-table.gz").exists()
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    assert "raw text needs a package" in run(*build, "--raw", *LANGUAGES, exit_code=1).stderr


@pytest.mark.usefixtures("raw")
def test_a_system_of_prepared_texts_prepares_nothing(run):
    for name in ("en", "fr"):
        Path(name).write_text("".join(Path(name).read_text().splitlines(keepends=True)[:18]))
    Path("links").write_text("".join(Path("links").read_text().splitlines(keepends=True)[:18]))
    run("system", "build", "en", "fr", "s", "--alignment", "links", "--order", 2)
    assert "raw" in run("text", "prepare", "s", stdin=b"a\n", exit_code=1).stderr


@pytest.mark.usefixtures("raw")
def test_files_of_a_system_are_those_that_were_built(run):
    """A missing one is built again, to the byte; a changed one is named, by the doctor too."""
    build = ["system", "build", "en", "fr", "s", "--alignment", "links", "--order", 2]
    build += ["--raw", "--case", "truecase", *LANGUAGES]
    run(*build)
    assert "is built already" in run(*build).stderr
    table, truecaser = Path("s/phrase-table.gz"), Path("s/truecase.source")
    whole = gzip.decompress(table.read_bytes())
    table.unlink()
    assert "phrase-table.gz is missing, and built again" in run(*build).stderr
    assert gzip.decompress(table.read_bytes()) == whole
    for name in ("text.source.gz", "truecase.source", "text.target.gz", "preparation.json"):
        file = Path("s", name)
        read = read_gz if file.suffix == ".gz" else Path.read_bytes
        content = read(file)
        file.unlink()
        assert f"{name} is missing, and built again" in run(*build).stderr
        assert read(file) == content
    assert "is built already" in run(*build).stderr
    table.write_bytes(table.read_bytes()[:-9])
    refused = run(*build, exit_code=1).stderr
    assert "s/phrase-table.gz: expected the file that was built, found" in refused
    table.unlink()
    run(*build)
    trained = truecaser.read_bytes()
    for content, said in (
        (trained[:-5], "bytes, and"),
        (trained[:-2] + b"zz", "another file of the same size"),
        (None, "expected the truecaser of the system, found none"),
    ):
        truecaser.unlink()
        if content is not None:
            truecaser.write_bytes(content)
        for words in ("translate s", "text prepare s", "doctor s"):
            told = run(*words.split(), stdin=b"A cat.\n", exit_code=1)
            expected = "no such file" if content is None and "doctor" in words else said
            assert expected in told.output
