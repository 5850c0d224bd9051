"""Neural models that cannot be read, or know too few words, and tables that they cannot read."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.toy import make_toy

from mert.settings import DecoderSettings
from mert.tuning.corpus import Corpus, check_chain
from moses_feature.doctor.examine import examine
from moses_feature.moses.ini import MosesIni
from moses_feature.runtime.errors import MosesFeatureError

SENTENCES = 40


@pytest.fixture
def system(tmp_path, monkeypatch) -> Path:
    """A system with a neural model of each kind, and its texts."""
    toy = make_toy(tmp_path, types=(), neural=1, joint=1)
    monkeypatch.chdir(tmp_path)
    Path("dev.en").write_text(SENTENCES * "a b c\n")
    Path("dev.fr").write_text(SENTENCES * "A B C\n")
    return toy.folder


def problems(said: list[str] | None = None) -> list[str]:
    say = (lambda _: None) if said is None else said.append
    found = examine("moses.ini", "dev.en", ["dev.fr"], say=say)
    return [
        f"{finding.where}: {finding.what}" for finding in found if finding.severity == "problem"
    ]


def about_models() -> list[str]:
    return [what for what in problems() if "joint0" in what or "neural0" in what]


def test_a_system_in_which_nothing_is_wrong(system):
    said = []
    assert not problems(said)
    of_text, of_reference = (
        "100.0% of the words of the text",
        "100.0% of the words of the references",
    )
    for name, known in (
        ("neural0", of_reference),
        ("joint0", f"{of_text} to translate and {of_reference}"),
    ):
        assert f"{system / name}: knows {known}" in said


@pytest.mark.usefixtures("system")
def test_models_of_other_languages():
    for path in ("dev.en", "dev.fr"):
        Path(path).write_text(SENTENCES * "x y z\n")
    found = about_models()
    assert len(found) == 3
    for name, text in (
        ("neural0", "the references"),
        ("joint0", "the text to translate"),
        ("joint0", "the references"),
    ):
        expected = f"{name}: expected a model of the language of {text}, found that it knows 0"
        assert any(expected in what for what in found)
    Path("dev.en").write_text(SENTENCES * "x|N y|N z|N\n")
    assert len(about_models()) == 2  # words with factors are not looked up


def test_models_that_a_decoder_refuses(system):
    (system / "neural0" / "model.safetensors").write_bytes(b"")
    (system / "joint0" / "target.vocab").unlink()
    found = about_models()
    assert len(found) == 2
    for what in (
        "neural0",
        "joint0",
    ):
        assert any(what in one for one in found)


def test_a_table_without_word_alignments(system):
    table = system / "table0"
    lines = [line.split(" ||| ") for line in table.read_text().splitlines()]
    table.write_text("".join(" ||| ".join([*f[:3], "", *f[4:]]) + "\n" for f in lines))
    (found,) = problems()
    assert found == f"{table}: no word alignments, which NNJM0 reads"


def test_tuning_looks_at_them_too(system):
    for path in ("dev.en", "dev.fr"):
        Path(path).write_text(SENTENCES * "A B C\n")
    corpus = Corpus.read("dev.en", ["dev.fr"])
    ini = MosesIni.read(system / "moses.ini")
    with pytest.raises(MosesFeatureError, match="0: expected a model of"):
        check_chain(ini, corpus, DecoderSettings())
