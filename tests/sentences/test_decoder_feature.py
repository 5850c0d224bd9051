"""log p of words after the nodes of a tree: against the equations, in whatever order they come."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.equations import search_log_probs, transformer_log_probs
from helpers.models import SEARCH_SIZES, TRANSFORMER_SIZES, random_model, with_pieces

from moses_feature.networks.vocabulary import END
from moses_feature.phrases.model import PhraseModel, save_model
from moses_feature.rnnsearch import tree_states
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.sentences import decoder_feature, piece_tree
from moses_feature.sentences.decoder_feature import NetworkFeature, root_of

SENTENCES = [b"a b", b"the dog zzz c", b""]
WORDS = b"chien chienne chat chatte noir noire A &apos; \xc3\xa9t\xc3\xa9 zq".split()
"""To be spelt in pieces."""


def equations(model: PhraseModel, source: list[int], target: list[int]) -> np.ndarray:
    if model.network.sizes == TRANSFORMER_SIZES:
        return transformer_log_probs(model, source, target)
    return search_log_probs(model, source, target)[0]


@pytest.mark.parametrize("together", [1, 7, 1000])
@pytest.mark.parametrize("pieces", [False, True])
@pytest.mark.parametrize("sizes", [SEARCH_SIZES, TRANSFORMER_SIZES])
def test_nodes_of_a_tree(tmp_path, monkeypatch, sizes, pieces, together):
    """Three texts in turns, of which each has a tree of chains and branches; room grows."""
    monkeypatch.setattr(tree_states, "FIRST_ROOM", 2)
    monkeypatch.setattr(piece_tree, "FIRST_ROOM", 2)
    monkeypatch.setattr(decoder_feature, "MOST_AT_ONCE", 50)
    monkeypatch.setattr(decoder_feature, "MOST_STATES", 30 if together == 1000 else 1000)
    generator = np.random.default_rng(together)
    model = random_model(sizes)
    if pieces:
        model = with_pieces(model)
    save_model(tmp_path / "model", model)
    feature = NetworkFeature(tmp_path / "model")
    spelt = WORDS if pieces else list(model.target.shortlist)
    for text in ([[b"c"]], [sentence.split() for sentence in SENTENCES]):
        feature.read(text)
        words = feature.ids(spelt[:4]) + feature.ids(spelt)[4:]
    assert feature.ids([*spelt, b""]) == [*words, feature.end]
    spelling = dict(zip(words, spelt, strict=True))
    tree, prefixes = [[root_of(n), feature.end] for n in range(3)], [(n, []) for n in range(3)]
    for _ in range(40):
        parent = int(generator.integers(len(tree)))
        sentence, prefix = prefixes[parent]
        word = int(generator.choice(words))
        tree.append([parent, word])
        prefixes.append((sentence, [*prefix, word]))
    after_all = [*words, feature.end]
    asked = [
        (node, int(word)) for node in range(len(tree)) for word in generator.choice(after_all, 2)
    ]
    generator.shuffle(asked)
    assert np.isfinite(feature.guesses(np.array(after_all))).all()

    def expected(sentence: int, prefix: list[int], word: int) -> float:
        source = model.source.ids(SENTENCES[sentence].split())
        target = [spelling[number] for number in (*prefix, word) if number != feature.end]
        found = equations(model, source, model.target.ids(target))
        first = len(model.target.ids([spelling[number] for number in prefix]))
        return found[first:].sum() if word == feature.end else found[first:-1].sum()

    for sentence in (0, 1, 2, 1):
        own = [(node, word) for node, word in asked if prefixes[node][0] == sentence]
        for first in range(0, len(own), together):
            nodes, after = np.array(own[first : first + together]).T
            known = np.array(tree[: nodes.max() + 1], dtype=np.int32)
            found = feature.log_probs(known, nodes, after)
            for node, word, log_prob in zip(nodes.tolist(), after.tolist(), found, strict=True):
                assert log_prob == pytest.approx(expected(*prefixes[node], word), abs=2e-4)


def test_an_absurd_word(tmp_path):
    save_model(tmp_path / "model", with_pieces(random_model(TRANSFORMER_SIZES)))
    feature = NetworkFeature(tmp_path / "model")
    assert feature.ids([b"\xc3\xa9" * 400])
    with pytest.raises(
        MosesFeatureError, match=r"1000 subwords at most in a search with .*: xyxyx"
    ):
        feature.ids([b"xy" * 3000])


def test_guesses_are_those_of_frequent_pieces(tmp_path):
    """Log p out of context, which the bias of the last layer alone decides."""
    model = with_pieces(random_model(TRANSFORMER_SIZES))
    save_model(tmp_path / "model", model)
    feature = NetworkFeature(tmp_path / "model")
    words = feature.ids(WORDS)
    bias = model.network.state_dict()["output_words.bias"].double().numpy()
    log_probs = bias - np.log(np.exp(bias).sum())
    expected = [log_probs[model.target.ids([word])].sum() for word in WORDS]
    found = feature.guesses(np.array([*words, feature.end]))
    np.testing.assert_allclose(found, [*expected, log_probs[END]], atol=1e-5)
