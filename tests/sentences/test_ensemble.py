"""Networks that translate together: p of a word is the mean of theirs."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.models import SEARCH_SIZES, TRANSFORMER_SIZES, random_model

from moses_feature.networks.direction import Direction
from moses_feature.networks.pieces import FEWEST_PIECES, MARK, learn_pieces
from moses_feature.phrases.model import save_model
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.sentences.scorer import SentenceModel
from moses_feature.sentences.translate import AlignedTranslation, ensemble, translate, words_of

SOURCES = [[2, 3, 4], [5], [2, 2, 2, 2, 2]]


@pytest.mark.parametrize("others", [[SEARCH_SIZES], [TRANSFORMER_SIZES, SEARCH_SIZES]])
def test_the_mean_of_probabilities(tmp_path, others):
    directories = []
    for number, sizes in enumerate([SEARCH_SIZES, *others]):
        directories.append(tmp_path / str(number))
        save_model(directories[-1], random_model(sizes, number, scale=0.4))
    _, empty = ensemble(directories)
    models = [SentenceModel(directory) for directory in directories]
    for source, found in zip(SOURCES, translate(empty, SOURCES, 4), strict=True):
        for translation in found:
            pair = (source, list(translation.ids))
            of_each = np.stack([model.word_log_probs([pair])[0] for model in models])
            expected = np.log(np.exp(of_each).mean(axis=0)).sum()
            assert translation.log_prob == pytest.approx(expected, abs=1e-4)
            assert (translation.alignment is None) == (TRANSFORMER_SIZES in others)
            if translation.alignment is not None:
                np.testing.assert_allclose(translation.alignment.sum(axis=1), 1.0, atol=1e-5)


def test_the_command(tmp_path, run):
    for seed in (1, 2):
        save_model(tmp_path / f"m{seed}", random_model(SEARCH_SIZES, seed))
    alone = [run("model", "translate", f"m{seed}", stdin=b"a b\n").stdout for seed in (1, 2)]
    assert alone[0] != alone[1]
    both = run("model", "translate", "m1", "m2", stdin=b"a b\n").stdout.split()
    model, empty = ensemble([tmp_path / "m1", tmp_path / "m2"])
    ((best, *_),) = translate(empty, [model.source.ids([b"a", b"b"])])
    assert both == [word.decode() for word in words_of(model, best, [b"a", b"b"])]
    assert both != alone[0].split()
    twice = run("model", "translate", "m1", "m1", "--alignment-out", "out", stdin=b"a b\n").stdout
    assert twice == alone[0]
    assert json.loads(Path("out").read_text())["source"] == ["a", "b"]


def test_subwords_that_are_no_utf8():
    """Half a character at the longest length, and bytes that belong to none."""
    target = learn_pieces([b"a man is walking in the quick brown fog"] * 20, FEWEST_PIECES, "text")
    mark, half, accent = (target.index[MARK.encode()], *target.ids(["é".encode()])[-2:])
    model = SimpleNamespace(target=target, direction=Direction())
    ids = mark, half, accent, mark, half, mark, half, half, accent, half
    found = words_of(model, AlignedTranslation(ids, 0.0, None), [])
    assert found == ["é".encode()] * 2


def test_networks_that_do_not_go_together(tmp_path, run):
    save_model(tmp_path / "m", random_model(SEARCH_SIZES))
    save_model(tmp_path / "left", random_model(SEARCH_SIZES, direction=Direction(False, True)))
    refused = run("model", "translate", "m", "left", stdin=b"a\n", exit_code=1).stderr
    assert "left: expected the words and the direction of m, found others" in refused
    with pytest.raises(MosesFeatureError, match="none: "):
        ensemble([tmp_path / "m", tmp_path / "none"])
