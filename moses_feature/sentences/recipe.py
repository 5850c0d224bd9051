"""How networks for sentences are trained unless the user says otherwise; free of torch.

Each architecture has its own recipe, beside its layer sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from moses_feature.networks.architectures import ARCHITECTURES, SENTENCE_ARCHITECTURES, PairSizes
from moses_feature.sentences.settings import SentenceSettings, SubwordsFrom


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
