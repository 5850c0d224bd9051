"""Settings of networks for sentence pairs, and the recipe of each architecture; free of torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from moses_feature.networks.architectures import ARCHITECTURES, SENTENCE_ARCHITECTURES, PairSizes
from moses_feature.networks.direction import FORWARD, Direction
from moses_feature.phrases.settings import TrainingSettings
from moses_feature.runtime.errors import UsageError
from moses_feature.training.settings import LEARNING_RATES


@dataclass(frozen=True, kw_only=True)
class SentenceSettings(TrainingSettings):
    """How to train a network for sentences (RNNsearch: Bahdanau et al. 2015, appendix B.2).

    Attributes:
        label_smoothing: the share of all words together in what a word should be (Szegedy et al.
            2016).
    """

    rates: ClassVar[Mapping[str, float]] = LEARNING_RATES

    batch_size: int = 80
    sample: int | None = None
    pool: int = 20
    patience: int = 3
    held_out_limit: int = 2_000
    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.label_smoothing < 1:
            found = self.label_smoothing
            raise UsageError(f"label smoothing: expected 0 or more and below 1, found {found}")


MOST_PIECES = 1000
"""The most words, or subwords, of a sentence that is translated or scored.

The time of attention, and its memory, grow with their square.
"""

SubwordsFrom = Literal["each", "both"]


@dataclass(frozen=True)
class SentenceData:
    """The data to train a network for sentences on.

    Attributes:
        source, target: tokenised files with a sentence on each line; line n of one translates
            line n of the other.
        shortlist: the number of known words of each side; all others are UNK.
        min_count: the least count of a word in a shortlist, so that UNK occurs, too.
        longest: pairs with a longer sentence, in words, are left out, and so are those with ten
            times as many pieces.
        direction: the direction in which the pairs are read and written.
        word_alignment: a file with the links of a pair on each line, source and target place, as
            Moses' training leaves it (`aligned.grow-diag-final-and`), for guided alignment.
        subwords: the number of pieces, of a side or of both, that the network reads and writes in
            place of words; None for words. With them there is no shortlist.
        subwords_from: the text that the pieces of a side are learnt from: each side's own, or both
            together, so that both sides have the same pieces and a Transformer one embedding.
    """

    source: str
    target: str
    shortlist: int = 30_000
    min_count: int = 2
    longest: int = 50
    direction: Direction = FORWARD
    word_alignment: str | None = None
    subwords: int | None = None
    subwords_from: SubwordsFrom = "each"


@dataclass(frozen=True)
class Recipe:
    """The settings of an architecture.

    Attributes:
        presets: layer sizes by their names.
        sizes: what each layer size is, for help.
        preset: the usual one; None for `small` on a CPU and `paper` on a GPU.
        subwords: the number of subwords; 0 for whole words.
        subwords_from: see `SentenceData`.
        settings: of training.
        with_budget: settings of a training that has a budget.
        with_cooldown: settings of a training that has a cooldown, whose end is its best.
        rate: Adam's learning rate by the sizes; None for the usual one.
    """

    presets: Mapping[str, PairSizes]
    sizes: Mapping[str, str]
    preset: str | None = None
    subwords: int = 0
    subwords_from: SubwordsFrom = "each"
    settings: SentenceSettings = field(default_factory=SentenceSettings)
    with_budget: Mapping[str, Any] = field(default_factory=dict)
    with_cooldown: Mapping[str, Any] = field(default_factory=dict)
    rate: Callable[[Any], float] | None = None

    def of_run(self, given: Mapping[str, Any], sizes: PairSizes) -> SentenceSettings:
        """Return the settings of a run: given ones, else those of the recipe.

        Args:
            given: settings by name, without those that are None.
            sizes: the layer sizes.
        """
        settings = self.settings
        budgets = given.get("updates"), given.get("epochs"), given.get("minutes")
        chosen = {**(self.with_budget if any(budgets) else {}), **given}
        if chosen.get("cooldown", settings.cooldown):
            chosen = {**self.with_cooldown, **chosen}
        adam = chosen.get("optimizer", settings.optimizer) == "adam"
        if self.rate and adam and chosen.get("learning_rate") is None:
            chosen["learning_rate"] = self.rate(sizes)
        return replace(settings, sizes=sizes, **chosen)


def recipes() -> dict[str, Recipe]:
    """Return the recipe of each architecture for sentences, by its name."""
    return {name: ARCHITECTURES[name].load("recipe") for name in SENTENCE_ARCHITECTURES}
