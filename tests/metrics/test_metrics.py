"""Each metric against sacreBLEU, or against a plain program."""

from __future__ import annotations

import numpy as np
import pytest
import sacrebleu

from mert.settings import TuningSettings
from moses_feature.metrics import METRICS, metric_of
from moses_feature.runtime.errors import UsageError

WORDS = ["a", "bc", "dé", "fgh", "&apos;", "ij\u00a0k", "lm"]


def texts(seed: int, references: int, sentences: int = 40):
    generator = np.random.default_rng(seed)

    def text() -> list[str]:
        return generator.choice(WORDS, generator.integers(0, 12)).tolist()

    return [text() for _ in range(sentences)], [
        [text() or ["a"] for _ in range(references)] for _ in range(sentences)
    ]


def counted(name: str, hypotheses, references) -> np.ndarray:
    return np.concatenate(
        [
            metric_of(name)
            .references([[word.encode() for word in text] for text in of_sentence])
            .statistics([[word.encode() for word in hypothesis]])
            for hypothesis, of_sentence in zip(hypotheses, references, strict=True)
        ]
    )


def shown(name: str, hypotheses, references) -> float:
    statistics = counted(name, hypotheses, references)
    assert statistics.shape == (len(hypotheses), metric_of(name).width)
    return metric_of(name).shown(metric_of(name).quality(statistics.sum(axis=0)))


def by_sacrebleu(metric, hypotheses, references) -> float:
    system = [" ".join(text).replace("\u00a0", "_") for text in hypotheses]
    streams = [
        [" ".join(text).replace("\u00a0", "_") for text in stream]
        for stream in zip(*references, strict=True)
    ]
    return metric.corpus_score(system, streams).score


@pytest.mark.parametrize("references", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_against_sacrebleu(seed, references):
    hypotheses, of_sentences = texts(seed, references)
    ter = by_sacrebleu(sacrebleu.TER(case_sensitive=True), hypotheses, of_sentences)
    assert shown("ter", hypotheses, of_sentences) == pytest.approx(ter)
    chrf = by_sacrebleu(sacrebleu.CHRF(), hypotheses, of_sentences)
    assert shown("chrf", hypotheses, of_sentences) == pytest.approx(chrf)
    plain = sacrebleu.BLEU(tokenize="none", smooth_method="none", force=True)
    bleu = by_sacrebleu(plain, hypotheses, of_sentences)
    assert shown("bleu", hypotheses, of_sentences) == pytest.approx(bleu)


def distance(one: list[str], other: list[str]) -> int:
    """Return the edit distance, by its definition."""
    if not one or not other:
        return len(one) + len(other)
    return min(
        distance(one[1:], other) + 1,
        distance(one, other[1:]) + 1,
        distance(one[1:], other[1:]) + (one[0] != other[0]),
    )


@pytest.mark.parametrize("references", [1, 2])
def test_errors_against_their_definition(references):
    hypotheses, of_sentences = texts(7, references)
    hypotheses = [text[:6] for text in hypotheses]
    of_sentences = [[text[:6] for text in of_one] for of_one in of_sentences]
    errors = words = 0
    for hypothesis, of_one in zip(hypotheses, of_sentences, strict=True):
        fewest = min((distance(hypothesis, text), len(text)) for text in of_one)
        errors += fewest[0]
        words += fewest[1]
    assert shown("wer", hypotheses, of_sentences) == pytest.approx(100 * errors / words)
    right = sum(text in of_one for text, of_one in zip(hypotheses, of_sentences, strict=True))
    assert shown("accuracy", hypotheses, of_sentences) == pytest.approx(100 * right / 40)


@pytest.mark.parametrize("name", METRICS)
def test_a_reference_is_perfect_and_nothing_is_worse(name):
    _, of_sentences = texts(5, 1)
    references = [of_one[0] for of_one in of_sentences]
    perfect = counted(name, references, of_sentences)
    empty = counted(name, [[] for _ in references], of_sentences)
    assert metric_of(name).quality(perfect.sum(axis=0)) == pytest.approx(1)
    assert metric_of(name).quality(empty.sum(axis=0)) == pytest.approx(0)
    assert np.all(metric_of(name).of_sentences(perfect) >= metric_of(name).of_sentences(empty))
    assert metric_of(name).shown(1.0) == (0.0 if metric_of(name).is_error else 100.0)


def test_mira_begins_with_a_perfect_sentence_of_four_words():
    words = ["a", "b", "c", "d"]
    assert counted("bleu", [words], [[words]]).tolist() == [[*metric_of("bleu").background]]


def test_names():
    assert metric_of("wer").label == "WER"
    with pytest.raises(UsageError, match="expected one of bleu, wer, ter, chrf, accuracy"):
        TuningSettings(metric="meteor")
