"""n-gram models as the decoder reads them, against KenLM's own module, to the last bit.

The models in `data/` have four orders, the highest two pruned. KenLM's `build_binary` made them of
`lm.arpa`: `probing`, `trie`, and `trie` with `-q 5 -b 4`, with `-a 6`, and with `-q 4 -a 3`.
"""

from __future__ import annotations

from pathlib import Path

import kenlm
import numpy as np
import pytest

from moses_feature.decoder.ngram_model import read_ngram_model
from moses_feature.moses.language_model import load_kenlm

DATA = Path(__file__).parent / "data"
WORDS = "the a dog cat sees small old and tree in house runs é nowhere <unk>".split()  # noqa: SIM905


@pytest.mark.parametrize("begin", [True, False])
@pytest.mark.parametrize("name", ["arpa", "probing", "trie", "trie-q", "trie-a", "trie-qa"])
def test_values_and_states_are_those_of_kenlm(name, begin):
    """States are the same here where they are the same there, and only there."""
    path = str(DATA / f"lm.{name}")
    ours, theirs = read_ngram_model(path), load_kenlm(path)
    generator, found, back = np.random.default_rng(3), {}, {}
    for _ in range(300):
        state, own = kenlm.State(), ours.begin if begin else ours.empty
        (theirs.BeginSentenceWrite if begin else theirs.NullContextWrite)(state)
        for word in (*generator.choice(WORDS, generator.integers(1, 9)), "</s>"):
            behind = kenlm.State()
            expected = theirs.BaseScore(state, str(word), behind)
            (number,) = ours.ids([str(word).encode()])
            log10_p, own = ours.after(own, number)
            assert np.float32(log10_p) == np.float32(expected)
            state = behind
            of = own.length
            key = own.words[:of].tobytes(), own.backoffs[:of].tobytes()
            assert found.setdefault(state, key) == key
            assert back.setdefault(key, state) == state
    assert len(found) > 100
