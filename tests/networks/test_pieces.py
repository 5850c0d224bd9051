"""Subwords: words become pieces and words again, whatever they are; vocabularies on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_feature.networks.pieces import (
    NEVER,
    PIECES,
    PieceVocabulary,
    learn_pieces,
    load_vocabulary,
    restricted,
)
from moses_feature.networks.vocabulary import END, UNKNOWN, Vocabulary
from moses_feature.runtime.errors import FormatError, MosesFeatureError, UsageError

TEXT = [b"a man is walking in the park .", b"l &apos; homme marche dans le parc .", "été".encode()]
VOCABULARY = learn_pieces(TEXT * 20, 340, "text")


def test_frequent_words_are_pieces():
    assert VOCABULARY.lengths([b"man", b"zzz"])[0] < 3
    assert len(VOCABULARY) == 340


@pytest.mark.parametrize(
    "word",
    [
        b"walking",
        b"&apos;",
        "été".encode(),
        "漢字".encode(),
        b"\xe9t\xe9",
        b"</s>",
        b"<unk>",
        b"<0x41>",
    ]
    + [word.encode() for word in ("▁", "a▁b", "▁▁", "▁a", "\u00a0x", "ﬁ", "e\u0301", "\u200b")],
)
def test_no_word_is_unknown_and_each_comes_back(word):
    ids = VOCABULARY.ids([b"the", word, b"man"])
    assert UNKNOWN not in ids
    assert END not in ids
    assert VOCABULARY.words(ids) == [b"the", word, b"man"]
    assert sum(VOCABULARY.lengths([b"the", word, b"man"])) == len(ids)


@pytest.mark.parametrize("number", [10, 340])  # one and two bytes of a protocol buffer
def test_words_are_split_into_some_pieces_alone(number):
    vocabulary = learn_pieces([*TEXT, b"x" * number], 341, "text")
    used = {*vocabulary.ids([b"man", b"walking"])}
    of_these = restricted(vocabulary, used)
    assert of_these.shortlist == vocabulary.shortlist
    assert of_these.digest() != vocabulary.digest()
    words = [b"man", b"walking", b"homme", b"park", "été".encode(), "漢".encode()]
    assert [of_these.pieces(word) for word in words[:2]] == [
        vocabulary.pieces(word) for word in words[:2]
    ]
    found = {*of_these.ids(words)} - used
    assert all(of_these.is_byte(n) or len(of_these.spelling(n).decode()) == 1 for n in found)
    assert of_these.words(of_these.ids(words)) == words
    assert of_these.lengths([b"park"]) > vocabulary.lengths([b"park"])


@given(st.lists(st.binary(min_size=1, max_size=8), max_size=5))
def test_any_bytes_come_back(words):
    words = [bytes(byte for byte in word if byte not in NEVER) for word in words]
    words = [word for word in words if word]
    assert VOCABULARY.words(VOCABULARY.ids(words)) == words


def test_a_word_never_holds_what_ends_it():
    """A network may write any bytes; words stay words, and lines stay lines."""
    mark = VOCABULARY.index["▁".encode()]
    for byte in (*range(33), 127, ord("|")):
        (word,) = VOCABULARY.words([mark, 2 + ord("a"), 2 + byte, 2 + ord("b")])
        assert word == "a\N{REPLACEMENT CHARACTER}b".encode()


def test_text_that_is_not_utf8_is_told(caplog):
    learn_pieces([*TEXT * 20, b"caf\xe9"], 320, "text")
    assert "text: 1 lines are not UTF-8" in caplog.text
    assert "translations lose these bytes" in caplog.text


def test_pieces_on_disk(tmp_path: Path):
    path = tmp_path / "target.vocab"
    VOCABULARY.save(path)
    loaded = load_vocabulary(path)
    assert isinstance(loaded, PieceVocabulary)
    assert loaded == VOCABULARY
    assert loaded.digest() == VOCABULARY.digest()
    assert loaded.digest() != Vocabulary(VOCABULARY.shortlist).digest()
    Vocabulary((b"man",)).save(tmp_path / "plain.vocab")
    assert not isinstance(load_vocabulary(tmp_path / "plain.vocab"), PieceVocabulary)


def test_pieces_of_another_text(tmp_path: Path):
    path = tmp_path / "target.vocab"
    VOCABULARY.save(path)
    path.with_suffix(PIECES).write_bytes(
        learn_pieces([b"some other words , quickly jumping over dogs"] * 9, 300, "o").model
    )
    with pytest.raises(FormatError, match=r"expected the pieces of target\.vocab, found others"):
        load_vocabulary(path)
    path.with_suffix(PIECES).write_bytes(b"damaged")
    with pytest.raises(FormatError, match="expected a model of sentencepiece"):
        load_vocabulary(path)


def test_no_line_is_left_out():
    """Neither a long one nor one with a mark of sentencepiece."""
    lines = [*TEXT * 20, b"xyz " * 2000, *["▅ kqk".encode()] * 9]
    assert {b"z", b"q"} <= {*learn_pieces(lines, 340, "text").shortlist}


def test_too_many_pieces():
    with pytest.raises(
        MosesFeatureError, match=r"text: expected a text with enough words for --subwords 9000"
    ):
        learn_pieces(TEXT, 9000, "text")
    with pytest.raises(UsageError, match="--subwords 20: expected 0, or 300"):
        learn_pieces(TEXT, 20, "text")
    with pytest.raises(MosesFeatureError, match="text: expected a text"):
        learn_pieces([b""], 400, "text")


def test_a_word_of_the_language_is_known():
    assert VOCABULARY.knows(b"walking")
    assert not VOCABULARY.knows("漢字".encode())
