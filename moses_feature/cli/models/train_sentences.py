"""The command `moses-feature model train-sentences`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from moses_feature.cli.common.command import Command, debug_option
from moses_feature.cli.common.device import DeviceOptions, device_options
from moses_feature.cli.common.groups import Given, OptionGroup, take, typed
from moses_feature.cli.common.options import estimate_option
from moses_feature.cli.common.paths import READ, WRITE_MODEL
from moses_feature.cli.common.vocabulary import FiniteRange, WholeRange, option
from moses_feature.cli.models.training_options import (
    UNASKED,
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
from moses_feature.networks.architectures import RNNSEARCH, TRANSFORMER
from moses_feature.networks.direction import Direction
from moses_feature.rnnsearch.settings import SEARCH_PRESETS, SearchSizes
from moses_feature.runtime.errors import UsageError
from moses_feature.sentences.settings import SentenceData, SentenceSettings, SubwordsFrom
from moses_feature.transformer.settings import TRANSFORMER_PRESETS, TransformerSizes

if TYPE_CHECKING:
    import torch

DEFAULTS = SentenceSettings()
RECIPE = {
    "preset": "small",
    "subwords": 8000,
    "subwords_from": "both",
    "batch_size": 128,
    "warmup": 600,
    "label_smoothing": 0.1,
    "dropout": 0.3,
    "patience": 8,
}
"""The defaults of a Transformer where they are other ones."""
RATE_TIMES_UNITS = 0.5
"""Adam's learning rate times the units of a state: 0.0039 for 128 (0.004 and 0.005 were tried)."""
COOLDOWN = {"cooldown": 0.7}
"""Another one if there is a budget."""
TO_THE_END = {"annealing": 1.0, "patience": 0}
"""And others if there is a cooldown, whose end is the best of a training."""
POOL = 200
"""Batches of a Transformer that are sorted by length together."""
BUDGETS = "updates", "epochs", "minutes"
MOST_SUBWORDS = 64_000


@dataclass(frozen=True)
class SentenceOptions:
    """The user's options for training on sentences, before device and texts are known."""

    architecture: str
    size: SizeOptions
    run: SentenceSettings
    subwords: int | None
    subwords_from: SubwordsFrom
    shortlist: int
    min_count: int
    longest: int
    direction: Direction
    alignment: str | None

    @classmethod
    def from_options(cls, given: Given) -> SentenceOptions:
        """Pick them from the options of a command; a Transformer has defaults of its own."""
        if given["architecture"] == TRANSFORMER:
            recipe = RECIPE | (COOLDOWN if any(map(given.get, BUDGETS)) else {})
            given |= {name: recipe[name] for name in recipe.keys() - {*typed(recipe)}}
            if given["cooldown"]:
                given |= {
                    name: TO_THE_END[name] for name in TO_THE_END.keys() - {*typed(TO_THE_END)}
                }
        given["subwords"] = given["subwords"] or None
        if typed(["subwords_from"]) and given["subwords"] is None:
            raise UsageError("--subwords-from says what subwords are learnt from: give --subwords")
        if (of_words := typed(["shortlist", "min_count"])) and given["subwords"] is not None:
            name = of_words[0].replace("_", "-")
            raise UsageError(f"--{name} is for whole words: give --subwords 0")
        given["bpe_dropout"] = given["bpe_dropout"] or None
        size = SizeOptions.from_options(given, SearchSizes, TransformerSizes)
        direction = take(Direction, given)
        run = take(SentenceSettings, given, *UNASKED, "pool", "held_out_limit")
        return take(cls, given, size=size, direction=direction, run=run)

    def settings(self, device: torch.device) -> SentenceSettings:
        """Return the settings of training on a device."""
        if self.architecture == TRANSFORMER:
            sizes = self.size.on(device, TRANSFORMER_PRESETS)
            rate = self.run.learning_rate
            if self.run.optimizer == "adam":
                rate = rate or RATE_TIMES_UNITS / sizes.units
            return replace(self.run, sizes=sizes, pool=POOL, learning_rate=rate)
        return replace(self.run, sizes=self.size.on(device, SEARCH_PRESETS))

    def data(self, source: str, target: str) -> SentenceData:
        """Return the data to train on."""
        names = ["shortlist", "min_count", "longest", "direction", "subwords", "subwords_from"]
        given = {name: getattr(self, name) for name in names}
        return SentenceData(source, target, word_alignment=self.alignment, **given)


