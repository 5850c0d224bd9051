"""Shortlists: ranking, ids, files."""

from __future__ import annotations

import pytest

from moses_feature.networks.vocabulary import UNKNOWN, Vocabulary
from moses_feature.runtime.errors import FormatError, MosesFeatureError

COUNTS = {b"the": 7.0, b"b": 2.0, b"a": 2.0, b"rare": 1.0, b"</s>": 99.0, b"<unk>": 99.0}


def test_most_frequent_words_ties_in_byte_order():
    vocabulary = Vocabulary.most_frequent(COUNTS, 3)
    assert vocabulary.shortlist == (b"the", b"a", b"b")
    assert vocabulary.ids([b"b", b"the", b"rare", b"</s>", b"<unk>"]) == [4, 2, 1, 1, 1]
    assert UNKNOWN == 1
    assert len(vocabulary) == 5
    assert vocabulary.coverage({b"the": 3, b"rare": 1}) == 0.75


def test_file_holds_one_word_per_line(tmp_path):
    vocabulary = Vocabulary((b"\xe9", "\u00a0".encode(), b"a\rb"))
    vocabulary.save(tmp_path / "v")
    assert (tmp_path / "v").read_bytes() == b"</s>\n<unk>\n\xe9\n\xc2\xa0\na\rb\n"
    assert Vocabulary.load(tmp_path / "v") == vocabulary


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"line 1: expected </s>, found ''"),
        (b"</s>\nthe\n", r"line 2: expected <unk>, found 'the'"),
        (b"</s>\n<unk>\na\na\n", r"line 4: expected a word that no other line has, found 'a'"),
        (b"</s>\n<unk>\na", "expected a line end"),
    ],
)
def test_damaged_files(tmp_path, content, message):
    (tmp_path / "v").write_bytes(content)
    with pytest.raises(FormatError, match=message):
        Vocabulary.load(tmp_path / "v")


def test_missing_file(tmp_path):
    with pytest.raises(MosesFeatureError, match="No such file"):
        Vocabulary.load(tmp_path / "v")
