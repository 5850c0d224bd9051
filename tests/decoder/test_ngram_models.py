"""n-gram models as the decoder reads them, against KenLM's own module, to the last bit.

The models in `data/` have four orders, the highest two pruned. KenLM's `build_binary` made them of
`lm.arpa`: `probing`, `trie`, and `trie` with `-q 5 -b 4`, with `-a 6`, and with `-q 4 -a 3`.
"""

from __future__ import annotations

import re
from pathlib import Path

import kenlm
import numpy as np
import pytest

from moses_feature.decoder.ngram_model import read_ngram_model
from moses_feature.moses.language_model import load_kenlm
from moses_feature.runtime.errors import MosesFeatureError

DATA = Path(__file__).parent / "data"
WORDS = "the a dog cat sees small old and tree in house runs é nowhere <unk>".split()  # noqa: SIM905


@pytest.mark.parametrize("begin", [True, False])
@pytest.mark.parametrize("name", ["arpa", "probing", "trie", "trie-q", "trie-a", "trie-qa"])
def test_values_and_states_are_those_of_kenlm(name, begin):
    assert_same_as_kenlm(str(DATA / f"lm.{name}"), begin)


def test_backoff_weights_may_be_missing(tmp_path):
    """Then they are 0, whether longer n-grams begin with these words or not."""
    path, text = tmp_path / "lm.arpa", (DATA / "lm.arpa").read_text()
    path.write_text(re.sub(r"\t(0|-0\.[12]\d*)$", "", text, flags=re.MULTILINE))
    assert_same_as_kenlm(str(path), begin=False)


def test_a_file_that_was_cut_is_refused(tmp_path):
    """Anywhere before the words themselves, which nothing reads."""
    content = (DATA / "lm.trie-qa").read_bytes()
    for length in range(136, content.index(b"<unk>"), 44):
        (tmp_path / "lm").write_bytes(content[:length])
        with pytest.raises(MosesFeatureError, match="lm: expected a"):
            read_ngram_model(str(tmp_path / "lm"))


def assert_same_as_kenlm(path: str, begin: bool) -> None:
    """States are the same here where they are the same there, and only there."""
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
