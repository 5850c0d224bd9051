"""BPE dropout: words split in many ways, which spell the same words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from moses_feature.networks.phrases import PackedSequences
from moses_feature.networks.pieces import learn_pieces
from moses_feature.sentences.bpe_dropout import BpeDropout

WORDS = "lower lowest newer newest wider widest &apos;s slow slower l'été"
SENTENCES = [WORDS.split()[n % 7 :] for n in range(60)]
ODD = [b"\xff\xfe", "日本".encode(), b"a|b", b"|", b"x\x01"]


@pytest.fixture(scope="module")
def pieces():
    lines = [" ".join(words).encode() for words in SENTENCES]
    return learn_pieces(lines, 310, "text")


def split(pieces, rate, sentences, seed=1, epoch=0, first=0):
    """Return the words, and the numbers of pieces, of sentences that are split anew."""
    phrases = PackedSequences.pack([pieces.ids(words) for words in sentences])
    rows = first + np.arange(len(sentences))
    found = BpeDropout(pieces, rate, seed).split(phrases, rows, epoch)
    ids = np.split(found.ids, found.offsets[1:-1])
    return [pieces.words(of.tolist()) for of in ids], found.ids.tolist()


def test_without_dropout_words_are_split_as_sentencepiece_splits_them(pieces):
    sentences = [[word.encode() for word in words] for words in SENTENCES] + [ODD]
    _, ids = split(pieces, 0.0, sentences)
    assert ids == [piece for sentence in sentences for piece in pieces.ids(sentence)]


def test_the_pieces_spell_the_same_words(pieces):
    sentences = [[word.encode() for word in words] for words in SENTENCES] + [ODD]
    words, ids = split(pieces, 0.3, sentences)
    assert words[:-1] == sentences[:-1]
    assert ids[-len(pieces.ids(ODD)) :] == pieces.ids(ODD)  # spelt in bytes
    others = ({"seed": 2}, {"epoch": 1}, {"first": 1})
    assert all(split(pieces, 0.3, sentences, **other)[1] != ids for other in others)


def test_a_sentence_is_split_alike_whatever_stands_beside_it(pieces):
    sentences = [[word.encode() for word in words] for words in SENTENCES]
    whole = split(pieces, 0.3, sentences)[1]
    parts = [split(pieces, 0.3, [words], first=row)[1] for row, words in enumerate(sentences)]
    assert [piece for part in parts for piece in part] == whole


def test_a_merge_is_left_out_with_the_probability_that_is_asked_for():
    """Two merges make one piece of a word of two letters; each is left out in a quarter."""
    others = b" ".join(word.encode() for sentence in SENTENCES for word in sentence)
    pieces = learn_pieces([b"zy " * 50, others], 310, "text")
    assert len(pieces.ids([b"zy"])) == 1
    assert len({"▁z".encode(), b"zy"} & pieces.index.keys()) == 1  # on the way to the whole
    phrases, whole = PackedSequences.pack([pieces.ids([b"zy"])] * 100), 0
    for seed in range(40):
        drawn = BpeDropout(pieces, 0.25, seed).split(phrases, np.arange(100), 0)
        whole += int((np.diff(drawn.offsets) == 1).sum())
    assert whole / 4000 == pytest.approx(0.75**2, abs=0.05)


@pytest.fixture(autouse=True)
def texts(tmp_path: Path) -> None:
    """Write two texts of the same sentences."""
    for name in ("source", "target"):
        lines = [" ".join(words) for words in SENTENCES]
        (tmp_path / name).write_text("".join(f"{line} {n}\n" for n, line in enumerate(lines)))


SMALL = ("--sizes", "hidden=9 embedding=5 alignment=4 maxout=3")
QUICK = (*SMALL, "--batch-size", 10, "--evaluate-every", 2, "--bpe-dropout", 0.2)


def test_a_resumed_run_ends_with_the_same_bytes(run, tmp_path):
    def train(model, *options):
        run("model", "train-sentences", "source", "target", model, *QUICK, *options)

    subwords = ("--subwords", 320)
    train("whole", *subwords, "--updates", 4)
    train("parts", *subwords, "--updates", 2)
    train("parts", *subwords, "--updates", 4, "--resume")
    train("other", *subwords, "--updates", 4, "--bpe-dropout", 0)
    whole, parts, other = (
        (tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts", "other")
    )
    assert whole == parts != other


def test_what_cannot_be_left_out_is_refused(run):
    texts = ("model", "train-sentences", "source", "target", "m")
    done = run(*texts, *QUICK, exit_code=2)
    assert "--bpe-dropout leaves out merges of subwords: give --subwords" in done.stderr
    Path("links").write_text("0-0\n" * len(SENTENCES))
    links = ("--subwords", 320, "--alignment", "links")
    done = run(*texts, *QUICK, *links, exit_code=2)
    assert "--bpe-dropout splits words anew each time, --alignment links pieces" in done.stderr
