"""Models of CTranslate2: the scores of our own network, other people's text, what goes wrong."""

from __future__ import annotations

import json
import shutil
from errno import ENOSPC
from pathlib import Path

import numpy as np
import pytest
from helpers.models import random_model

from moses_feature.moses.words import WordOptions
from moses_feature.networks.files import is_ctranslate2
from moses_feature.networks.pair_network import network_of
from moses_feature.networks.pieces import learn_pieces
from moses_feature.phrases.model import PhraseModel, save_model
from moses_feature.rescoring import ctranslate2 as module
from moses_feature.rescoring.ctranslate2 import CTranslate2Model, TooManyPiecesError
from moses_feature.rescoring.features import named_model, scorers_of
from moses_feature.rescoring.source import SourceText
from moses_feature.runtime.errors import FormatError, MosesFeatureError
from moses_feature.sentences.scorer import SentenceModel
from moses_feature.transformer.settings import TransformerSizes

pytest.importorskip("ctranslate2")

SIZES = TransformerSizes(units=16, heads=2, inner=24, encoder_layers=2, decoder_layers=2)
SOURCE = ["a man walks in the park", "the dog 's house", "漢字 ▁ x"]
TARGET = ["un homme marche dans le parc", "l &apos; homme", "la maison du chien", "", "é ▁ 漢"]


def words(text: str) -> list[bytes]:
    return text.encode().split()


@pytest.fixture
def model(tmp_path: Path) -> SentenceModel:
    source = learn_pieces([text.encode() for text in SOURCE] * 9, 300, "source")
    target = learn_pieces([text.encode() for text in TARGET] * 9, 303, "target")
    network = network_of(SIZES, len(source), len(target))
    weights = random_model(SIZES, scale=0.3).network.state_dict()
    for name, parameter in network.state_dict().items():
        parameter.copy_(weights[name] if parameter.shape == weights[name].shape else 0)
        if name in ("source_embedding.weight", "output_words.weight"):
            values = np.random.default_rng(len(name)).normal(0, 0.3, parameter.shape)
            parameter.copy_(parameter.new_tensor(values))
    save_model(tmp_path / "m", PhraseModel(network, source, target, WordOptions(), {}, True))
    return SentenceModel(tmp_path / "m")


@pytest.fixture
def converted(model, run, tmp_path) -> Path:
    assert model
    run("model", "export", tmp_path / "m", tmp_path / "ct2", "--format", "ctranslate2")
    return tmp_path / "ct2"


def rewrite(directory: Path, **changes: object) -> None:
    path = directory / "moses-feature.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_scores_are_those_of_the_network(model, converted):
    """Also of a word with the mark of pieces in it, of an empty translation, and of equal ones."""
    other = CTranslate2Model(converted)
    translations = [words(text) for text in [*TARGET[:4], TARGET[0]]]
    for text in SOURCE[:2]:
        expected = model.log_probs([model.ids(words(text), written) for written in translations])
        np.testing.assert_allclose(
            other.log_probs([(words(text), of) for of in translations]), expected, atol=1e-4
        )


def test_as_a_feature_of_lists(model, converted, run, tmp_path):
    lists = "".join(f"{n} ||| {t} ||| LM0= -1 ||| -1\n" for n in (0, 1) for t in TARGET[:3])
    Path("lists").write_text(lists)
    Path("source").write_text("\n".join(SOURCE[:2]) + "\n")
    run("list", "rescore", "lists", "out", "--source", "source", "--model", converted)
    values = [line.split("NMT0= ")[1].split()[0] for line in Path("out").read_text().splitlines()]
    pairs = [model.ids(words(s), words(t)) for s in SOURCE[:2] for t in TARGET[:3]]
    assert [float(value) for value in values] == pytest.approx(model.log_probs(pairs), rel=1e-4)
    assert named_model(str(converted)) == ("NMT0", str(converted))
    assert is_ctranslate2(converted)
    assert not is_ctranslate2(tmp_path / "m")


def test_translations_are_those_of_the_network(model, converted, run, tmp_path):
    """As long as both may be: a batch has one limit there, here each sentence."""
    assert model
    text = "\n".join([*SOURCE[:2], ""]).encode() + b"\n"
    of_both = [
        run("model", "translate", directory, "--beam", 1, stdin=text).stdout.splitlines()
        for directory in (tmp_path / "m", converted)
    ]
    for ours, theirs in zip(*of_both, strict=True):
        assert ours.startswith(theirs) or theirs.startswith(ours)


def test_text_is_put_together(converted):
    """The pieces are those of text, not of tokens, if languages are given."""
    pytest.importorskip("sacremoses")
    rewrite(converted, source_language="en", target_language="fr")
    model = CTranslate2Model(converted)
    as_tokens, as_text = words("l&apos; homme"), words("l'homme")
    (of_tokens,) = model.log_probs([(words("the dog &apos;s house"), as_tokens)])
    rewrite(converted, source_language=None, target_language=None)
    (expected,) = CTranslate2Model(converted).log_probs([(words("the dog's house"), as_text)])
    assert of_tokens == pytest.approx(expected, abs=1e-4)


