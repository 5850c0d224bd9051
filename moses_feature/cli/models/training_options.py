"""The options of commands that train, and the settings made of them; free of torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from moses_feature.cli.common.groups import Decorator, Given, OptionGroup, options, take
from moses_feature.cli.common.vocabulary import NOT_NEGATIVE, FiniteRange, option
from moses_feature.cslm.settings import LmData, LmSizes
from moses_feature.moses.words import WordOptions
from moses_feature.networks.architectures import Dtype, PairSizes
from moses_feature.networks.direction import Direction
from moses_feature.phrases.settings import (
    PRESETS,
    PRODUCTS,
    Sizes,
    TrainingData,
    TrainingSettings,
)
from moses_feature.runtime.errors import UsageError
from moses_feature.sentences.settings import SentenceData
from moses_feature.training.settings import BUDGETS, LEARNING_RATES, RunSettings

if TYPE_CHECKING:
    import torch

S = TypeVar("S", bound=PairSizes | LmSizes)

DEFAULTS = TrainingSettings()
COOLDOWN = 0.15
"""Of phrase networks that have a budget; 0 and 0.6 were worse (benchmarks/results/training.md)."""

resume_option = option(
    "resume",
    "Continue a run that was interrupted or killed; all options as before, but for a larger "
    "budget.",
)
plan_option = option(
    "plan",
    "Only work for some seconds, and print how long the whole would take. Nothing is written.",
)


def dropout_option(default: str | float) -> Decorator:
    """Return the option; the default is shown."""
    return option(
        "dropout",
        "Share of the components of embeddings and of the last layer's units (of a "
        f"Transformer, of all layers) that training leaves out; {default} by default.",
        within=FiniteRange(0, 1, max_open=True),
    )


def budget_options(examples: str) -> Decorator:
    """Return the options for the budget of a training; the first that is spent ends it."""
    return options(
        option("updates", "Stop after so many updates."),
        option("epochs", f"Stop after so many passes over the {examples}."),
        option("minutes", "Stop after so many minutes."),
    )


def run_options(
    defaults: RunSettings, examples: str, epoch: str, others: Mapping[str, str] | None = None
) -> Decorator:
    """Return the options of every training run; those that are not given are None.

    Args:
        defaults: the defaults of the settings.
        examples: the name of the examples of an update.
        epoch: the default interval of evaluations, in words.
        others: defaults to show instead of those of `defaults`.
    """
    shown = _shown(defaults, others)
    rates = " or ".join(f"{rate:g} ({name})" for name, rate in defaults.rates.items())
    return options(
        option("learning-rate", f"{shown.get('learning_rate', rates)} by default."),
        option(
            "cooldown",
            "Share of the budget, at its end, in which the learning rate falls to 0 along a "
            f"line; {shown['cooldown']} by default.",
            within=FiniteRange(0, 1),
        ),
        budget_options(examples),
        option("evaluate-every", f"Updates between evaluations; {epoch} by default."),
        dropout_option(shown["dropout"]),
        option("seed", default=defaults.seed),
    )


def more_run_options(
    defaults: RunSettings, examples: str, others: Mapping[str, str] | None = None
) -> Decorator:
    """Return more options of a training run, for networks that are trained for hours.

    See `run_options`.
    """
    shown = _shown(defaults, others)
    return options(
        option(
            "batch-size",
            f"{examples.capitalize()} an update; {shown['batch_size']} by default.",
        ),
        option(
            "patience",
            "Stop after so many evaluations in a row without a better held-out loss, 0 for never; "
            f"{shown['patience']} by default.",
            within=NOT_NEGATIVE,
        ),
        option("dtype", "Of the matrix products.", default=defaults.dtype, within=get_args(Dtype)),
    )


def _shown(defaults: RunSettings, others: Mapping[str, str] | None) -> dict[str, str]:
    """Return defaults as the help shows them."""
    shown = {f.name: f"{getattr(defaults, f.name):g}" for f in fields(defaults) if f.type == "int"}
    shown |= {"cooldown": f"{defaults.cooldown:g}", "dropout": f"{defaults.dropout:g}"}
    return shown | dict(others or {})


def given_settings(kind: type[RunSettings], given: Given) -> dict[str, Any]:
    """Take the settings out of the options of a command that have a value."""
    names = [f.name for f in fields(kind) if f.name in given]
    return {name: value for name in names if (value := given.pop(name)) is not None}


def shortlist_option(defaults: type[LmData | SentenceData], words: str) -> Decorator:
    """Return the option for the shortlists of networks that are trained on texts."""
    return option(
        "shortlist",
        f"{words} that the network knows; the rest is UNK.",
        default=defaults.shortlist,
    )


def self_normalisation_option(where: str) -> Decorator:
    """Return the option, whose help says where it is worthwhile."""
    return option(
        "self-normalisation",
        "Factor of (log Z)^2 in the loss; above 0, scores are used without log Z, which is "
        f"faster {where}. 0.1 is usual.",
        default=0.0,
    )


def size_options(presets: Mapping[str, S], what: Mapping[str, str]) -> Decorator:
    """Return the options for the sizes of layers; `what` says what each is."""
    return options(
        option(
            "preset",
            "Layer sizes; small on a CPU, paper on a GPU by default."
            + (" characters is for models of letters." if "characters" in presets else ""),
            within=presets,
        ),
        option(
            "sizes",
            "Sizes that differ from the preset's, such as "
            f"{list(what)[-1]}=100: {', '.join(f'{name} ({of})' for name, of in what.items())}.",
        ),
    )


@dataclass(frozen=True)
class SizeOptions:
    """A preset of layer sizes, and sizes that replace the preset's.

    Attributes:
        preset: its name; None for the one that suits the device.
        sizes: by the names of the fields.
    """

    preset: str | None
    sizes: Mapping[str, int | str]

    @classmethod
    def from_options(cls, given: Given) -> SizeOptions:
        """Pick them from the options of a command.

        Raises:
            UsageError: no list of NAME=NUMBER.
        """
        sizes: dict[str, int | str] = {}
        for part in (given.pop("sizes", None) or "").replace(",", " ").split():
            name, equals, number = part.partition("=")
            if not (equals and number.isdecimal() and len(number) < 10):
                raise UsageError(f"--sizes {part}: expected NAME=NUMBER, such as hidden=100")
            sizes[name.strip()] = int(number)
        if unit := given.pop("unit", None):
            sizes["unit"] = unit
        return cls(given.pop("preset", None), sizes)

    def given(self) -> bool:
        """Return whether the user chose any."""
        return bool(self.preset or self.sizes)

    def on(self, device: torch.device, presets: Mapping[str, S]) -> S:
        """Return the sizes of a network on a device.

        Raises:
            UsageError: the network has no such preset, or no such size.
        """
        name = self.preset or ("paper" if device.type == "cuda" else "small")
        if name not in presets:
            raise UsageError(f"--preset {name}: expected {' or '.join(presets)} for this network")
        known = [size for size in vars(presets[name]) if size != "unit"]
        if unknown := sorted(self.sizes.keys() - vars(presets[name]).keys()):
            expected = f"sizes of this network ({', '.join(known)})"
            raise UsageError(f"--sizes: expected {expected}, found {unknown[0]}")
        sizes: dict[str, Any] = dict(self.sizes)
        try:
            return replace(presets[name], **sizes)
        except ValueError as error:
            raise UsageError(f"--sizes: {error}") from None


@dataclass(frozen=True)
class TrainingOptions:
    """The user's options for training an encoder-decoder, before device and tables are known.

    Attributes:
        run: the settings but for the sizes.
    """

    size: SizeOptions
    run: TrainingSettings
    shortlist: int = TrainingData.shortlist
    source_text: str | None = None
    target_text: str | None = None
    reverse: bool = False

    @classmethod
    def from_options(cls, given: Given) -> TrainingOptions:
        """Pick them from the options of a command."""
        size = SizeOptions.from_options(given)
        chosen = given_settings(TrainingSettings, given)
        if chosen.keys() & {*BUDGETS}:
            chosen.setdefault("cooldown", COOLDOWN)
        return take(cls, given, size=size, run=TrainingSettings(**chosen))

    def settings(self, device: torch.device) -> TrainingSettings:
        """Return the settings of training on a device."""
        return replace(self.run, sizes=self.size.on(device, PRESETS))

    def data(self, tables: tuple[str, ...], words: WordOptions) -> TrainingData:
        """Return the data to train on."""
        texts, direction = (self.source_text, self.target_text), Direction(self.reverse)
        return TrainingData(tables, *texts, self.shortlist, words, direction)


_sizes = size_options(
    PRESETS,
    {
        "hidden": "hidden units",
        "embedding": "word embedding",
        "maxout": "maxout units",
        "rank": "rank of the output matrix",
    },
)
_shortlist = option(
    "shortlist",
    "Words a side that the network knows; the rest is UNK.",
    default=TrainingData.shortlist,
)
_reverse = option(
    "reverse", "Learn p(source | target); source phrases are then target phrases, below."
)
assert Sizes.unit == "gru"  # noqa: S101  # as the help says

training_options = OptionGroup(
    "Training",
    "training",
    TrainingOptions.from_options,
    _sizes,
    option(
        "unit",
        "Hidden units: the paper's gated ones (gru, the default), without gates (tanh), or long "
        "short-term memory.",
        within=PRODUCTS,
    ),
    _shortlist,
    option("source-text", "Text whose word frequencies make the source shortlist."),
    option("target-text", "The same for the target side."),
    _reverse,
    self_normalisation_option("in tables"),
    option(
        "softmax-samples",
        "Estimate the sum over all words in the softmax, while training, from N words drawn "
        "anew for each update; faster with many words. As many as there are, or more: all words.",
        to="sample",
        default=DEFAULTS.sample,
    ),
    option(
        "optimizer",
        f"{DEFAULTS.optimizer} by default; adadelta is the paper's.",
        within=LEARNING_RATES,
    ),
    run_options(
        DEFAULTS, "phrase pairs", "an epoch, 5,000 at most,", {"cooldown": f"{COOLDOWN:g}"}
    ),
    more_run_options(DEFAULTS, "phrase pairs"),
)

short_training_options = OptionGroup(
    "Training (moses-feature model train has more options)",
    "training",
    TrainingOptions.from_options,
    _sizes,
    _shortlist,
    _reverse,
    budget_options("phrase pairs"),
    option(
        "dtype",
        "Of the matrix products in training and scoring. bfloat16 is faster where the processor or "
        "GPU has it; measured: scores change by 0.005 on average, 0.1 at most.",
        default=DEFAULTS.dtype,
        within=get_args(Dtype),
    ),
    option("seed", default=DEFAULTS.seed),
)
