"""Lattices against all derivations, and line search on them against line search on all paths."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from helpers.toy import TYPE, Toy, all_derivations, features_of, make_toy

from mert.decoders.embedded.decoder import EmbeddedDecoder, SearchLimits
from mert.decoders.embedded.system import System
from mert.decoders.embedded.workers import Workers
from mert.lattices.files import Vocabulary, format_lattice, read_lattices
from mert.lattices.lattice import BEGINNING, Lattice, together
from mert.lattices.lines import REACH, LatticeLines
from mert.lattices.paths import best_scores
from mert.lattices.strings import CountedStrings
from mert.lattices.union import union
from mert.optimisers.candidates import Candidates
from mert.optimisers.line_search import LineSearch
from moses_feature.errors import FormatError
from moses_feature.metrics.metric import METRICS

WIDE = SearchLimits(pops=20_000, stack=20_000)
SENTENCES = ["a b c", "", "c a a b", "d x b"]
EDGES = "mert.decoders.embedded.decoder.EDGES_OF_A_WORD"

Path_ = tuple[tuple[int, ...], np.ndarray]


def paths_of(lattice: Lattice) -> list[Path_]:
    """Return words and feature values of all paths, found one after the other."""
    at_node: list[list[Path_]] = []
    for node in range(len(lattice.nodes) - 1):
        found = []
        for edge in range(lattice.nodes[node], lattice.nodes[node + 1]):
            tail = lattice.tails[edge]
            start: Path_ = ((), np.zeros(lattice.features.shape[1]))
            for words, values in [start] if tail == BEGINNING else at_node[tail]:
                found.append((words + lattice.words[edge], values + lattice.features[edge]))
        at_node.append(found)
    return at_node[-1] if at_node else []


def lattices_of(
    toy: Toy, folder: Path, vocabulary: Vocabulary, sentences: list[str] = SENTENCES
) -> list[Lattice]:
    decoder = EmbeddedDecoder(System.of_ini(toy.ini), [s.encode().split() for s in sentences], WIDE)
    decoder.write_lattices(decoder.features, folder / "l.gz")
    names = decoder.features.names
    return list(read_lattices(folder / "l.gz", vocabulary, len(names), len(sentences)))


def in_order(paths: list[tuple[bytes, np.ndarray]]) -> tuple[list[bytes], np.ndarray]:
    """Sort paths by their words, and by a random product of their features."""
    direction = np.random.default_rng(1).normal(size=len(paths[0][1]))
    paths = sorted(paths, key=lambda path: (path[0], float(path[1] @ direction)))
    return [words for words, _ in paths], np.array([values for _, values in paths])


@pytest.mark.parametrize(
    "settings",
    [
        {"types": (), "limit": 0},
        {"types": (TYPE,), "limit": 2},
        {"types": ("monotonicity-bidirectional-fe-collapseff", "leftright-bidirectional-fe")},
        {"tables": 2, "models": 2},
        {"models": 0, "joint": 1, "neural": 1},
        {"networks": 1, "types": ()},
    ],
)
def test_the_paths_are_all_derivations(tmp_path, monkeypatch, settings):
    """Words and features of each path of a lattice from which nothing is left out."""
    monkeypatch.setattr(EDGES, 10**6)
    toy = make_toy(tmp_path / "toy", options=2, **settings)
    tuneable = EmbeddedDecoder(System.of_ini(toy.ini), []).features.tuneable
    vocabulary = Vocabulary()
    lattices = lattices_of(toy, tmp_path, vocabulary)
    recombined = 0
    for sentence, lattice in zip(SENTENCES, lattices, strict=True):
        found = in_order(
            [
                (b" ".join(vocabulary.words[word] for word in words), values)
                for words, values in paths_of(lattice)
            ]
        )
        source = sentence.split()
        derivations = [
            (
                " ".join(step.target for step in steps).encode(),
                features_of(toy, source, steps)[tuneable],
            )
            for steps in all_derivations(toy, source)
            if source
        ]
        expected = in_order(derivations or [(b"", np.zeros(int(tuneable.sum())))])
        assert found[0] == expected[0]
        np.testing.assert_allclose(found[1], expected[1], atol=3e-5)
        recombined += len(found[0]) > len(lattice)
    assert recombined or not {"networks", "neural"}.isdisjoint(settings)


def references_of(count: int, words: list[bytes]) -> list[list[list[bytes]]]:
    generator = np.random.default_rng(7)
    return [[list(generator.choice(words, 4)) for _ in range(2)] for _ in range(count)]


def counted(
    lattices: list[Lattice], vocabulary: Vocabulary, metric: str
) -> tuple[LatticeLines, Candidates]:
    """Return lattices to search, and all their paths as hypotheses."""
    of = METRICS[metric]
    known = [word for word in vocabulary.words if word]
    references = [of.references(r) for r in references_of(len(lattices), known)]
    strings = CountedStrings(references, vocabulary.words, of.width)
    lines = LatticeLines(together(lattices, range(len(lattices))), strings)
    features, statistics, sizes = [], [], []
    for lattice, reference in zip(lattices, references, strict=True):
        paths = paths_of(lattice)
        features += [values for _, values in paths]
        texts = [[vocabulary.words[word] for word in words] for words, _ in paths]
        statistics.append(reference.statistics(texts))
        sizes.append(len(paths))
    names = tuple(map(str, range(len(features[0]))))
    offsets = np.cumsum([0, *sizes])
    return lines, Candidates(np.array(features), np.concatenate(statistics), offsets, names)


def random_lattices(seed: int) -> tuple[list[Lattice], Vocabulary]:
    """Return lattices of random edges; all nodes are reached, and some edges have no words."""
    generator = np.random.default_rng(seed)
    vocabulary = Vocabulary()
    words = [b"A", b"B C", b"", b"C", b"D A A"]
    lattices = []
    for _ in range(11):
        nodes = [0]
        tails: list[int] = []
        for node in range(int(generator.integers(1, 7))):
            some = generator.integers(-1, node, int(generator.integers(1, 4)))
            tails += some.tolist() if node else [BEGINNING] * len(some)
            nodes.append(len(tails))
        features = generator.normal(size=(len(tails), 5)).astype(np.float32)
        phrases = [vocabulary.of_phrase(words[n]) for n in generator.integers(0, 5, len(tails))]
        heads = np.repeat(np.arange(len(nodes) - 1), np.diff(nodes))
        spans = np.column_stack([np.zeros(len(tails), np.int32), heads - tails - 1])
        lattices.append(Lattice(features, np.array(tails), np.array(nodes), spans, phrases))
    return lattices, vocabulary


@pytest.mark.parametrize("metric", ["bleu", "wer", "chrf"])
@pytest.mark.parametrize("seed", range(5))
def test_line_search_against_that_on_all_paths(seed, metric):
    lines, candidates = counted(*random_lattices(seed), metric)
    plain = LineSearch(candidates)
    generator = np.random.default_rng(seed)
    for bounds in ((-np.inf, np.inf), (-0.3, 0.7), (0.0, np.inf)):
        for direction in (*np.eye(5), *generator.normal(size=(5, 5))):
            weights = generator.normal(size=5)
            scores = lines.scores(weights)
            chosen = lines.chosen(scores)
            expected = candidates.chosen(candidates.features @ weights)
            quality = candidates.quality_of_rows(expected)
            assert lines.quality_of_rows(chosen) == pytest.approx(quality, abs=1e-12)
            step = lines.along(scores, chosen, lines.line(direction), *bounds)
            inside = max(bounds[0], -REACH), min(bounds[1], REACH)
            of_plain = plain.along(
                candidates.features @ weights, expected, plain.line(direction), *inside
            )
            assert step.quality == pytest.approx(of_plain.quality, abs=1e-12)
            assert step.gamma == pytest.approx(of_plain.gamma, abs=1e-6)
            assert candidates.quality(weights + step.gamma * direction) == pytest.approx(
                step.quality, abs=1e-12
            )


def test_parts_together_are_the_whole():
    lattices, vocabulary = random_lattices(3)
    lines, _ = counted(lattices, vocabulary, "bleu")
    weights = np.random.default_rng(3).normal(size=5)
    rows = [
        lines.part(part, 2).chosen(lines.part(part, 2).scores(weights)).tolist()
        for part in range(2)
    ]
    together_again = [rows[n % 2][n // 2] for n in range(len(lattices))]
    assert together_again == lines.chosen(lines.scores(weights)).tolist()


def as_set(paths: list[Path_]) -> set[tuple[tuple[int, ...], bytes]]:
    return {(words, np.round(values + 0.0, 3).tobytes()) for words, values in paths}


def test_a_union_of_others_has_all_paths():
    lattices, _ = random_lattices(3)
    for one, other in itertools.pairwise(lattices):
        both = paths_of(one) + paths_of(other)
        assert as_set(paths_of(union(one, other))) == as_set(both)
        assert as_set(paths_of(union(one, one))) == as_set(paths_of(one))
        assert len(union(one, one)) == len(one)
        assert len(union(one, other)) == len(one) + len(other)
    nothing = Lattice.nothing(5)
    assert union(nothing, lattices[0]) is union(lattices[0], nothing) is lattices[0]


def test_the_union_of_some_searches(tmp_path, monkeypatch):
    """All paths of all of them; what several have found is there once."""
    toy = make_toy(tmp_path / "toy", options=3)
    sentences = [sentence.encode().split() for sentence in SENTENCES]
    decoder = EmbeddedDecoder(System.of_ini(toy.ini), sentences, WIDE)
    size = len(decoder.features.names)

    def lattices(most: int, seed: int) -> list[Lattice]:
        monkeypatch.setattr(EDGES, most)
        weights = np.random.default_rng(seed).uniform(0.1, 1, size)
        decoder.write_lattices(decoder.features.with_weights(weights), tmp_path / "l.gz")
        return list(read_lattices(tmp_path / "l.gz", vocabulary, size, len(SENTENCES)))

    vocabulary = Vocabulary()
    whole = [as_set(paths_of(lattice)) for lattice in lattices(10**6, 1)]
    joined = lattices(9, 1)
    shared = 0
    for seed in range(2, 9):
        found = lattices(9, seed)
        both = [union(one, other) for one, other in zip(joined, found, strict=True)]
        for one, other, of_both, all_paths in zip(joined, found, both, whole, strict=True):
            paths = as_set(paths_of(of_both))
            assert as_set(paths_of(one)) | as_set(paths_of(other)) <= paths <= all_paths
            shared += len(one) + len(other) - len(of_both)
            assert len(union(of_both, other)) == len(union(of_both, one)) == len(of_both)
        joined = both
    assert shared > 100


def test_few_edges_are_those_of_the_best_paths(tmp_path, monkeypatch):
    toy = make_toy(tmp_path / "toy", options=3)
    features = EmbeddedDecoder(System.of_ini(toy.ini), []).features
    weights = features.weights[features.tuneable]
    found = {}
    for most in (2, 10**6):
        monkeypatch.setattr(EDGES, most)
        vocabulary = Vocabulary()
        lattices = lattices_of(toy, tmp_path, vocabulary, ["a b c", "c a a b"])
        found[most] = [
            sorted(
                (float(values @ weights), b" ".join(vocabulary.words[w] for w in words))
                for words, values in paths_of(lattice)
            )
            for lattice in lattices
        ]
        all_of_them = together(lattices, range(2))
        scores = best_scores(all_of_them, all_of_them.features.T.astype(float) @ weights)
        np.testing.assert_allclose(scores, [paths[-1][0] for paths in found[most]], atol=1e-9)
    for sentence, (few, many) in enumerate(zip(found[2], found[10**6], strict=True)):
        assert 1 < len(few) < len(many)
        assert {words for _, words in few} <= {words for _, words in many}
        # No path that is left out is better than one that alone asked for an edge.
        assert few[-1] == pytest.approx(many[-1]) or few[-1][1] == many[-1][1], sentence


def test_the_number_of_processes_does_not_matter(tmp_path):
    toy = make_toy(tmp_path / "toy")
    sentences = [s.encode().split() for s in ("a b c", "d", "", "b x a", "c c a", "a d")]
    system = System.of_ini(toy.ini)
    alone = EmbeddedDecoder(system, sentences)
    alone.write_lattices(alone.features, tmp_path / "alone.gz")
    workers = Workers(system, sentences, SearchLimits(), 3)
    try:
        for _ in range(2):
            workers.write_lattices(workers.features, tmp_path / "together.gz")
    finally:
        workers.close()
    both = [gzip.decompress((tmp_path / f"{n}.gz").read_bytes()) for n in ("alone", "together")]
    assert both[0] == both[1]


def test_damaged_files(tmp_path):
    arrays = {
        "features": np.ones((2, 3)),
        "tails": np.array([-1, 0]),
        "nodes": np.arange(3),
        "spans": np.zeros((2, 2)),
        "phrase": np.arange(2),
        "phrases": [b"A B", b""],
    }
    one = format_lattice(**arrays)
    path = tmp_path / "l.gz"

    def read(content: bytes, features: int = 3, sentences: int = 2) -> Iterator[Lattice]:
        path.write_bytes(gzip.compress(content))
        return list(read_lattices(path, Vocabulary(), features, sentences))

    first, second = read(one + one)
    assert first.words == second.words == [(0, 1), ()]
    assert first.tails.tolist() == [-1, 0]
    for content, *wrong in ((one,), (one + one[:-3],), (one + b"x" * 90,), (b"",)):
        with pytest.raises(FormatError, match="the lattices of a tuning run, found damage"):
            read(content, *wrong)
    wrong = (
        {"tails": np.array([-1, 1])},
        {"tails": np.array([-2, 0])},
        {"nodes": np.array([0, 2, 1])},
        {"nodes": np.array([0, 0, 2])},
        {"phrase": np.array([0, 2])},
        {"phrase": np.array([0, -1])},
        {"spans": np.zeros((3, 2))},
        {"features": np.ones(2)},
    )
    for array in wrong:
        with pytest.raises(FormatError, match="arrays that do not fit together"):
            read(format_lattice(**{**arrays, **array}), 3, 1)
    with pytest.raises(FormatError, match="4 features"):
        read(one, 4, 1)
    with pytest.raises(FormatError, match="of 2 sentences, found more"):
        read(one * 3)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(FormatError, match="damage"):
        list(read_lattices(path, Vocabulary(), 3, 3))