def test_pieces_around_sentences(model, converted):
    """A prefix of the target is given and not scored; one of the source is read."""
    first, last, given = model.source.shortlist[256], model.source.shortlist[-1], b"l"
    sides = {"source_prefix": first, "source_suffix": last, "target_prefix": given}
    rewrite(converted, **{name: [piece.decode()] for name, piece in sides.items()})
    (found,) = CTranslate2Model(converted).log_probs([(words("a man"), words("homme"))])
    read, written = model.ids(words("a man"), words("homme"))
    ids = [model.source.index[first], *read, model.source.index[last]]
    written = [model.target.index[given], *written]
    (log_probs,) = model.word_log_probs([(ids, written)])
    assert found == pytest.approx(log_probs[1:].sum(), abs=1e-4)


def test_what_goes_wrong(model, converted, run, tmp_path, monkeypatch):
    assert model
    Path("full").mkdir()
    Path("full/x").touch()
    refused = run(
        "model", "export", tmp_path / "m", "full", "--format", "ctranslate2", exit_code=1
    ).stderr
    assert "full: expected a new or an empty directory" in refused
    monkeypatch.setattr(module, "MOST_PIECES", 4)
    with pytest.raises(TooManyPiecesError, match="4 pieces at most"):
        CTranslate2Model(converted).log_probs([([b"a"], words("un homme marche dans"))])
    monkeypatch.setattr("moses_feature.cli.models.translate.MOST_PIECES", 4)
    text = b"a\na man walks in the park\n"
    refused = run("model", "translate", converted, stdin=text, exit_code=1)
    assert len(refused.stdout.splitlines()) == 1
    assert "standard input at line 2: expected 4 words or subwords at most" in refused.stderr
    alignment = ("--alignment-out", "a")
    refused = run("model", "translate", converted, *alignment, exit_code=2).stderr
    assert "is for RNNsearch of whole words" in refused
    for changes, message in (
        ({"source_pieces": "none"}, "none: expected a model of sentencepiece"),
        ({"source_pieces": "model.bin"}, "expected a model of sentencepiece"),
        ({"source_pieces": 3}, "source_pieces"),
        ({"else": 3}, "else"),
        ({"compute_type": "int3"}, "int3"),
        ({"source_prefix": ["\ud800"]}, "surrogates not allowed"),
        ({"sha256": {"nothing": "0"}}, "nothing: expected a file"),
    ):
        before = (converted / "moses-feature.json").read_text()
        rewrite(converted, **changes)
        with pytest.raises(MosesFeatureError, match=message):
            scorers_of([("N", str(converted))], SourceText([], "source"))
        (converted / "moses-feature.json").write_text(before)
    (converted / "moses-feature.json").unlink()
    with pytest.raises(MosesFeatureError, match=r'such as \{"source_language": "en"'):
        CTranslate2Model(converted)
    (converted / "moses-feature.json").write_text(before)
    rewrite(converted, sha256={})
    for side in ("source", "target"):
        vocabulary = converted / f"{side}_vocabulary.json"
        vocabulary.write_text(json.dumps((of := json.loads(vocabulary.read_text()))[:2] + of[258:]))
    with pytest.raises(MosesFeatureError, match="Invalid token ID"):
        CTranslate2Model(converted).translate([words("a man")])
    (converted / "model.bin").write_bytes(b"damaged")
    with pytest.raises(FormatError, match="expected a model of CTranslate2"):
        CTranslate2Model(converted)


def test_pieces_of_another_text(model, converted, monkeypatch):
    """Of a model that was exported any, of another program's model those that it does not have."""
    assert model
    source, target = converted / "source.spm", converted / "target.spm"
    shutil.copyfile(target, source)
    with pytest.raises(FormatError, match=r"source\.spm: expected the file that was exported"):
        CTranslate2Model(converted)
    rewrite(converted, sha256={})
    monkeypatch.setattr(module, "LEAST_PIECES", 0.9)
    with pytest.raises(
        FormatError, match=r"with the pieces of source_vocabulary\.json, found \d+ of"
    ):
        CTranslate2Model(converted)


def test_the_other_direction_is_noticed(converted, run, monkeypatch):
    monkeypatch.setattr("moses_feature.networks.known_words.FEWEST", 8)
    text = "\n".join(TARGET[:3]).encode() + b"\n"
    refused = run("model", "translate", converted, stdin=text, exit_code=1).stderr
    assert "two the other way round" in refused
    Path("source").write_bytes(text)
    Path("lists").write_text("".join(f"{n} ||| a man ||| LM0= -1 ||| -1\n" for n in range(3)))
    options = "--source", "source", "--model", converted
    refused = run("list", "rescore", "lists", "out", *options, exit_code=1).stderr
    assert "two the other way round" in refused


def test_it_is_a_model_to_other_commands(model, converted, run):
    assert model
    Path("lists").write_text("0 ||| un ||| LM0= -1 ||| -1\n")
    to = converted / "model.bin"
    refused = run("list", "rescore", "lists", to, "--format", "moses", exit_code=2).stderr
    assert "a model directory: write to another one" in refused
    refused = run("model", "score", converted, stdin=b"", exit_code=1).stderr
    assert "expected a network of this program, found a model of CTranslate2" in refused


def test_a_full_disk_leaves_nothing(model, run, tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(ENOSPC, "No space left on device")

    assert model
    monkeypatch.setattr("moses_feature.rescoring.ctranslate2_export.write_whole", full)
    to = tmp_path / "ct2"
    refused = run(
        "model", "export", tmp_path / "m", to, "--format", "ctranslate2", exit_code=1
    ).stderr
    assert f"{to}: cannot be written: No space left on device" in refused
    assert not list(tmp_path.glob("*ct2*"))
