"""The sentences that a system of a comparison translates otherwise than the baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from pathlib import Path

import numpy as np
from markupsafe import Markup

from mert.comparison.results import SystemResult
from mert.tuning.corpus import Corpus
from moses_feature.metrics.bleu import BLEU
from moses_feature.metrics.metric import Metric
from moses_feature.moses.nbest_formats.reader import NbestReader
from moses_feature.moses.nbest_lists import NbestLine, nbest_lines
from moses_feature.moses.segmentation import PhrasePlace
from moses_feature.report.page import (
    NOTHING,
    Section,
    rendered,
    shown_text,
    template_of,
)

Words = tuple[bytes, ...]


@dataclass(frozen=True)
class WeightedTranslation:
    """The first translation of a sentence.

    Attributes:
        words: its words.
        phrases: its phrase pairs; empty if the list does not give them.
        values: the weighted values of the features by name, such as `LM0_0`.
    """

    words: Words
    phrases: tuple[PhrasePlace, ...]
    values: Mapping[str, float]


@dataclass(frozen=True)
class Change:
    """A sentence that two systems translate differently.

    Attributes:
        sentence: its number, from 0.
        before, after: the translations of the baseline and of the system.
        gain: the gain in the quality of the sentence, 0 to 100.
        listed: translations in the system's list.
        decided: for each feature of the system, how much higher its weighted value is for the
            system's translation than for the baseline's, largest first; None if the latter is not
            in the system's list.
    """

    sentence: int
    before: WeightedTranslation
    after: WeightedTranslation
    gain: float
    listed: int
    decided: tuple[tuple[str, float], ...] | None


def changes(
    before: tuple[Path, Mapping[str, float], np.ndarray],
    after: tuple[Path, Mapping[str, float], np.ndarray],
    sentences: Sequence[Words],
    metric: Metric = BLEU,
) -> Iterator[Change]:
    """Yield the sentences that two systems translate differently.

    Args:
        before: n-best lists, weights of the features by name, and statistics of a baseline.
        after: the same for a system.
        sentences: the source text.
        metric: what the statistics are of.

    Raises:
        FormatError: a line that is not one of an n-best list, or whose phrases do not match the
            sentence.
    """
    gains = 100 * (metric.of_sentences(after[2]) - metric.of_sentences(before[2]))
    theirs = {number: next(lists) for number, lists in _lists(before[0], before[1], sentences)}
    for number, lists in _lists(after[0], after[1], sentences):
        mine, old = next(lists), theirs.get(number)
        if old is None or old.words == mine.words:
            continue
        rest = list(lists)
        other = next((t for t in rest if t.words == old.words), None)
        decided = None
        if other is not None:
            said = {name: mine.values[name] - other.values[name] for name in mine.values}
            decided = tuple(sorted(said.items(), key=lambda of: -of[1]))
        yield Change(number, old, mine, float(gains[number]), 1 + len(rest), decided)


def _lists(
    path: Path, weights: Mapping[str, float], sentences: Sequence[Words]
) -> Iterator[tuple[int, Iterator[WeightedTranslation]]]:
    """Yield the number and the list of each sentence."""
    with NbestReader(path) as reader:
        lines = nbest_lines(reader, len(sentences))
        for number, of_sentence in groupby(lines, key=lambda line: line.sentence):
            yield number, (_translation(line, weights, sentences[number]) for line in of_sentence)


def _translation(
    line: NbestLine, weights: Mapping[str, float], source: Words
) -> WeightedTranslation:
    values = {
        (of := f"{name}_{place}"): weights[of] * value
        for name, of_name in line.labelled().items()
        for place, value in enumerate(of_name)
    }
    return WeightedTranslation(tuple(line.words), tuple(line.phrases(len(source))), values)


MOST_SHOWN = 50
"""Sentences on either side."""
TEMPLATE = template_of(Path(__file__).parent / "templates" / "changes.html")
MOST_FEATURES = 4
"""The number of deciding features that are shown."""


def changes_section(
    baseline: SystemResult, system: SystemResult, test: Corpus, metric: Metric
) -> Section:
    """Return the sentences of the test text that gained and lost most."""
    run, other = system.runs[0], baseline.runs[0]
    found = sorted(
        changes(
            (other.test_lists, other.weights, other.test_statistics),
            (run.test_lists, run.weights, run.test_statistics),
            test.sentences,
            metric,
        ),
        key=lambda change: -change.gain,
    )
    gains = [change for change in found if change.gain > 0]
    losses = [change for change in found[::-1] if change.gain < 0]
    shown = [*gains[:MOST_SHOWN], *losses[:MOST_SHOWN]]
    names = baseline.name, system.name
    return Section(
        f"What {system.name} changes",
        f"{len(found):,} of {len(test):,} sentences are translated otherwise than by "
        f"{baseline.name} (run {run.seed} of either): {len(gains):,} with a better "
        f"{metric.label} of the sentence, {len(losses):,} with a worse one. Up to {MOST_SHOWN} of "
        "either are here, those that changed most first; words that only one of both has are "
        f"marked. Below each stands which features of {system.name} decided: the weighted values "
        "of its own translation less those of the other, most in favour first.",
        rendered(
            TEMPLATE,
            system=system.name,
            changes=[_shown(change, names, test) for change in shown],
        )
        if shown
        else Markup(),
        folded=bool(shown),
    )


def _shown(change: Change, names: tuple[str, str], test: Corpus) -> Mapping[str, object]:
    """Return what the template shows of a change."""
    source = test.sentences[change.sentence]
    both = change.before, change.after
    marked = _marked(change.before.words, change.after.words)
    return {
        "kind": "gain" if change.gain > 0 else "loss",
        "number": change.sentence + 1,
        "gain": f"{change.gain:+.1f}",
        "rows": [
            ("source", _plain(source)),
            *(("reference", _plain(words)) for words in test.references[change.sentence]),
            *zip(names, marked, strict=True),
            ("decided", _decided(change, names)),
        ],
        "phrases": {
            name: _phrases(of, source) for name, of in zip(names, both, strict=True) if of.phrases
        },
    }


def _decided(change: Change, names: tuple[str, str]) -> str:
    if change.decided is None:
        if change.listed == 1:
            return f"not known: {names[1]}'s list has one translation alone"
        of_list = f"the {change.listed} best of {names[1]}"
        return f"not known: the translation of {names[0]} is not among {of_list}"
    told = [(name, value) for name, value in change.decided if abs(value) >= 0.0005]
    if len(told) > MOST_FEATURES:
        told = [*told[: MOST_FEATURES - 1], told[-1]]
    return ", ".join(f"{name} {value:+.3f}" for name, value in told)


def _phrases(translation: WeightedTranslation, source: Words) -> str:
    return " · ".join(
        f"{_plain(source[place.source : place.source_end])} → "
        f"{_plain(translation.words[place.target : place.target_end])}"
        for place in translation.phrases
    )


def _marked(before: Words, after: Words) -> tuple[Markup, Markup]:
    """Return two translations with the words marked that the other one does not have."""
    old: list[Markup] = []
    new: list[Markup] = []
    for kind, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        form = Markup("{}") if kind == "equal" else Markup("<mark>{}</mark>")
        for parts, words in ((old, before[a:b]), (new, after[c:d])):
            if words:
                parts.append(form.format(_plain(words)))
    joined = [Markup(" ").join(parts) or Markup(NOTHING) for parts in (old, new)]  # noqa: S704
    return joined[0], joined[1]


def _plain(words: Sequence[bytes]) -> str:
    return shown_text(b" ".join(words))
