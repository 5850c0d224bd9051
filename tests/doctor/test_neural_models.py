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
    """A system with two neural language models, and its texts."""
    toy = make_toy(tmp_path, types=(), neural=2, operations=True)
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
    return [what for what in problems() if "neural" in what]


def test_a_system_in_which_nothing_is_wrong(system):
    said = []
    assert not problems(said)
    for name in ("neural0", "neural1"):
        assert f"{system / name}: knows 100.0% of the words of the references" in said


@pytest.mark.usefixtures("system")
def test_models_of_other_languages():
    for path in ("dev.en", "dev.fr"):
        Path(path).write_text(SENTENCES * "x y z\n")
    found = about_models()
    assert len(found) == 2
    expected = ": expected a model of the language of the references, found that it knows 0"
    assert all(expected in what for what in found)
    Path("dev.fr").write_text(SENTENCES * "x|N y|N z|N\n")
    assert not about_models()  # words with factors are not looked up


def test_models_that_a_decoder_refuses(system):
    (system / "neural0" / "model.safetensors").write_bytes(b"")
    (system / "neural1" / "words.vocab").unlink()
    found = about_models()
    assert len(found) == 2
    assert all(any(name in one for one in found) for name in ("neural0", "neural1"))


def test_a_table_without_word_alignments(system):
    table = system / "table0"
    lines = [line.split(" ||| ") for line in table.read_text().splitlines()]
    table.write_text("".join(" ||| ".join([*f[:3], "", *f[4:]]) + "\n" for f in lines))
    (found,) = problems()
    assert found == f"{table}: no word alignments, which OSM0 reads"


def test_tuning_looks_at_them_too(system):
    Path("dev.fr").write_text(SENTENCES * "x y z\n")
    corpus = Corpus.read("dev.en", ["dev.fr"])
    ini = MosesIni.read(system / "moses.ini")
    with pytest.raises(MosesFeatureError, match="0: expected a model of"):
        check_chain(ini, corpus, DecoderSettings())
