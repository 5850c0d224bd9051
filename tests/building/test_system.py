"""Systems built from texts: read by the decoder and the doctor, killed and continued, refused."""

from __future__ import annotations

import gzip
import importlib.util
import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.files import read_gz

from moses_feature.building import system as module
from moses_feature.building.alignment import SEVERAL
from moses_feature.building.built_text import text_of_system
from moses_feature.building.settings import BuildSettings
from moses_feature.building.system import BuildData, build
from moses_feature.cli.tuning.decode import mert_decode
from moses_feature.doctor.examine import examine
from moses_feature.runtime.errors import FormatError, MosesFeatureError, UsageError

needs_aligner = pytest.mark.skipif(
    importlib.util.find_spec("thot") is None, reason="needs sil-thot"
)
WORDS = ["the", "dog", "sees", "a", "cat", "big", "&apos;s", "house", "runs", "to", "é"]
FILES = ["phrase-table.gz", "reordering-table.wbe-msd-bidirectional-fe.gz", "lm.arpa.gz"]


@pytest.fixture
def texts(tmp_path, monkeypatch) -> Path:
    """Texts whose words translate one by one, and their links."""
    monkeypatch.chdir(tmp_path)
    choose = random.Random(2)
    lines = [[choose.choice(WORDS) for _ in range(choose.randint(2, 8))] for _ in range(90)]
    Path("en").write_text("".join(f"{' '.join(line)}\n" for line in lines))
    Path("fr").write_text("".join(f"{' '.join(w.upper() for w in line)}\n" for line in lines))
    links = (" ".join(f"{n}-{n}" for n in range(len(line))) for line in lines)
    Path("links").write_text("".join(f"{line}\n" for line in links))
    return tmp_path


def read(path: Path) -> bytes:
    return read_gz(path) if path.suffix == ".gz" else path.read_bytes()


def decode(*words: str, text: str) -> list[str]:
    with Path(text).open("rb") as source:
        done = CliRunner().invoke(mert_decode, words, input=source)
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


@pytest.mark.usefixtures("texts")
def test_a_system_translates_and_nothing_is_wrong_with_it(run):
    done = run("system", "build", "en", "fr", "s", "--alignment", "links", "--order", 3)
    assert "90 sentence pairs of" in done.stderr
    assert "mert-tune s/moses.ini" in done.stderr
    found = list(examine("s/moses.ini", "en", ["fr"], most_lines=None))
    assert not [str(f) for f in found if f.severity == "problem"]
    assert "phrase-table.gz: 4 notes" in run("doctor", "s/phrase-table.gz").stdout
    assert decode("s/moses.ini", text="en") == Path("fr").read_text().splitlines()
    content = json.loads(Path("s/system.json").read_text())
    assert content["sentences"] == 90
    assert content["settings"]["order"] == 3
    assert [of["path"] for of in content["inputs"]] == ["en", "fr"]
    assert read_gz(Path("s/aligned.given.gz")).decode() == Path("links").read_text()
    assert Path("s/lex.e2f").read_text().splitlines()[0].split()[2] == "1.0000000"
    again = run("system", "build", "en", "fr", "s", "--alignment", "links", "--order", 3)
    assert "s is built already: nothing was done" in again.stderr
    assert "90 sentence pairs of" in again.stderr


def test_a_killed_build_goes_on_to_the_same_bytes(texts, monkeypatch):
    data = BuildData("en", "fr", "links")
    build(data, BuildSettings(order=2), Path("whole"))
    names = sorted(p.relative_to("whole") for p in Path("whole").rglob("*") if p.is_file())
    killed_after = 0
    while True:
        count = 0

        def fails(*given, before=module.open_output, **options):
            nonlocal count
            count += 1
            if count > 1:
                raise KeyboardInterrupt
            return before(*given, **options)

        monkeypatch.setattr(module, "open_output", fails)
        try:
            build(data, BuildSettings(order=2), Path("parts"))
            break
        except KeyboardInterrupt:
            killed_after += 1
            assert not Path("parts/system.json").exists()
        finally:
            monkeypatch.undo()
            monkeypatch.chdir(texts)
        assert killed_after < 30
        if killed_after > 3:
            build(data, BuildSettings(order=2), Path("parts"))
            break
    assert killed_after > 2
    for name in names:
        if name.name == "system.json":  # it names directory and time
            continue
        one, other = (Path(folder) / name for folder in ("whole", "parts"))
        assert one.read_bytes() == other.read_bytes(), name


@pytest.mark.usefixtures("texts")
def test_other_builds_and_directories_are_refused():
    data = BuildData("en", "fr", "links")
    build(data, BuildSettings(order=2), Path("s"))
    with pytest.raises(UsageError, match="build with other settings: expected order 3, found orde"):
        build(data, BuildSettings(order=3), Path("s"))
    Path("links").write_text(Path("links").read_text().replace("0-0", "", 1))
    with pytest.raises(UsageError, match="build with other inputs: expected alignment"):
        build(data, BuildSettings(order=2), Path("s"))
    Path("full").mkdir()
    Path("full/x").write_text("")
    with pytest.raises(UsageError, match="full: expected a new or empty directory, found x"):
        build(data, BuildSettings(), Path("full"))


