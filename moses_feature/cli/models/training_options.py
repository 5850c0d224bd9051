"""The options of commands that train, and the settings made of them; free of torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from moses_feature.cli.common.groups import Decorator, Given, OptionGroup, options, take
from moses_feature.cli.common.vocabulary import NOT_NEGATIVE, FiniteRange, WholeRange, option
from moses_feature.cslm.settings import LARGEST_SIZE, LmData, LmSettings, LmSizes
from moses_feature.joint.settings import JointData
from moses_feature.moses.words import WordOptions
from moses_feature.networks.architectures import FEED_FORWARD, RNNSEARCH, Dtype, PairSizes
from moses_feature.networks.direction import Direction
from moses_feature.phrases.settings import (
    FEED_FORWARD_PRESETS,
    MOST_FOLDS,
    PRESETS,
    PRODUCTS,
    FeedForwardSizes,
    Sizes,
    TrainingData,
    TrainingSettings,
)
from moses_feature.rnnsearch.settings import SEARCH_PRESETS, SearchSizes
from moses_feature.runtime.errors import UsageError
from moses_feature.sentences.settings import SentenceData
from moses_feature.training.settings import LEARNING_RATES, RunSettings

if TYPE_CHECKING:
    import torch

S = TypeVar("S", bound=PairSizes | LmSizes)

DEFAULTS = TrainingSettings()
LM_DEFAULTS = LmSettings()
UNASKED = "clip", "sizes"
"""Fields of settings that have no option, or become known with the device."""


def run_options(defaults: RunSettings, examples: str, epoch: str) -> Decorator:
    """Return the options of a training run.

    Args:
        defaults: the defaults of the settings.
        examples: the name of the examples of an update.
        epoch: the default interval of evaluations, in words.
    """
    return options(
        _rate_options(defaults),
        _budget_options(defaults, examples, epoch),
        option(
            "dropout",
            "Share of the components of embeddings and of the last layer's units (of a "
            "Transformer, of all layers) that training leaves out.",
            default=defaults.dropout,
            within=FiniteRange(0, 1, max_open=True),
        ),
        option(
            "dtype",
            "Of the matrix products in training.",
            default=defaults.dtype,
            within=get_args(Dtype),
        ),
        option("seed", default=defaults.seed),
    )


def _rate_options(defaults: RunSettings) -> Decorator:
    return options(
        option(
            "optimizer",
            "adadelta is the paper's.",
            default=defaults.optimizer,
            within=LEARNING_RATES,
        ),
        option(
            "learning-rate",
            f"{defaults.rates['adam']:g} (adam) or {defaults.rates['adadelta']:g} (adadelta) by "
            "default."
            if defaults.learning_rate is None
            else "Of the optimiser.",
            default=defaults.learning_rate,
        ),
        option(
            "annealing",
            "Factor on the learning rate after an evaluation that is not the best so far; 0.5 "
            "(adam) or 1 (adadelta) by default.",
            within=FiniteRange(0, 1, min_open=True),
        ),
        option(
            "warmup",
            "First updates, in which the learning rate rises along a line.",
            default=defaults.warmup,
        ),
        option(
            "cooldown",
            "Share of the budget, at its end, in which the learning rate falls to 0 along a "
            "line; 0.3 is usual.",
            default=defaults.cooldown,
            within=FiniteRange(0, 1),
        ),
    )


def _budget_options(defaults: RunSettings, examples: str, epoch: str) -> Decorator:
    return options(
        option("batch-size", f"{examples.capitalize()} an update.", default=defaults.batch_size),
        option("updates", "Stop after so many updates."),
        option("epochs", f"Stop after so many passes over the {examples}."),
        option("minutes", "Stop after so many minutes."),
        option("evaluate-every", f"Updates between evaluations; {epoch} by default."),
        option(
            "patience",
            "Stop after so many evaluations in a row without a better held-out loss; 0 for never.",
            default=defaults.patience,
            within=NOT_NEGATIVE,
        ),
    )


resume_option = option(
    "resume",
    "Go on with a run that was interrupted or killed; all options as before, but for a larger "
    "budget.",
)


def alignment_option(*, required: bool = False) -> Decorator:
    """Return the option for the word alignments of two texts."""
    use = "" if required else ": the network learns to align as they do, too"
    return option(
        "alignment",
        "Links of each sentence pair, such as 0-0 1-2, as Moses' training leaves them in "
        f"model/aligned.grow-diag-final-and{use}.",
        required=required,
    )


def held_out_option(defaults: TrainingSettings | LmSettings, what: str) -> Decorator:
    """Return the option for the held-out share of something."""
    return option(
        "held-out",
        f"Share of the {what} that measure the loss and are not trained on.",
        default=defaults.held_out,
        within=FiniteRange(0, 1, min_open=True, max_open=True),
    )


def shortlist_options(defaults: type[LmData | JointData | SentenceData], words: str) -> Decorator:
    """Return the options for the shortlists of networks that are trained on texts."""
    return options(
        option(
            "shortlist",
            f"{words} that the network knows; the rest is UNK.",
            default=defaults.shortlist,
        ),
        option(
            "min-count",
            "How often a word of a shortlist occurs at least. With 1 and a short text there "
            "may be no UNK to learn from.",
            default=defaults.min_count,
        ),
    )


def self_normalisation_option(where: str) -> Decorator:
    """Return the option, whose help says where it is worthwhile."""
    return option(
        "self-normalisation",
        "Factor of (log Z)^2 in the loss; above 0, scores are used without log Z, which is "
        f"faster {where}. 0.1 is usual.",
        default=0.0,
    )


def sample_option(default: int | None) -> Decorator:
    """Return the option of a sampled softmax."""
    return option(
        "sampled-words",
        "Estimate the sum over all words in the softmax, while training, from N words drawn "
        "anew for each update; faster with many words. As many as there are, or more: all words.",
        to="sample",
        default=default,
    )


def _option_of(size: str) -> str:
    """Return the option for a size of layers; `--alignment` is a file."""
    return "alignment_units" if size == "alignment" else size


def size_options(presets: Mapping[str, S], what: dict[str, str]) -> Decorator:
    """Return the options for the sizes of layers, by the names of the fields."""
    return options(
        option(
            "preset",
            "Layer sizes; small on a CPU, paper on a GPU by default."
            + (" characters is for models of letters." if "characters" in presets else ""),
            within=presets,
        ),
        *(
            click.option(
                f"--{_option_of(name).replace('_', '-')}",
                type=WholeRange(1, LARGEST_SIZE),
                help=f"Size in place of the preset's: {description}.",
            )
            for name, description in what.items()
        ),
    )


@dataclass(frozen=True)
class SizeOptions:
    """A preset of layer sizes, and sizes that replace the preset's; None keeps its size.

    Attributes:
        preset: its name; None for the one that suits the device.
        sizes: by the names of the fields.
    """

    preset: str | None
    sizes: dict[str, int | str | None]

    @classmethod
    def from_options(cls, given: Given, *kinds: type[Any]) -> SizeOptions:
        """Pick them from the options of a command, for networks of one kind or of several."""
        names = dict.fromkeys(field.name for kind in kinds for field in fields(kind))
        return cls(given.pop("preset"), {name: given.pop(_option_of(name)) for name in names})

    def on(self, device: torch.device, presets: Mapping[str, S]) -> S:
        """Return the sizes of a network on a device.

        Raises:
            UsageError: the network has no such preset, or no such size.
        """
        name = self.preset or ("paper" if device.type == "cuda" else "small")
        if name not in presets:
            raise UsageError(f"--preset {name}: expected {' or '.join(presets)} for this network")
        sizes: dict[str, Any] = {
            name: size for name, size in self.sizes.items() if size is not None
        }
        if unknown := sorted(sizes.keys() - vars(presets[name]).keys()):
            option = _option_of(unknown[0]).replace("_", "-")
            raise UsageError(f"--{option}: the network of this --architecture has no such size")
        try:
            return replace(presets[name], **sizes)
        except ValueError as error:
            raise UsageError(f"{error}") from None


@dataclass(frozen=True)
class TrainingOptions:
    """The user's options for training an encoder-decoder, before device and tables are known.

    Attributes:
        run: the settings but for the sizes.
    """

    architecture: str
    size: SizeOptions
    run: TrainingSettings
    shortlist: int
    source_text: str | None
    target_text: str | None
    folds: int
    reverse: bool

    @classmethod
    def from_options(cls, given: Given) -> TrainingOptions:
        """Pick them from the options of a command."""
        size = SizeOptions.from_options(given, Sizes, FeedForwardSizes, SearchSizes)
        run = take(TrainingSettings, given, *UNASKED, "pool", "held_out_limit")
        return take(cls, given, size=size, run=run)

    def settings(self, device: torch.device) -> TrainingSettings:
        """Return the settings of training on a device."""
        presets: dict[str, Mapping[str, PairSizes]] = {
            RNNSEARCH: SEARCH_PRESETS,
            FEED_FORWARD: FEED_FORWARD_PRESETS,
        }
        return replace(
            self.run, sizes=self.size.on(device, presets.get(self.architecture, PRESETS))
        )

    def data(self, tables: tuple[str, ...], words: WordOptions) -> TrainingData:
        """Return the data to train on."""
        texts, direction = (self.source_text, self.target_text), Direction(self.reverse)
        return TrainingData(tables, *texts, self.shortlist, words, self.folds, direction)


training_options = OptionGroup(
    "Training",
    "training",
    TrainingOptions.from_options,
    option(
        "architecture",
        "The paper's network; RNNsearch, which aligns the words of the phrases; or the older "
        "network of Schwenk (2012), without recurrences.",
        default="encoder-decoder",
        within=["encoder-decoder", RNNSEARCH, FEED_FORWARD],
    ),
    size_options(
        PRESETS,
        {
            "hidden": "hidden units",
            "embedding": "word embedding",
            "maxout": "maxout units (not feed-forward)",
            "rank": "rank of the output matrix (not rnnsearch)",
            "alignment": "units of the alignment model (rnnsearch)",
            "positions": "source words that are read (feed-forward)",
        },
    ),
    option(
        "unit",
        "Hidden units: the paper's gated ones (gru, the default), without gates (tanh), a "
        "quarter or half of which change slowly, or long short-term memory (encoder-decoder).",
        within=PRODUCTS,
    ),
    option(
        "shortlist",
        "Words a side that the network knows; the rest is UNK.",
        default=TrainingData.shortlist,
    ),
    option("source-text", "Text whose word frequencies make the source shortlist."),
    option("target-text", "The same for the target side."),
    option("reverse", "Learn p(source | target); source phrases are then target phrases, below."),
    self_normalisation_option("in tables; with rnnsearch, in rescored lists alone"),
    sample_option(DEFAULTS.sample),
    held_out_option(DEFAULTS, "source phrases"),
    option(
        "folds",
        "Cross-fitting: train so many networks, each without a part of the source phrases, "
        "and score this part with it. Each network has the whole budget.",
        default=TrainingData.folds,
        within=WholeRange(1, MOST_FOLDS),
    ),
    run_options(DEFAULTS, "phrase pairs", "an epoch, 5,000 at most,"),
)


@dataclass(frozen=True)
class NgramOptions:
    """The user's options for training a feed-forward model, before device and texts are known.

    Attributes:
        presets: presets of its sizes.
        run: the settings but for the sizes.
    """

    presets: Mapping[str, LmSizes]
    size: SizeOptions
    run: LmSettings
    shortlist: int
    min_count: int

    def settings(self, device: torch.device) -> LmSettings:
        """Return the settings of training on a device."""
        return replace(self.run, sizes=self.size.on(device, self.presets))


def ngram_options(
    presets: Mapping[str, LmSizes],
    data: type[LmData | JointData],
    words: str,
    *of_context: Decorator,
) -> OptionGroup[NgramOptions]:
    """Return the options of a command that trains a feed-forward model: `NgramOptions`.

    Args:
        presets: presets of its sizes.
        data: the class of its training data.
        words: whose words the shortlist contains.
        of_context: options for its context.
    """
    kind = type(presets["small"])

    def from_options(given: Given) -> NgramOptions:
        size = SizeOptions.from_options(given, kind)
        run = take(LmSettings, given, *UNASKED, "fewest_held_out")
        return take(NgramOptions, given, presets=presets, size=size, run=run)

    return OptionGroup(
        "Training",
        "training",
        from_options,
        size_options(
            presets,
            {
                "projection": "projection of a word",
                "first": "units of the first rectified layer",
                "second": "units of the second rectified layer",
            },
        ),
        *of_context,
        shortlist_options(data, words),
        held_out_option(LM_DEFAULTS, "sentences, 100 at least,"),
        self_normalisation_option("in a decoder. Moses with NPLM never subtracts it"),
        run_options(LM_DEFAULTS, "n-grams", "an epoch"),
    )