sentence_options = OptionGroup(
    "Training",
    "training",
    SentenceOptions.from_options,
    option(
        "architecture",
        "RNNsearch, or a Transformer (Vaswani et al. 2017), which has other defaults: a learning "
        f"rate of {RATE_TIMES_UNITS} / units, those that stand beside RNNsearch's and, with a "
        "cooldown, neither annealing nor patience.",
        default=RNNSEARCH,
        within=[RNNSEARCH, TRANSFORMER],
    ),
    option(
        "reverse",
        "Learn p(source | target): read TARGET and write SOURCE, which keep their places.",
    ),
    option("right-to-left", "Write the last word first."),
    size_options(
        SEARCH_PRESETS,
        {
            "hidden": "hidden units of each recurrence (rnnsearch)",
            "embedding": "word embedding (rnnsearch)",
            "alignment": "units of the alignment model (rnnsearch)",
            "maxout": "maxout units (rnnsearch)",
            "units": "units of a state (transformer)",
            "heads": "heads that share the units (transformer)",
            "inner": "units of the feed-forward layers (transformer)",
            "encoder_layers": "layers that read (transformer)",
            "decoder_layers": "layers that write (transformer)",
        },
    ),
    option(
        "subwords",
        "Read and write N pieces of words, learnt by byte-pair encoding, in place of a shortlist: "
        "no word is unknown; 300 at least, or 0 for whole words.",
        default=0,
        within=WholeRange(0, MOST_SUBWORDS),
    ),
    option(
        "subwords-from",
        "Learn the subwords of each side from its own text, or from both, so that both sides have "
        "the same, and a Transformer one embedding for both.",
        default="each",
        within=get_args(SubwordsFrom),
    ),
    option(
        "bpe-dropout",
        "Probability that a merge of two subwords is left out in training, so that words are split "
        "in many ways; 0.1 is usual. Not with --alignment.",
        default=0.0,
        within=FiniteRange(0, 1, max_open=True),
    ),
    option(
        "label-smoothing",
        "Share of all words together in what the network should predict; 0.1 is usual.",
        default=DEFAULTS.label_smoothing,
        within=FiniteRange(0, 1, max_open=True),
    ),
    shortlist_options(SentenceData, "Words a side"),
    option(
        "longest",
        "Words of a sentence at most; pairs with a longer one, or with ten times as many subwords, "
        "are left out.",
        default=SentenceData.longest,
    ),
    alignment_option(),
    held_out_option(DEFAULTS, "source sentences"),
    self_normalisation_option("to rescore with"),
    sample_option(DEFAULTS.sample),
    run_options(DEFAULTS, "sentence pairs", "an epoch, 5,000 at most,"),
)


@click.command("train-sentences", cls=Command, no_args_is_help=True)
@click.argument("source", type=READ)
@click.argument("target", type=READ)
@click.argument("model", type=WRITE_MODEL)
@resume_option
@estimate_option
@sentence_options
@device_options
@debug_option
def train_command(
    source: str,
    target: str,
    model: str,
    resume: bool,
    estimate: bool,
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
    settings, directory = training.settings(on), Path(model)
    train_and_show(
        train_sentences,
        training.data(source, target),
        settings,
        directory,
        on,
        resume,
        "sentence pairs",
        estimate,
    )


OF_A_TRANSFORMER = RECIPE | {"cooldown": f"{COOLDOWN['cooldown']}, with a budget"}
"""What the help shows beside RNNsearch's defaults, which are those of click."""
for parameter in train_command.params:
    if isinstance(parameter, click.Option) and parameter.name in OF_A_TRANSFORMER:
        other = OF_A_TRANSFORMER[parameter.name]
        shown = "" if parameter.name == "preset" else f"{parameter.default}; "
        parameter.show_default = f"{shown}Transformer: {other}"
