"""The command `moses-feature model train-sentences`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from moses_feature.cli.common.command import Command
from moses_feature.cli.common.groups import Given, OptionGroup, take
from moses_feature.cli.common.options import DeviceOptions, device_options
from moses_feature.cli.common.paths import READ, WRITE_MODEL
from moses_feature.cli.common.vocabulary import FiniteRange, WholeRange, option
from moses_feature.cli.models.training_options import (
    SizeOptions,
    given_settings,
    more_run_options,
    plan_option,
    resume_option,
    run_options,
    size_options,
)
from moses_feature.networks.architectures import RNNSEARCH
from moses_feature.networks.direction import Direction
from moses_feature.runtime.errors import UsageError
from moses_feature.sentences.settings import SentenceData, SentenceSettings, SubwordsFrom, recipes

if TYPE_CHECKING:
    import torch

MOST_SUBWORDS = 64_000
RECIPES = recipes()


def _by_architecture(values: Mapping[str, object]) -> str:
    """Return the default of each architecture in words."""
    return ", ".join(f"{value} ({name})" for name, value in values.items())


def _defaults(setting: str) -> str:
    return _by_architecture({n: f"{getattr(of.settings, setting):g}" for n, of in RECIPES.items()})


@dataclass(frozen=True)
class SentenceOptions:
    """The user's options for training on sentences, before device and texts are known.

    Attributes:
        run: settings of the run that were given, by name.
    """

    architecture: str
    size: SizeOptions
    run: Mapping[str, Any]
    subwords: int | None
    subwords_from: SubwordsFrom
    shortlist: int
    longest: int
    direction: Direction
    alignment: str | None

    @classmethod
    def from_options(cls, given: Given) -> SentenceOptions:
        """Pick them from the options of a command; the others are those of the recipe."""
        recipe = RECIPES[given["architecture"]]
        asked_from, shortlist = given.pop("subwords_from"), given.pop("shortlist")
        subwords = recipe.subwords if given["subwords"] is None else given["subwords"]
        if asked_from and not subwords:
            raise UsageError("--subwords-from says what subwords are learnt from: give --subwords")
        if shortlist and subwords:
            raise UsageError("--shortlist is for whole words: give --subwords 0")
        given |= {"subwords": subwords or None, "preset": given["preset"] or recipe.preset}
        return take(
            cls,
            given,
            size=SizeOptions.from_options(given),
            direction=take(Direction, given),
            run=given_settings(SentenceSettings, given),
            subwords_from=asked_from or recipe.subwords_from,
            shortlist=shortlist or SentenceData.shortlist,
        )

    def settings(self, device: torch.device) -> SentenceSettings:
        """Return the settings of training on a device."""
        recipe = RECIPES[self.architecture]
        return recipe.of_run(self.run, self.size.on(device, recipe.presets))

    def data(self, source: str, target: str) -> SentenceData:
        """Return the data to train on."""
        names = ["shortlist", "longest", "direction", "subwords", "subwords_from"]
        given = {name: getattr(self, name) for name in names}
        return SentenceData(source, target, word_alignment=self.alignment, **given)


sentence_options = OptionGroup(
    "Training",
    "training",
    SentenceOptions.from_options,
    option(
        "architecture",
        "RNNsearch, or a Transformer (Vaswani et al. 2017).",
        default=RNNSEARCH,
        within=RECIPES,
    ),
    option(
        "reverse",
        "Learn p(source | target): read TARGET and write SOURCE, which keep their places.",
    ),
    option("right-to-left", "Write the last word first."),
    size_options(
        RECIPES[RNNSEARCH].presets,
        {
            size: f"{architecture}: {what}"
            for architecture, recipe in RECIPES.items()
            for size, what in recipe.sizes.items()
        },
    ),
    option(
        "subwords",
        "Read and write N pieces of words, learnt by byte-pair encoding, instead of a shortlist: "
        "no word is unknown; 300 at least, or 0 for whole words; "
        f"{_by_architecture({name: of.subwords for name, of in RECIPES.items()})} by default.",
        within=WholeRange(0, MOST_SUBWORDS),
    ),
    option(
        "subwords-from",
        "Learn the subwords of each side from its own text, or from both, so that both sides have "
        "the same, and a Transformer one embedding for both; "
        f"{_by_architecture({name: of.subwords_from for name, of in RECIPES.items()})} by default.",
        within=get_args(SubwordsFrom),
    ),
    option(
        "label-smoothing",
        "Share of all words together in what the network should predict; "
        f"{_defaults('label_smoothing')} by default.",
        within=FiniteRange(0, 1, max_open=True),
    ),
    option(
        "shortlist",
        f"Words a side that the network knows; the rest is UNK; {SentenceData.shortlist} by "
        "default.",
    ),
    option(
        "max-length",
        "Words of a sentence at most; pairs with a longer one, or with ten times as many subwords, "
        "are left out.",
        to="longest",
        default=SentenceData.longest,
    ),
    option(
        "alignment",
        "Links of each sentence pair, such as 0-0 1-2, as Moses' training leaves them in "
        "model/aligned.grow-diag-final-and: the network learns to align as they do, too.",
    ),
    option(
        "warmup",
        "First updates, in which the learning rate rises along a line; "
        f"{_defaults('warmup')} by default.",
    ),
    run_options(
        RECIPES[RNNSEARCH].settings,
        "sentence pairs",
        "an epoch, 5,000 at most,",
        {
            "learning_rate": "0.001 (rnnsearch), 0.5 / units (transformer)",
            "cooldown": "0, but with a budget 0.7 for a Transformer,",
            "dropout": _defaults("dropout"),
        },
    ),
    more_run_options(
        RECIPES[RNNSEARCH].settings,
        "sentence pairs",
        {name: _defaults(name) for name in ("batch_size", "patience")},
    ),
)


@click.command("train-sentences", cls=Command, no_args_is_help=True)
@click.argument("source", type=READ)
@click.argument("target", type=READ)
@click.argument("model", type=WRITE_MODEL)
@resume_option
@plan_option
@sentence_options
@device_options
def train_command(
    source: str,
    target: str,
    model: str,
    resume: bool,
    plan: bool,
    training: SentenceOptions,
    device: DeviceOptions,
) -> None:
    """Train a network for sentences on two tokenised texts.

    Line n of TARGET translates line n of SOURCE. The best model, by the loss on held-out sentence
    pairs, is kept in MODEL. The first of the budgets that is spent (--updates, --epochs, --minutes,
    --patience) ends the training.

    \b
    Example:
      moses-feature model train-sentences train.en train.fr en-fr.search --dropout 0.2 --minutes 60
      moses-feature model train-sentences train.en train.fr en-fr.transformer
        --architecture transformer --minutes 80
    """
    from moses_feature.cli.models.training_run import train_and_show
    from moses_feature.sentences.training import train_sentences

    texts = Path(source), Path(target)
    if all(text.exists() for text in texts) and texts[0].samefile(texts[1]):
        raise UsageError(f"{source} and {target}: expected two texts, found one")
    on = device.prepare()
    run = training.settings(on), Path(model), on, resume
    train_and_show(train_sentences, training.data(source, target), *run, "sentence pairs", plan)