BAD = [
    ("en", lambda text: text + "one more\n", "fr.*expected|expected.*fr|91|lines"),
    (
        "en",
        lambda text: text.replace("dog", "do|g", 1),
        r"en at line \d+: expected words witho",
    ),
    (
        "fr",
        lambda text: text.replace("DOG", "D\x01G", 1),
        r"fr at line \d+: expected words with",
    ),
    (
        "en",
        lambda text: text.replace("dog", "<s>", 1),
        r"expected words that do not mark",
    ),
    (
        "links",
        lambda text: text + "0-0\n",
        "links: expected 90 lines, as the texts have",
    ),
    ("links", lambda text: text.partition("\n")[2], "links( at line|: expected 90 lines)"),
    (
        "links",
        lambda text: text.replace("1-1", "1-91", 1),
        r"links at line \d+: expected links",
    ),
    (
        "links",
        lambda text: text.replace("1-1", "1:1", 1),
        r"links at line \d+: expected word",
    ),
    ("en", lambda text: "\n" * text.count("\n"), "en: expected sentence pairs, found none"),
    ("fr", lambda _: Path("en").read_text(), "fr: expected translations, found the same sentences"),
    ("fr", lambda text: f"\ufeff{text}", "fr at line 1: expected text, found a byte order mark"),
]


@pytest.mark.usefixtures("texts")
@pytest.mark.parametrize(("name", "damage", "message"), BAD)
def test_bad_texts(name, damage, message):
    path = Path(name)
    path.write_text(damage(path.read_text()))
    with pytest.raises(MosesFeatureError, match=message):
        build(BuildData("en", "fr", "links"), BuildSettings(order=2), Path("s"))
    assert not Path("s/system.json").exists()
    assert not Path("s/phrase-table.gz").exists()


@pytest.mark.usefixtures("texts")
def test_pairs_that_are_left_out(run):
    """Their lines of the alignment stay, so that it is still that of the texts."""
    en, fr, links = (Path(name).read_text().splitlines() for name in ("en", "fr", "links"))
    en[3], links[3] = "", ""
    fr[5] = " ".join(["X"] * 12)
    Path("en").write_text("".join(f"{line}\n" for line in en))
    Path("fr").write_text("".join(f"{line}\n" for line in fr))
    Path("links").write_text("".join(f"{line}\n" for line in links))
    done = run("system", "build", "en", "fr", "s", "--alignment", "links", "--max-length", 10)
    assert "88 sentence pairs" in done.stderr
    assert "(left out: 1 empty and 1 too long)" in done.stderr
    links[5] = ""
    assert read_gz(Path("s/aligned.given.gz")).decode().splitlines() == links


@pytest.mark.usefixtures("texts")
def test_documents_of_another_text():
    Path("documents").write_text("a\n")
    data = BuildData("en", "fr", "links", documents="documents")
    with pytest.raises(FormatError, match="documents: expected 90 lines, as the text has"):
        build(data, BuildSettings(order=2), Path("s"))


@pytest.mark.usefixtures("texts")
def test_documents_are_remembered():
    Path("documents").write_text("a\nb\nc\n" * 30)
    build(BuildData("en", "fr", "links", documents="documents"), BuildSettings(order=2), Path("s"))
    assert text_of_system(Path("s"), None).files.documents == "documents"
    Path("documents").write_text("a\nb\nd\n" * 30)
    with pytest.raises(MosesFeatureError, match="documents: expected the text that the system was"):
        text_of_system(Path("s"), None)
    assert text_of_system(Path("s"), "documents").files.documents == "documents"
    Path("documents").unlink()
    with pytest.raises(MosesFeatureError, match=r"documents: expected the text .* no such file"):
        text_of_system(Path("s"), None)


def test_a_given_model_and_no_reordering(run, texts):
    run("system", "build", "en", "fr", "one", "--alignment", "links", "--order", 2)
    with gzip.open("one/lm.arpa.gz") as model:
        Path("lm").write_bytes(model.read())
    words = ("--alignment", "links", "--lm", "lm", "--reordering", "none")
    run("system", "build", "en", "fr", "two", *words)
    ini = Path("two/moses.ini").read_text()
    assert f"path={texts / 'lm'} order=2" in ini
    assert "LexicalReordering" not in ini
    assert not Path("two/lm.arpa.gz").exists()
    assert decode("two/moses.ini", text="en") == Path("fr").read_text().splitlines()
    more = ("--lm", "lm", "--lm-text", "fr")
    assert (
        "not with --lm-text" in run("system", "build", "en", "fr", "x", *more, exit_code=2).output
    )


@pytest.mark.usefixtures("texts")
def test_an_operation_sequence_model(run):
    run("system", "build", "en", "fr", "s", "--alignment", "links", "--osm")
    line = "OpSequenceModel name=OpSequenceModel0 num-features=5 path=operations.arpa.gz\n"
    assert line in Path("s/moses.ini").read_text()
    operations = read_gz(Path("s/operations.arpa.gz"))
    assert b"\t_TRANS_" in operations
    assert decode("s/moses.ini", text="en") == Path("fr").read_text().splitlines()
    run("doctor", "s")


