"""Scores of RNNsearch without torch: against the equations, and whatever stands beside a pair."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.equations import assert_scored_alone, random_pairs, search_log_probs
from helpers.models import SEARCH_SIZES, random_model

from moses_feature.networks.phrases import PackedSequences
from moses_feature.networks.vocabulary import END
from moses_feature.phrases.model import PhraseModel, save_model
from moses_feature.runtime.errors import FormatError
from moses_feature.sentences.scorer import SentenceModel


@pytest.fixture
def search_model() -> PhraseModel:
    return random_model(SEARCH_SIZES)


@pytest.fixture
def scorer(search_model, tmp_path: Path) -> SentenceModel:
    save_model(tmp_path / "m", search_model)
    return SentenceModel(tmp_path / "m")


def test_scores_follow_the_equations(search_model, scorer):
    """Of many pairs at once: sources that are the same, and prefixes that are; empty ones."""
    pairs = random_pairs(search_model, 29, 7)
    pairs += [(pairs[0][0], target) for _, target in pairs] + [([], []), ([2, 3], [])]
    found = scorer.word_log_probs(pairs)
    for of_words, (source, target) in zip(found, pairs, strict=True):
        expected, _ = search_log_probs(search_model, source, target)
        np.testing.assert_allclose(of_words, expected, atol=2e-5)
    totals = [of_words.sum() for of_words in found]
    assert scorer.log_probs(pairs).tolist() == totals
    assert scorer.word_log_probs([]) == []


def test_a_score_does_not_depend_on_the_pairs_beside_it(search_model, scorer):
    assert_scored_alone(scorer, random_pairs(search_model, 61, 9))


def test_self_normalised_networks_need_no_softmax(search_model, tmp_path):
    training = {"settings": {"self_normalisation": 0.1}}
    save_model(tmp_path / "m", replace(search_model, training=training))
    scorer = SentenceModel(tmp_path / "m")
    assert not scorer.normalised
    pairs = random_pairs(search_model, 23, 7)
    rows = np.arange(len(pairs))
    sides = (PackedSequences.pack(side) for side in zip(*pairs, strict=True))
    tensors = [torch.from_numpy(array) for side in sides for array in side.padded(rows, END)]
    with torch.no_grad():
        log_probs, log_norms = search_model.network(*tensors)
    found = np.concatenate(scorer.word_log_probs(pairs))
    np.testing.assert_allclose(found, (log_probs + log_norms).numpy(), atol=1e-4)


def test_directions(search_model, tmp_path):
    source, target = [b"a", b"c", b"zzz"], [b"le", b"chien"]
    for reverse in (False, True):
        for right_to_left in (False, True):
            direction = type(search_model.direction)(reverse, right_to_left)
            model = PhraseModel(
                search_model.network,
                search_model.source,
                search_model.target,
                search_model.words,
                {},
                escaped=False,
                direction=direction,
            )
            save_model(tmp_path / "m", model)
            loaded = SentenceModel(tmp_path / "m")
            assert loaded.direction == direction
            read, written = (target, source) if reverse else (source, target)
            written = written[::-1] if right_to_left else written
            assert loaded.ids(source, target) == (
                search_model.source.ids(read),
                search_model.target.ids(written),
            )


def test_other_models_are_refused(model_directory, search_model, tmp_path):
    with pytest.raises(FormatError, match="architecture rnnsearch or transformer, found rnn-"):
        SentenceModel(model_directory)
    save_model(tmp_path / "m", search_model)
    vocabulary = tmp_path / "m" / "target.vocab"
    vocabulary.write_bytes(vocabulary.read_bytes() + b"more\n")
    with pytest.raises(FormatError, match="the words that the network was trained with"):
        SentenceModel(tmp_path / "m")
