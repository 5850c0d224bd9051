"""Reading, packing, holding out and sampling phrase pairs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from helpers.files import SHARED, needs_shared

from moses_feature.moses.lines import LineReader
from moses_feature.moses.words import WordOptions
from moses_feature.networks.phrases import PackedSequences
from moses_feature.networks.vocabulary import UNKNOWN, Vocabulary
from moses_feature.phrases.objective import BatchSampler
from moses_feature.phrases.pairs import (
    PairCollection,
    PhrasePair,
    PhrasePairs,
    read_pairs,
)
from moses_feature.runtime.errors import FormatError, MosesFeatureError

TABLE = b"""\
a ||| A ||| 0.5 ||| 0-0 ||| 4 3 2 ||| |||
a ||| A B ||| 0.5 ||| 0-0 ||| 4 3
a b ||| B ||| 0.5
a b ||| B ||| 0.1 ||| ||| 9 9 9
"""


def read(path: Path, content: bytes, options: WordOptions = WordOptions()) -> list[PhrasePair]:  # noqa: B008
    path.write_bytes(content)
    with LineReader(path) as reader:
        return list(read_pairs(reader, options))


def test_tables_and_tab_separated_files(tmp_path):
    pairs = read(tmp_path / "t", TABLE)
    assert [pair.count for pair in pairs] == [2, 1, 1, 9]
    assert pairs[1] == PhrasePair([b"a"], [b"A", b"B"], 1)
    tabs = read(tmp_path / "t", b"a\tA\na\tA B\r\na b\tB\na b\tB\n")
    assert [(p.source, p.target) for p in tabs] == [(p.source, p.target) for p in pairs]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a ||| A\n", "line 1: expected 3 to 7 fields"),
        (b"a ||| A ||| 1\na A 1\n", "line 2: expected 3 to 7 fields"),
        (b"a ||| A ||| 1 ||| ||| 1 2 x\n", "line 1: expected a joint count, found 'x'"),
        (b"a A\n", "line 1: expected a line of a phrase table, or two columns"),
        (b"a\tA\nb\tB\tC\n", "line 2: expected a line of a phrase table, or two columns"),
    ],
)
def test_bad_lines(tmp_path, content, message):
    with pytest.raises(FormatError, match=message):
        read(tmp_path / "t", content)


def test_rules_are_refused_with_their_line(tmp_path):
    with pytest.raises(MosesFeatureError, match=r"at line 1: .*hierarchical"):
        read(tmp_path / "t", b"[X][X] a [X] ||| [X][X] A [X] ||| 1 ||| 0-0\n")


def test_pairs_are_unique_and_counts_weighted(tmp_path):
    collection = PairCollection(read(tmp_path / "t", TABLE))
    assert len(collection) == 3
    assert collection.source_counts() == {b"a": 4, b"b": 1}
    assert collection.target_counts() == {b"A": 3, b"B": 2}
    vocabulary = Vocabulary((b"a",))
    pairs = collection.pairs(vocabulary, Vocabulary((b"B", b"A")), 0.5, 10, 1)
    assert pairs.source.ids.tolist() == [2, 2, 2, UNKNOWN]
    assert pairs.target.ids.tolist() == [3, 3, 2, 2]
    assert pairs.target.offsets.tolist() == [0, 1, 3, 4]


def many_pairs(count: int, held_out: float = 0.1, seed: int = 1) -> PhrasePairs:
    generator = np.random.default_rng(3)

    def phrase() -> list[bytes]:
        return [b"w%d" % w for w in generator.integers(0, 50, generator.integers(1, 8))]

    sources = [phrase() for _ in range(count // 3)]
    collection = PairCollection(
        PhrasePair(sources[generator.integers(len(sources))], phrase(), 1.0) for _ in range(count)
    )
    vocabulary = Vocabulary(tuple(b"w%d" % w for w in range(50)))
    return collection.pairs(vocabulary, vocabulary, held_out, 10_000, seed)


def sources(pairs: PhrasePairs, rows: np.ndarray) -> set[tuple[int, ...]]:
    padded, lengths = pairs.source.padded(rows, 0)
    return {tuple(row[:length]) for row, length in zip(padded.tolist(), lengths, strict=True)}


def test_no_source_phrase_is_on_both_sides():
    pairs = many_pairs(3001)
    training = sources(pairs, np.flatnonzero(~pairs.held_out))
    held_out = sources(pairs, np.flatnonzero(pairs.held_out))
    assert not training & held_out
    assert len(held_out) == pytest.approx(0.1 * len(training | held_out), abs=1)
    assert not np.array_equal(pairs.held_out, many_pairs(3001, seed=2).held_out)


def test_one_source_phrase_is_not_held_out():
    collection = PairCollection([PhrasePair([b"a"], [b"A"], 1.0), PhrasePair([b"a"], [b"B"], 1.0)])
    vocabulary = Vocabulary((b"a",))
    assert not collection.pairs(vocabulary, vocabulary, 0.5, 10, 1).held_out.any()


def test_padded():
    phrases = PackedSequences.pack([[5], [], [6, 7, 8]])
    padded, lengths = phrases.padded(np.array([2, 0, 1]), 0)
    assert padded.tolist() == [[6, 7, 8, 0], [5, 0, 0, 0], [0, 0, 0, 0]]
    assert lengths.tolist() == [3, 1, 0]


def words_of(pairs):
    return pairs.sides


def test_each_epoch_holds_each_pair_once():
    pairs = many_pairs(1009)
    rows = np.flatnonzero(~pairs.held_out)
    sampler = BatchSampler(words_of(pairs), rows, 7, seed=5, pool=100)
    assert sampler.updates_per_epoch > 100
    for epoch in range(2):
        first = epoch * sampler.updates_per_epoch
        batches = [sampler.batch(first + n) for n in range(sampler.updates_per_epoch)]
        assert sorted(np.concatenate(batches).tolist()) == rows.tolist()


def test_batches_depend_on_seed_and_update_alone():
    pairs = many_pairs(1009)
    rows = np.flatnonzero(~pairs.held_out)
    one, other = (BatchSampler(words_of(pairs), rows, 7, seed=5, pool=100) for _ in range(2))
    expected = [one.batch(update) for update in range(400)]
    for update in (399, 3, 150):
        assert np.array_equal(other.batch(update), expected[update])
    assert not np.array_equal(
        BatchSampler(words_of(pairs), rows, 7, seed=6, pool=100).batch(0), expected[0]
    )


def test_every_pair_has_the_same_chance_in_each_update():
    """Over many seeds, long and short pairs are equally often in the first update."""
    pairs = many_pairs(211)
    rows = np.flatnonzero(~pairs.held_out)
    seeds = 3000
    drawn: Counter[int] = Counter()
    for seed in range(seeds):
        drawn.update(BatchSampler(words_of(pairs), rows, 19, seed, 100).batch(0).tolist())
    lengths = pairs.target.lengths(rows)
    per_length = [
        np.mean([drawn[row] for row in rows[lengths == length]]) for length in range(1, 8)
    ]
    expected = sum(drawn.values()) / len(rows)
    np.testing.assert_allclose(per_length, expected, rtol=0.1)


@needs_shared
def test_little_is_padded_on_a_real_table():
    with LineReader(SHARED / "moses-regression/phrase-tables/latin1-3fields-5scores.gz") as reader:
        collection = PairCollection(read_pairs(reader, WordOptions()))
    vocabulary = Vocabulary(())
    pairs = collection.pairs(vocabulary, vocabulary, 0.01, 10_000, 1)
    sampler = BatchSampler(words_of(pairs), np.flatnonzero(~pairs.held_out), 64, seed=1, pool=100)
    places = words = 0
    for update in range(sampler.updates_per_epoch):
        for side in (pairs.source, pairs.target):
            padded, lengths = side.padded(sampler.batch(update), 0)
            places += padded.size
            words += int((lengths + 1).sum())
    assert 1 - words / places < 0.15
