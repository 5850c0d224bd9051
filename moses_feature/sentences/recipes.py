"""How networks for sentences are trained unless the user says otherwise; free of torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from moses_feature.networks.architectures import RNNSEARCH, TRANSFORMER, PairSizes
from moses_feature.rnnsearch.settings import RNNSEARCH_PRESETS
from moses_feature.sentences.settings import SentenceSettings, SubwordsFrom
from moses_feature.transformer.settings import TRANSFORMER_PRESETS, TransformerSizes


@dataclass(frozen=True)
class Recipe:
    """The settings of an architecture.

    Attributes:
        presets: layer sizes by their names.
        preset: the usual one; None for `small` on a CPU and `paper` on a GPU.
        subwords: the number of subwords; 0 for whole words.
        subwords_from: see `SentenceData`.
        settings: of training.
        with_budget: settings of a training that has a budget.
        with_cooldown: settings of a training that has a cooldown, whose end is its best.
        rate_times_units: Adam's learning rate times the units of a state; None for the usual rate.
    """

    presets: Mapping[str, PairSizes]
    preset: str | None = None
    subwords: int = 0
    subwords_from: SubwordsFrom = "each"
    settings: SentenceSettings = field(default_factory=SentenceSettings)
    with_budget: Mapping[str, Any] = field(default_factory=dict)
    with_cooldown: Mapping[str, Any] = field(default_factory=dict)
    rate_times_units: float | None = None

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
        rate = chosen.get("learning_rate")
        adam = chosen.get("optimizer", settings.optimizer) == "adam"
        if rate is None and adam and self.rate_times_units and isinstance(sizes, TransformerSizes):
            chosen["learning_rate"] = self.rate_times_units / sizes.units
        return replace(settings, sizes=sizes, **chosen)


RECIPES: Mapping[str, Recipe] = {
    RNNSEARCH: Recipe(RNNSEARCH_PRESETS),
    TRANSFORMER: Recipe(
        TRANSFORMER_PRESETS,
        preset="small",
        subwords=8000,
        subwords_from="both",
        settings=SentenceSettings(
            batch_size=128,
            warmup=600,
            label_smoothing=0.1,
            dropout=0.3,
            patience=8,
            pool=200,
        ),
        with_budget={"cooldown": 0.7},
        with_cooldown={"annealing": 1.0, "patience": 0},
        rate_times_units=0.5,  # 0.0039 for 128 (0.004 and 0.005 were tried)
    ),
}
"""By architecture."""
