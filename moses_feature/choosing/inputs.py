"""What a system is to be chosen for, and whether its texts belong together."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mert.tuning.corpus import Corpus
from moses_feature.building.bitext import read_texts
from moses_feature.building.preparation import decoded
from moses_feature.building.settings import BuildSettings
from moses_feature.building.system import BuildData
from moses_feature.moses.lines import LineReader, parallel_lines
from moses_feature.runtime.errors import MosesFeatureError, UsageError
from moses_feature.runtime.files import STANDARD_STREAM

HELD_OUT, MOST_HELD_OUT, FEWEST_HELD_OUT = 0.1, 1_000, 100
"""The share of the sentence pairs in each held-out part, and the most and the fewest of them."""
TOO_FEW = "too few to choose by; without --minutes, a system is built and not tuned"
CLEARLY_MORE = 1.5
"""A development set of which the text of the other language knows so many times as many words as
that of its own is refused."""


@dataclass(frozen=True)
class Choosing:
    """What to choose a system for.

    Attributes:
        data: the text.
        settings: how systems are built of it, without an operation sequence model.
        directory: of the system; all that is made on the way is in it.
        minutes: of all together.
        dev: a text to tune on, and its translations, prepared like the text, or raw if that is
            raw; None to hold a part of the text out.
        seed: of everything random.
    """

    data: BuildData
    settings: BuildSettings
    directory: Path
    minutes: float
    dev: tuple[str, Sequence[str]] | None
    seed: int


def check_inputs(task: Choosing) -> None:
    """Refuse texts that are too small, or do not belong together, before anything is built.

    Raises:
        UsageError: the development set is the standard input.
        MosesFeatureError: bad texts.
    """
    if task.dev is not None:
        text, references = task.dev
        if STANDARD_STREAM in (text, *references):
            raise UsageError("--dev is read several times: expected file names, found -")
        check_size(text, sum(1 for _ in lines_of(text)))
        Corpus.read(text, references)
        _check_pairs(text, references[0], task)
        _check_languages(task, (text, references[0]))
    lines = _check_pairs(task.data.source, task.data.target, task)
    if lines < FEWEST_HELD_OUT / HELD_OUT:
        raise MosesFeatureError(
            f"{task.data.source}: expected {FEWEST_HELD_OUT / HELD_OUT:.0f} sentence pairs at "
            f"least, a tenth of which are judged, found {lines}: {TOO_FEW}"
        )


def _check_pairs(source: str, target: str, task: Choosing) -> int:
    """Check that two texts can be used together; return their lines."""
    if not task.data.languages:
        return len(read_texts(source, target, task.settings.longest).kept)
    for path in (source, target):
        with LineReader(path) as reader:
            deque(decoded(reader), maxlen=0)
    with LineReader(source) as first, LineReader(target) as second:
        return sum(1 for _ in parallel_lines((first, second), "both texts"))


def check_size(path: str | Path, found: int) -> None:
    """Refuse a development set, or a text to judge on, of too few sentences."""
    if found < FEWEST_HELD_OUT:
        expected = f"expected {FEWEST_HELD_OUT} sentences at least"
        raise MosesFeatureError(f"{path}: {expected}, found {found}: {TOO_FEW}")


def _check_languages(task: Choosing, dev: tuple[str, str]) -> None:
    """Refuse a development set whose words are rather those of the other language."""
    texts = task.data.source, task.data.target
    known = [set(_words(path)) for path in texts]
    for own, path in enumerate(dev):
        words = list(_words(path))
        shares = [sum(word in of for word in words) / max(len(words), 1) for of in known]
        if shares[1 - own] > CLEARLY_MORE * shares[own]:
            raise MosesFeatureError(
                f"{path}: expected the language of {texts[own]}, which has {shares[own]:.0%} of "
                f"its words, found {shares[1 - own]:.0%} of them in {texts[1 - own]}: are the "
                "languages swapped?"
            )


def _words(path: str) -> Iterator[bytes]:
    """Yield the words of a text, raw or not: what blanks divide, in lower case."""
    return (word for line in lines_of(path) for word in line.lower().split())


def lines_of(path: str | Path) -> Iterator[bytes]:
    """Yield the lines of a text."""
    with LineReader(path) as reader:
        yield from (line.strip() for line in reader)
