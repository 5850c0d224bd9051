"""Translation by RNNsearch: against all translations, in any batch, and as a command."""

from __future__ import annotations

import gzip
import itertools
import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from helpers.equations import random_pairs, search_log_probs
from helpers.models import random_model

from moses_feature.moses.words import WordOptions
from moses_feature.networks.direction import Direction
from moses_feature.networks.pair_network import network_of
from moses_feature.networks.vocabulary import UNKNOWN, Vocabulary
from moses_feature.phrases.generation import prefixes as prefixes_module
from moses_feature.phrases.generation.prefixes import EmptyPrefixes
from moses_feature.phrases.model import PhraseModel, save_model
from moses_feature.rnnsearch.inference import RnnSearchPrefixes
from moses_feature.rnnsearch.settings import RnnSearchSizes
from moses_feature.sentences.scorer import SentenceModel
from moses_feature.sentences.translate import LENGTH_POWER, translate, words_of

SIZES = RnnSearchSizes(hidden=7, embedding=3, alignment=5, maxout=4)


def small_model(direction: Direction | None = None, seed: int = 2) -> PhraseModel:
    """Return a model with few target words."""
    model = random_model(SIZES, seed, scale=1.0)
    target = Vocabulary((b"A", b"B"))
    network = network_of(SIZES, len(model.source), len(target))
    weights = {
        name: tensor[: len(target)] if name.startswith(("target_emb", "output_words")) else tensor
        for name, tensor in model.network.state_dict().items()
    }
    network.load_state_dict(weights)
    return PhraseModel(
        network, model.source, target, WordOptions(), {}, True, direction or model.direction
    )


def empty_of(scorer: SentenceModel) -> EmptyPrefixes:
    return partial(RnnSearchPrefixes.empty, scorer.network)


@pytest.fixture
def scorer(tmp_path: Path) -> SentenceModel:
    save_model(tmp_path / "m", small_model())
    return SentenceModel(tmp_path / "m")


def test_a_wide_beam_finds_the_best_of_all(scorer, monkeypatch):
    monkeypatch.setattr(prefixes_module, "MORE_WORDS", 4)
    monkeypatch.setattr(prefixes_module, "WORDS_PER_SOURCE_WORD", 0)
    model = small_model()
    for source in ([2, 5, 3], [4], []):
        every = [t for n in range(5) for t in itertools.product(range(1, 4), repeat=n)]
        scores = {}
        for target in every:
            log_probs, _ = search_log_probs(model, source, list(target))
            scores[target] = log_probs.sum() / (len(target) + 1) ** LENGTH_POWER
        found = translate(empty_of(scorer), [source], beam=1000)[0]
        assert {t.ids for t in found} == set(every)
        assert [t.score for t in found] == sorted([t.score for t in found], reverse=True)
        for translation in found:
            assert translation.score == pytest.approx(scores[translation.ids], abs=1e-5)
        _, expected = search_log_probs(model, source, list(found[0].ids))
        np.testing.assert_allclose(found[0].alignment, expected, atol=1e-5)


def test_a_translation_does_not_depend_on_the_sentences_beside_it(scorer):
    sentences = [source for source, _ in random_pairs(small_model(), 23, 9)]
    whole = translate(empty_of(scorer), sentences, 3)
    assert translate(empty_of(scorer), [], 3) == []
    for sentence, expected in zip(sentences, whole, strict=True):
        (alone,) = translate(empty_of(scorer), [sentence], 3)
        assert [t.ids for t in alone] == [t.ids for t in expected]
        np.testing.assert_allclose(
            [t.log_prob for t in alone], [t.log_prob for t in expected], atol=1e-5
        )
        assert len(alone) == 3


@pytest.mark.parametrize("right_to_left", [False, True])
def test_the_command(tmp_path, run, right_to_left):
    save_model(tmp_path / "m", small_model(Direction(right_to_left=right_to_left)))
    scorer = SentenceModel(tmp_path / "m")
    text = [b"a the dog", b"", b"b zzz c", b"d"]
    arguments = ("model", "translate", "m", "--beam", "4", "--alignment-out", "alignments.gz")
    result = run(*arguments, stdin=b"\n".join(text) + b"\n")
    lines = result.stdout.encode().split(b"\n")
    assert lines[1] == b""

    written = gzip.decompress((tmp_path / "alignments.gz").read_bytes())
    contents = [json.loads(line) for line in written.splitlines()]
    for line, content, sentence in zip(lines, contents, text, strict=False):
        source = sentence.split()
        assert content["source"] == [word.decode() for word in source]
        assert content["target"] == line.decode().split()
        rows = np.array(content["alignment"])
        assert rows.shape[0] == len(content["target"]) + 1 or not source
        assert np.allclose(rows.sum(axis=1), 1.0, atol=1e-3)
        if source:
            (found,) = translate(empty_of(scorer), [scorer.source.ids(source)], 4)
            assert words_of(scorer, found[0], source) == line.split()
            ids = found[0].ids[::-1] if right_to_left else found[0].ids
            for place, word in enumerate(ids):
                if word == UNKNOWN:  # the source word that it is aligned to most
                    best = int(rows[place, : len(source)].argmax())
                    assert line.split()[place] == source[best]
    refused = run("model", "translate", "m", "--alignment-out", "-", stdin=b"a\n", exit_code=2)
    assert "expected a file name, found -" in refused.stderr
