"""What a translating process is asked and answers.

Those who ask import nothing heavier than this: compiled code, tables and models are loaded in the
process that translates.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from moses_feature.decoder.limits import SearchLimits

LINE_BREAKS = frozenset("\n\r")
"""What a sentence does not have within it. Other characters that end a line somewhere, such as
U+2028, are text, in files as in requests."""


@dataclass(frozen=True)
class Translation:
    """A translation of a sentence.

    Attributes:
        text: as text for readers; the tokens if the system is one of tokens.
        tokens: its words, with one space between them.
        score: the total of the log-linear model.
        features: its feature values by name.
        phrases: Moses' segmentation: which source words became which target words.
    """

    text: str
    tokens: str
    score: float
    features: dict[str, list[float]]
    phrases: str


@dataclass(frozen=True)
class Translated:
    """A sentence and its translations, best first.

    Attributes:
        tokens: the words of the sentence as the system reads them.
        translations: its translations.
        weights: those of the features, by name: a score is the sum of weights times values, and of
            what features that are not tuned add, such as -100 for an unknown word.
        seconds: the time that it took.
    """

    tokens: str
    translations: tuple[Translation, ...]
    weights: dict[str, list[float]]
    seconds: float


class Translates(Protocol):
    """What translates sentences; see `Translator`."""

    def translate(self, line: str, count: int = 1, as_tokens: bool = False) -> Translated:
        """Translate a sentence."""


def make_translator(
    directory: Path, as_tokens: bool, limits: SearchLimits, xml_input: str | None
) -> Translates:
    """Return a `Translator`; its modules are imported by the process that calls this."""
    from moses_feature.translation.translator import Translator

    return Translator(directory, as_tokens, limits, xml_input)
