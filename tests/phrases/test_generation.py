"""What networks write: against enumeration of all targets, in any batch, and as a command."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from helpers.equations import reference_log_probs, search_log_probs
from helpers.models import SEARCH_SIZES, SIZES, random_model

from moses_feature.moses.words import WordOptions
from moses_feature.networks.direction import FORWARD, Direction
from moses_feature.networks.pair_network import network_of
from moses_feature.networks.vocabulary import UNKNOWN, Vocabulary
from moses_feature.phrases.generation.generator import Generator, generator_of
from moses_feature.phrases.generation.prefixes import draw, likeliest
from moses_feature.phrases.model import PhraseModel, save_model

SOURCES = [[2, 5, 3], [4], [], [1, 1, 7, 2, 3], [4, 2]]
LONGEST = 3
EVERY = [t for n in range(LONGEST + 1) for t in itertools.product(range(1, 4), repeat=n)]


def small_model(kind: str, direction: Direction = FORWARD) -> PhraseModel:
    """Return a model with two target words that is not too sure of anything."""
    sizes = SIZES if kind == "phrases" else SEARCH_SIZES
    model = random_model(sizes, 3, scale=0.6)
    target = Vocabulary((b"A", b"B"))
    network = network_of(sizes, len(model.source), len(target))
    weights = {
        name: tensor[: len(target)] if name.startswith(("target_emb", "output_words")) else tensor
        for name, tensor in model.network.state_dict().items()
    }
    network.load_state_dict(weights)
    return PhraseModel(network, model.source, target, WordOptions(), {}, True, direction)


@pytest.fixture(params=["phrases", "search"])
def kind(request) -> str:
    return request.param


@pytest.fixture
def generator(kind, tmp_path: Path) -> Generator:
    save_model(tmp_path / "m", small_model(kind))
    return generator_of(tmp_path / "m")


def exact(kind: str, source: list[int]) -> dict[tuple[int, ...], float]:
    """Return log p of all targets that are not too long."""
    model = small_model(kind)
    if kind == "phrases":
        return {t: reference_log_probs(model, source, list(t)).sum() for t in EVERY}
    return {t: search_log_probs(model, source, list(t))[0].sum() for t in EVERY}


def test_a_wide_beam_finds_all_targets(kind, generator):
    found = likeliest(generator.empty(SOURCES), [LONGEST] * len(SOURCES), 1000)
    for source, targets in zip(SOURCES, found, strict=True):
        expected = exact(kind, source)
        assert {target.ids for target in targets} == set(EVERY)
        log_probs = [target.log_prob for target in targets]
        assert log_probs == sorted(log_probs, reverse=True)
        for target in targets:
            assert target.log_prob == pytest.approx(expected[target.ids], abs=1e-5)


def test_a_narrow_beam_gives_up_what_cannot_win(kind, generator):
    """With as many prefixes as there can be of each length, the best are the best of all."""
    beam = 27
    found = likeliest(generator.empty(SOURCES), [LONGEST] * len(SOURCES), beam)
    for source, targets in zip(SOURCES, found, strict=True):
        expected = exact(kind, source)
        assert [t.ids for t in targets] == sorted(EVERY, key=lambda t: -expected[t])[:beam]
    without = likeliest(generator.empty(SOURCES), [LONGEST] * len(SOURCES), 5, [UNKNOWN])
    assert all(UNKNOWN not in target.ids for targets in without for target in targets)


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_samples_are_as_frequent_as_they_are_likely(kind, generator, temperature):
    """A chi-squared test of 20,000 samples; they depend on the seed, so that it is one test."""
    model, count = small_model(kind), 20_000
    source = SOURCES[0]
    (drawn,) = draw(generator.empty([source]), [source], [LONGEST], count, temperature)
    assert sum(target.count for target in drawn) == count
    expected = np.array([sampled_probability(kind, model, source, t, temperature) for t in EVERY])
    assert expected.sum() == pytest.approx(1.0)
    counts = {target.ids: target.count for target in drawn}
    found = np.array([counts.get(target, 0) for target in EVERY])
    often = expected * count >= 5
    rest = expected[~often].sum() * count
    terms = (found[often] - expected[often] * count) ** 2 / (expected[often] * count)
    statistic = terms.sum() + (found[~often].sum() - rest) ** 2 / max(rest, 1.0)
    freedom = int(often.sum())
    assert freedom >= 5
    assert statistic < freedom + 4 * np.sqrt(2 * freedom)  # once in some ten thousand


def sampled_probability(kind, model, source, target, temperature) -> float:
    """Return how likely a target is drawn: each step with a temperature, the last one sure."""
    log_probs = reference_log_probs if kind == "phrases" else lambda *a: search_log_probs(*a)[0]
    total = 0.0
    for place in range(len(target) + 1):
        if place == LONGEST:
            break
        of_word = np.array(
            [log_probs(model, source, [*target[:place], w])[place] for w in range(4)]
        )
        scaled = of_word / temperature
        word = target[place] if place < len(target) else 0
        total += scaled[word] - np.log(np.exp(scaled).sum())
    return float(np.exp(total))


def assert_same(found, expected):
    """Compare targets: the same words as often, and the same log p but for rounding."""
    for some, others in zip(found, expected, strict=True):
        assert [(of.ids, of.count) for of in some] == [(of.ids, of.count) for of in others]
        np.testing.assert_allclose(
            [of.log_prob for of in some], [of.log_prob for of in others], atol=1e-5
        )


def test_what_is_drawn_does_not_depend_on_the_phrases_beside(generator, monkeypatch):
    together = generator.samples(SOURCES, 30)
    assert_same([generator.samples([source], 30)[0] for source in SOURCES], together)
    assert_same(generator.samples(SOURCES[::-1], 30), together[::-1])
    assert generator.samples(SOURCES, 30, seed=2) != together
    found = generator.likeliest(SOURCES, 7)
    assert_same([generator.likeliest([source], 7)[0] for source in SOURCES], found)
    monkeypatch.setattr("moses_feature.phrases.generation.generator.LOG_PROBS_TOGETHER", 200)
    assert_same(generator.samples(SOURCES, 30), together)
    assert generator.samples([], 30) == []


def test_more_phrases_than_go_through_a_network_together(generator):
    several = [[2 + n % 9, 2 + n // 9 % 9, 2 + n // 81] for n in range(150)]
    found = generator.likeliest(several, 3)
    assert_same(found, [generator.likeliest([source], 3)[0] for source in several])
    assert len({targets[0].log_prob for targets in found}) == len(several)


def test_the_command(kind, generator, tmp_path, run):
    del generator
    text = b"a the dog\n\nb zzz c\n"
    lines = run(
        "model", "sample", "m", "--samples", "40", "--best", "3", stdin=text
    ).stdout.splitlines()
    rows = [line.split("\t") for line in lines]
    assert {row[0] for row in rows} == {"a the dog", "", "b zzz c"}
    assert all(sum(row[0] == source for row in rows) <= 3 for source in ("a the dog", ""))
    (tmp_path / "pairs").write_text("".join(f"{row[0]}\t{row[1]}\n" for row in rows))
    if kind == "phrases" and not any("<unk>" in row[1] for row in rows):
        scores = run("model", "score", "m", stdin=(tmp_path / "pairs").read_bytes()).stdout.split()
        np.testing.assert_allclose(
            [float(s) for s in scores], [float(row[2]) for row in rows], atol=2e-5
        )
    beam = run(
        "model", "sample", "m", "--beam", "4", "--best", "9", stdin=b"a\n"
    ).stdout.splitlines()
    assert len(beam) == 4
    assert {line.count("\t") for line in beam} == {2}
    for wrong in (b"a\nb\tA\n", b"a\nb ||| A\n"):
        refused = run("model", "sample", "m", stdin=wrong, exit_code=1)
        assert "standard input at line 2: expected a source phrase alone" in refused.stderr
    refused = run("model", "sample", "m", "--beam", "4", "--seed", "3", stdin=b"a\n", exit_code=2)
    assert "--seed is of drawing" in refused.stderr


def test_the_last_word_first(tmp_path):
    save_model(tmp_path / "m", small_model("search", Direction(right_to_left=True)))
    generator = generator_of(tmp_path / "m")
    (targets,) = generator.likeliest([[2, 5]], 20)
    longest = max(targets, key=lambda target: len(target.ids))
    names = {1: b"<unk>", 2: b"A", 3: b"B"}
    assert generator.words(longest) == [names[word] for word in reversed(longest.ids)]
