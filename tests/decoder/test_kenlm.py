"""KenLM models, whole and damaged."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.files import SHARED, needs_shared
from helpers.toy import random_arpa

from moses_feature.moses.language_model import BINARY, load_kenlm
from moses_feature.runtime.errors import DataError, MosesFeatureError

MODEL = SHARED / "laws-en-fr/model/lm.fr.binary"


def test_a_model_and_what_is_none(tmp_path):
    (tmp_path / "lm").write_text(random_arpa(np.random.default_rng(1)))
    assert load_kenlm(tmp_path / "lm").order >= 2
    for content in (b"", b"\\data\\\n", BINARY, BINARY + bytes(300), BINARY + b"\xff" * 3000):
        (tmp_path / "lm").write_bytes(content)
        with pytest.raises(MosesFeatureError, match=r"lm: expected a"):
            load_kenlm(tmp_path / "lm")
    (tmp_path / "lm").write_bytes(b"\x28\xb5\x2f\xfd\n")  # Zstandard
    with pytest.raises(
        MosesFeatureError, match="lm after line 0: expected more data, found a damaged"
    ):
        load_kenlm(tmp_path / "lm", lazy=True)
    with pytest.raises(MosesFeatureError, match="none: No such file"):
        load_kenlm(tmp_path / "none")


@needs_shared
def test_a_damaged_binary_model_does_not_end_the_process(tmp_path):
    """Loading it is a segmentation fault: a size in its header is wrong, and KenLM trusts it."""
    content = bytearray(MODEL.read_bytes())
    content[154:158] = b"\xff" * 4
    (tmp_path / "lm").write_bytes(content)
    with pytest.raises(DataError, match="found a damaged file"):
        load_kenlm(tmp_path / "lm")
