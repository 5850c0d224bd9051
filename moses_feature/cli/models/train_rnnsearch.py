"""The command `moses-feature model train-rnnsearch`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_feature.cli.common.command import Command, debug_option
from moses_feature.cli.common.device import DeviceOptions, device_options
from moses_feature.cli.common.groups import Given, OptionGroup, take
from moses_feature.cli.common.options import estimate_option
from moses_feature.cli.common.paths import READ, WRITE_MODEL
from moses_feature.cli.common.vocabulary import option
from moses_feature.cli.models.training_options import (
    SizeOptions,
    alignment_option,
    held_out_option,
    resume_option,
    run_options,
    sample_option,
    self_normalisation_option,
    shortlist_options,
    size_options,
)
from moses_feature.networks.direction import Direction
from moses_feature.rnnsearch.settings import SEARCH_PRESETS, SearchData, SearchSettings, SearchSizes
from moses_feature.runtime.errors import UsageError
from moses_feature.training.settings import RunSettings

if TYPE_CHECKING:
    import torch

DEFAULTS = SearchSettings()


@dataclass(frozen=True)
class RnnSearchOptions:
    """The user's options for training RNNsearch, before device and texts are known."""

    size: SizeOptions
    run: RunSettings
    self_normalisation: float
    sample: int | None
    shortlist: int
    min_count: int
    longest: int
    direction: Direction
    alignment: str | None

    @classmethod
    def from_options(cls, given: Given) -> RnnSearchOptions:
        """Pick them from the options of a command."""
        size = SizeOptions.from_options(given, SearchSizes)
        direction = take(Direction, given)
        return take(
            cls, given, size=size, direction=direction, run=take(RunSettings, given, "clip")
        )

    def settings(self, device: torch.device) -> SearchSettings:
        """Return the settings of training on a device."""
        sizes = self.size.on(device, SEARCH_PRESETS)
        return SearchSettings(
            **vars(self.run),
            sizes=sizes,
            self_normalisation=self.self_normalisation,
            sample=self.sample,
        )

    def data(self, source: str, target: str) -> SearchData:
        """Return the data to train on."""
        limits = self.shortlist, self.min_count, self.longest
        return SearchData(source, target, *limits, self.direction, self.alignment)


search_options = OptionGroup(
    "Training",
    "training",
    RnnSearchOptions.from_options,
    option(
        "reverse",
        "Learn p(source | target): read TARGET and write SOURCE, which keep their places.",
    ),
    option("right-to-left", "Write the last word first."),
    size_options(
        SEARCH_PRESETS,
        {
            "hidden": "hidden units of each recurrence",
            "embedding": "word embedding",
            "alignment": "units of the alignment model",
            "maxout": "maxout units",
        },
    ),
    shortlist_options(SearchData, "Words a side"),
    option(
        "longest",
        "Words of a sentence at most; pairs with a longer one are left out.",
        default=SearchData.longest,
    ),
    alignment_option(),
    held_out_option(DEFAULTS, "source sentences"),
    self_normalisation_option("to rescore with"),
    sample_option(DEFAULTS.sample),
    run_options(DEFAULTS, "sentence pairs", "an epoch, 5,000 at most,"),
)


@click.command("train-rnnsearch", cls=Command, no_args_is_help=True)
@click.argument("source", type=READ)
@click.argument("target", type=READ)
@click.argument("model", type=WRITE_MODEL)
@resume_option
@estimate_option
@search_options
@device_options
@debug_option
def train_command(
    source: str,
    target: str,
    model: str,
    resume: bool,
    estimate: bool,
    training: RnnSearchOptions,
    device: DeviceOptions,
) -> None:
    """Train an RNNsearch on two tokenised texts.

    Line n of TARGET translates line n of SOURCE. The best model, by the loss on held-out sentence
    pairs, is kept in MODEL. The first of the budgets that is spent (--updates, --epochs, --minutes,
    --patience) ends the training.

    \b
    Example:
      moses-feature model train-rnnsearch train.en train.fr en-fr.search --dropout 0.2 --minutes 60
    """
    from moses_feature.cli.models.training_run import train_and_show
    from moses_feature.rnnsearch.training import train_search

    texts = Path(source), Path(target)
    if all(text.exists() for text in texts) and texts[0].samefile(texts[1]):
        raise UsageError(f"{source} and {target}: expected two texts, found one")
    on = device.prepare()
    settings, directory = training.settings(on), Path(model)
    train_and_show(
        train_search,
        training.data(source, target),
        settings,
        directory,
        on,
        resume,
        "sentence pairs",
        estimate,
    )
