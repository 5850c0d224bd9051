"""RNNsearch as a feature of n-best lists: against the equations, as a command, and in tuning."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.equations import search_log_probs
from helpers.models import SEARCH_SIZES, random_model
from helpers.toy import make_toy

from mert.decoders.choice import make_decoder
from mert.settings import DecoderSettings
from mert.tuning.state import decoder_identity
from moses_feature.moses.nbest_lists import read_nbest
from moses_feature.networks.direction import Direction
from moses_feature.phrases.model import PhraseModel, save_model
from moses_feature.rescoring.features import scorers_of
from moses_feature.rescoring.source import SourceText
from moses_feature.runtime.errors import FormatError

SOURCE = [b"a b zzz", b"", b"the dog"]
LISTS = b"""0 ||| A le  ||| LM0= -2 ||| -3.5
0 ||| A chien D  ||| LM0= -1 ||| -4
2 ||| noir  ||| LM0= -3 ||| -1
2 |||  ||| LM0= -1 ||| -2
"""


@pytest.fixture
def models(tmp_path: Path) -> dict[str, PhraseModel]:
    """Save networks in different directions."""
    directions = {
        "one": Direction(),
        "two": Direction(),
        "reverse": Direction(reverse=True),
        "left": Direction(right_to_left=True),
    }
    saved = {}
    for seed, (name, direction) in enumerate(directions.items()):
        saved[name] = random_model(SEARCH_SIZES, seed, direction=direction)
        save_model(tmp_path / name, saved[name])
    return saved


def expected_words(model: PhraseModel, source: bytes, target: bytes) -> np.ndarray:
    read, written = model.direction.sides(source.split(), target.split())
    return search_log_probs(model, model.source.ids(read), model.target.ids(written))[0]


def values_of(path: Path) -> list[dict[str, float]]:
    """Return the features of each line by their names."""
    found = []
    for line in path.read_bytes().splitlines():
        words = line.split(b" ||| ")[2].split()
        found.append(
            {w[:-1].decode(): float(x) for w, x in zip(words[::2], words[1::2], strict=True)}
        )
    return found


def test_the_command(tmp_path, run, models):
    """In all directions, and averaged."""
    (tmp_path / "lists").write_bytes(LISTS)
    (tmp_path / "source").write_bytes(b"\n".join(SOURCE) + b"\n")
    names = ("one", "Reverse=reverse", "Left=left", "Mean=one", "Mean=two")
    options = [option for name in names for option in ("--model", name)]
    run("list", "rescore", "lists", "out", *options, "--source", "source")
    lines = [line.split(b"|||") for line in LISTS.splitlines()]
    for found, fields in zip(values_of(tmp_path / "out"), lines, strict=True):
        pair = SOURCE[int(fields[0])], fields[1].strip()
        for name, model in (("RNNsearch0", "one"), ("Reverse", "reverse"), ("Left", "left")):
            expected = expected_words(models[model], *pair).sum()
            assert found[name] == pytest.approx(expected, abs=1e-3)
        both = np.exp([expected_words(models[model], *pair) for model in ("one", "two")])
        assert found["Mean"] == pytest.approx(np.log(both.mean(axis=0)).sum(), abs=1e-3)


def test_a_sentence_that_ends_like_a_rule(tmp_path, run, models):
    (tmp_path / "lists").write_bytes(b"0 ||| A le [3] ||| LM0= -2 ||| -3.5\n")
    (tmp_path / "source").write_bytes(b"a b [3]\n")
    run("list", "rescore", "lists", "out", "--model", "one", "--source", "source")
    (found,) = values_of(tmp_path / "out")
    expected = expected_words(models["one"], b"a b [3]", b"A le [3]").sum()
    assert found["RNNsearch0"] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("mark", ["", "mbr:"])
def test_a_sentence_that_is_too_long(tmp_path, run, models, mark):
    """Attention would take the square of its words in memory."""
    assert models
    (tmp_path / "lists").write_bytes(b"0 ||| A ||| LM0= -2 ||| -3\n1 ||| A ||| LM0= -2 ||| -3\n")
    (tmp_path / "source").write_bytes(b"a\n" + b"a " * 1001 + b"\n")
    options = ("--model", f"X={mark}one", "--source", "source")
    refused = run("list", "rescore", "lists", "out", *options, exit_code=1).stderr
    assert "lists at line 2: expected 1000 words or subwords at most, found 1001" in refused
    assert not (tmp_path / "out").exists()


def test_a_network_that_computes_no_number(tmp_path, run, models):
    with torch.no_grad():
        for parameter in models["one"].network.parameters():
            parameter *= 1e30
    save_model(tmp_path / "one", models["one"])
    (tmp_path / "lists").write_bytes(LISTS)
    (tmp_path / "source").write_bytes(b"\n".join(SOURCE) + b"\n")
    options = ("--model", "one", "--source", "source")
    refused = run("list", "rescore", "lists", "out", *options, exit_code=1).stderr
    assert "lists at line 1: expected a finite score of RNNsearch0, found nan" in refused
    refused = run("model", "translate", "one", stdin=b"a b\n", exit_code=1).stderr
    assert "expected log p of words, found nan" in refused


@pytest.mark.usefixtures("models")
def test_lists_that_are_scored_together(tmp_path):
    """They have the scores, to the bit, of each by itself; a list may be empty."""
    generator = np.random.default_rng(4)
    words = b"a b c d A B C D le chien zzz".split()
    sentences = [b" ".join(generator.choice(words, length)) for length in (4, 1, 9, 3)]
    names = [(name, str(tmp_path / name)) for name in ("one", "reverse", "left")]
    names += [("mean", str(tmp_path / name)) for name in ("one", "two")]
    lists = [
        (number, [Translation(generator.choice(words, size).tolist()) for size in sizes])
        for number, sizes in enumerate([(3, 1, 7, 2), (5,), (), (8, 8, 2)])
    ]
    for scorer in scorers_of(names, SourceText(sentences, "text")):
        alone = [score for of in lists for score in scorer.scores([of])]
        assert scorer.scores(lists) == pytest.approx(alone, abs=1e-4)


@dataclass(frozen=True)
class Translation:
    words: list[bytes]
    links: bytes | None = None


def test_what_does_not_fit_is_refused(tmp_path, run, models):
    assert models
    (tmp_path / "lists").write_bytes(LISTS)
    (tmp_path / "source").write_bytes(b"a b\n")
    for exit_code, options, message in (
        (2, ("--model", "one"), "expected --source"),
        (1, ("--model", "none"), "none: expected a model directory, found none"),
        (2, ("--model", "one", "--weights", ""), "expected a file name, found an empty one"),
        (
            2,
            ("--model", "X=one", "--model", "X=left"),
            "expected networks of one direction",
        ),
        (
            1,
            ("--model", "one"),
            "expected a sentence 2 (from 0), which the lists have, found 1 lines",
        ),
    ):
        source = ("--source", "source") if "expected --source" not in message else ()
        result = run("list", "rescore", "lists", "x", *options, *source, exit_code=exit_code)
        assert message in result.stderr
    assert not (tmp_path / "x").exists()


def test_the_sentences_of_all_texts_are_the_same(tmp_path, run, models):
    """A reference of another length is refused; a sentence without a list is mentioned."""
    assert models
    (tmp_path / "lists").write_bytes(b"".join(LISTS.splitlines(keepends=True)[-1:]))
    (tmp_path / "source").write_bytes(b"\n".join(SOURCE) + b"\n")
    (tmp_path / "reference").write_bytes(b"\n".join(SOURCE) + b"\nmore\n")
    options = ("--model", "one", "--source", "source", "--reference", "reference")
    refused = run("list", "rescore", "lists", "x", *options, exit_code=1).stderr
    assert "reference: expected as many lines as the text that was translated has" in refused
    assert not (tmp_path / "x").exists()
    (tmp_path / "reference").write_bytes(b"\n".join(SOURCE) + b"\n")
    said = run("list", "rescore", "lists", "x", *options).stderr
    assert "source at line 1: the first of 1 sentences without a list" in said


@pytest.mark.parametrize("threads", [1, 3])
def test_in_tuning(tmp_path, models, threads):
    """With the scores of the first iteration remembered in the second, by any number of threads."""
    toy = make_toy(tmp_path / "toy", types=(), options=3)
    sentences = [b"a b c".split(), b"d a".split(), []]
    rescoring = (("S", str(tmp_path / "one")), ("R", str(tmp_path / "reverse")))
    decoder = make_decoder(DecoderSettings(jobs=threads, rescoring=rescoring), toy.ini, sentences)
    try:
        for path in (tmp_path / "first.gz", tmp_path / "second.gz"):
            decoder.write_nbest(decoder.features, 30, path)
        assert decoder.features.names[-2:] == ("S_0", "R_0")
        lists = [
            list(read_nbest(tmp_path / f"{name}.gz", decoder.features, 3))
            for name in ("first", "second")
        ]
    finally:
        decoder.close()
    for number, (first, second) in enumerate(zip(*lists, strict=True)):
        source = b" ".join(sentences[number])
        for one, other in zip(first, second, strict=True):
            assert one.words == other.words
            for column, name in ((-2, "one"), (-1, "reverse")):
                expected = expected_words(models[name], source, b" ".join(one.words)).sum()
                assert one.features[column] == pytest.approx(expected, abs=1e-3)
                assert one.features[column] == other.features[column]


def test_every_network_of_an_ensemble_is_part_of_the_identity(models, tmp_path, model_directory):
    assert models
    identities = []
    for names in (("one",), ("one", "two"), ("two", "one")):
        rescoring = tuple(("S", str(tmp_path / name)) for name in names)
        identities.append(decoder_identity(DecoderSettings(rescoring=rescoring)))
    config = tmp_path / "one" / "config.json"
    config.write_text(config.read_text() + "\n")
    identities.append(decoder_identity(DecoderSettings(rescoring=(("S", str(tmp_path / "one")),))))
    assert all(a != b for n, a in enumerate(identities) for b in identities[:n])
    with pytest.raises(
        FormatError, match="rnnsearch or transformer or feed-forward-lm or ctranslate2, found"
    ):
        scorers_of([("S", str(model_directory))], SourceText([], "source"))