@pytest.mark.usefixtures("texts")
@pytest.mark.parametrize("word", [b"<s>", b"</s>", b"<unk>", b"a\x01"])
def test_words_that_no_language_model_can_hold(run, word):
    Path("more").write_bytes(b"fine |\nc %b a\n" % word)
    words = ("--alignment", "links", "--lm-text", "more")
    failed = run("system", "build", "en", "fr", "s", *words, exit_code=1)
    assert "more at line 2: expected words" in failed.stderr


@pytest.mark.usefixtures("texts")
def test_several_alignments_are_as_the_text_several_times(run):
    links = Path("links").read_text().splitlines()
    fewer = [" ".join(line.split()[1:]) for line in links]
    both = "".join(f"{one}\t{other}\n" for one, other in zip(links, fewer, strict=True))
    Path("both").write_text(both)
    for text in ("en", "fr"):
        Path(f"{text}.twice").write_text(2 * Path(text).read_text())
    Path("links.twice").write_text("".join(f"{line}\n" for line in [*links, *fewer]))
    run("system", "build", "en", "fr", "several", "--alignment", "both", "--osm")
    run("system", "build", "en.twice", "fr.twice", "twice", "--alignment", "links.twice")
    run("system", "build", "en", "fr", "one", "--alignment", "links", "--osm")
    for name in ("phrase-table.gz", FILES[1], "lex.e2f", "lex.f2e"):
        same, other = (read(Path(of, name)) for of in ("twice", "one"))
        assert read(Path("several", name)) == same != other
    for name in ("lm.arpa.gz", "operations.arpa.gz"):
        assert read(Path("several", name)) == read(Path("one", name))
    assert read_gz(Path("several/aligned.given.gz")).decode() == both


@pytest.mark.usefixtures("texts")
def test_pairs_that_are_left_out_have_as_many_alignments(run):
    links = Path("links").read_text().splitlines()
    Path("both").write_text("".join(f"{of}\t{of}\n" for of in links))
    en = Path("en").read_text().splitlines()
    Path("en").write_text("".join(f"{line}\n" for line in [*en[:3], " ".join("x" * 30), *en[4:]]))
    words = "--alignment", "both", "--order", 2, "--max-length", 20
    run("system", "build", "en", "fr", "s", *words)
    written = read_gz(Path("s/aligned.given.gz")).decode().splitlines()
    assert written[3] == "\t"
    assert written[4] == f"{links[4]}\t{links[4]}"


@pytest.mark.usefixtures("texts")
def test_lines_have_as_many_alignments(run):
    first, rest = Path("links").read_text().split("\n", 1)
    Path("odd").write_text(f"{first}\n\t{rest}")
    failed = run("system", "build", "en", "fr", "s", "--alignment", "odd", exit_code=1)
    assert (
        "odd at line 2: expected as many alignments, with tabs between them, as above: 1, found 2"
        in failed.stderr
    )


@needs_aligner
@pytest.mark.usefixtures("texts")
def test_small_texts_are_aligned_in_several_ways(run):
    reported = []
    data, settings = BuildData("en", "fr"), BuildSettings()
    build(data, settings, Path("small"), report=lambda *of: reported.append(of))
    shares = [share for task, share in reported if task == "aligning words"]
    assert shares[0] == 0
    assert shares[-1] <= 1
    assert shares == sorted(shares)
    run("system", "build", "en", "fr", "once", "--aligner", "eflomal")
    several = read_gz(Path("small/aligned.several.gz")).decode().splitlines()
    assert {line.count("\t") + 1 for line in several} == {len(SEVERAL)}
    once = read_gz(Path("once/aligned.grow-diag-final-and.gz")).decode().splitlines()
    assert [line.split("\t")[0] for line in several] == once


@pytest.mark.usefixtures("texts")
def test_links_that_give_no_phrase_are_refused(run):
    Path("links").write_text("\n" * 90)
    failed = run("system", "build", "en", "fr", "s", "--alignment", "links", exit_code=1)
    assert "s/aligned.given.gz: expected links from which phrases are extracted" in failed.stderr
    assert not Path("s/phrase-table.gz").exists()


@pytest.mark.usefixtures("texts")
def test_more_text_for_the_model(run):
    Path("more").write_text("NEW WORDS HERE\n" * 3)
    run("system", "build", "en", "fr", "s", "--alignment", "links", "--lm-text", "more")
    assert b"\tNEW WORDS\t" in read_gz(Path("s/lm.arpa.gz"))


@pytest.mark.usefixtures("texts")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--folds", 2), "It is gone: augment-phrase-table --system"),
        (("--phrase-length", 128), "128 is not in the range"),
        (("--case", "keep"), "--target-language and --case are for --raw"),
        (("--alignment", "none"), "none: No such file"),
    ],
)
def test_bad_options(run, words, said):
    code = 1 if said.startswith("none") else 2
    assert said in run("system", "build", "en", "fr", "s", *words, exit_code=code).output
    assert not Path("s/build.json").exists()
