"""log p of words after the nodes of a tree: against the equations, in whatever order they come."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.equations import search_log_probs
from helpers.models import SEARCH_SIZES, random_model

from moses_feature.networks.vocabulary import END
from moses_feature.phrases.model import save_model
from moses_feature.rnnsearch import tree_states
from moses_feature.sentences.decoder_feature import RnnSearchFeature, root_of

SENTENCES = [b"a b", b"the dog zzz c", b""]


@pytest.mark.parametrize("together", [1, 7, 1000])
def test_nodes_of_a_tree(tmp_path, monkeypatch, together):
    """Three texts in turns, of which each has a tree of chains and branches; room grows."""
    monkeypatch.setattr(tree_states, "FIRST_ROOM", 2)
    generator = np.random.default_rng(together)
    model = random_model(SEARCH_SIZES)
    save_model(tmp_path / "model", model)
    feature = RnnSearchFeature(tmp_path / "model")
    words = np.array(feature.ids(list(model.target.shortlist)))
    feature.read([sentence.split() for sentence in SENTENCES])
    tree, prefixes = [[root_of(n), END] for n in range(3)], [(n, []) for n in range(3)]
    for _ in range(40):
        parent = int(generator.integers(len(tree)))
        sentence, prefix = prefixes[parent]
        word = int(generator.choice(words))
        tree.append([parent, word])
        prefixes.append((sentence, [*prefix, word]))
    asked = [(node, int(word)) for node in range(len(tree)) for word in generator.choice(words, 2)]
    generator.shuffle(asked)
    for sentence in (0, 1, 2, 1):
        own = [(node, word) for node, word in asked if prefixes[node][0] == sentence]
        for first in range(0, len(own), together):
            nodes, after = np.array(own[first : first + together]).T
            known = np.array(tree[: nodes.max() + 1], dtype=np.int32)
            found = feature.log_probs(known, nodes, after)
            for node, word, log_prob in zip(nodes.tolist(), after.tolist(), found, strict=True):
                source = model.source.ids(SENTENCES[sentence].split())
                expected = search_log_probs(model, source, [*prefixes[node][1], word])[0]
                assert log_prob == pytest.approx(expected[len(prefixes[node][1])], abs=1e-4)
