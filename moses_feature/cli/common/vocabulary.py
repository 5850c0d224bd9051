"""The vocabulary of options: in all commands a word has one meaning and one type of value.

docs/reference/vocabulary.md says what each word means.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import click

from moses_feature.cli.common.groups import Decorator
from moses_feature.cli.common.paths import (
    READ,
    READ_INI,
    READ_NAMED_MODEL,
    READ_ONCE,
    READ_SYSTEM_DIRECTORY,
    READ_TABLE,
    READ_TRANSLATIONS,
    WRITE,
    WRITE_DIRECTORY,
    WRITE_INI,
)


class WholeRange(click.IntRange):
    """A whole number in a range; N in the help."""

    name = "N"


POSITIVE = WholeRange(min=1)
NOT_NEGATIVE = WholeRange(min=0)
THREADS = WholeRange(1, 1024)
BATCH = WholeRange(1, 1 << 20)
PORT = WholeRange(0, 65535)
SEED = WholeRange(0, (1 << 63) - 1)


class FiniteRange(click.FloatRange):
    """A float in a range; click's own lets nan through."""

    name = "X"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Convert the option's text, and refuse what is not finite."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number

    def _describe_range(self) -> str:
        """Return the range for the help; click's own says None where there is none."""
        return "" if self.min is None and self.max is None else super()._describe_range()


ABOVE_ZERO = FiniteRange(min=0, min_open=True)
ZERO_OR_MORE = FiniteRange(min=0)
ANY_NUMBER = FiniteRange()
SHARE = FiniteRange(0, 1)

FLAG = click.BOOL
WORDS: Mapping[click.ParamType[Any], str] = {
    FLAG: "as-ini filter-tables force hierarchical json no-unknown normalised osm per-word plan "
    "raw resume reverse right-to-left same-table source-unknown tokens with-alignment "
    "with-segmentation",
    READ: "alignment binary-path constraint dev dev-reference documents general held-out-text "
    "in-domain init lists lm lm-text phrases-of source source-text target "
    "target-text test test-reference",
    READ_ONCE: "reference token",
    READ_INI: "ini start weights",
    READ_TABLE: "table",
    READ_SYSTEM_DIRECTORY: "system",
    READ_NAMED_MODEL: "model rescore",
    READ_TRANSLATIONS: "translations",
    WRITE: "alignment-out one-best output",
    WRITE_INI: "ini-out",
    WRITE_DIRECTORY: "output-dir work-dir",
    POSITIVE: "beam best evaluate-every lines "
    "max-iterations max-length nbest-size order patience "
    "phrase-length pop-limit samples seeds shortlist softmax-samples "
    "updates words",
    NOT_NEGATIVE: "distortion-limit most-lines restarts source-factor subwords target-factor "
    "warmup",
    BATCH: "batch-size",
    PORT: "port",
    SEED: "seed",
    THREADS: "jobs threads",
    ABOVE_ZERO: "epochs learning-rate minutes time-limit",
    ZERO_OR_MORE: "self-normalisation",
    SHARE: "cooldown dropout label-smoothing",
    ANY_NUMBER: "temperature weight",
    click.STRING: "algorithm aligner architecture case decoder device dtype escaped format "
    "host metric moses moses-options optimizer preset ray "
    "reordering side significance sizes source-language subwords-from "
    "table-name target-language unit xml-input",
}
"""The options of all commands, without their dashes, by the type of their values."""
TYPES = {word: kind for kind, words in WORDS.items() for word in words.split()}
METAVARS = {
    "general": "MODEL|TEXT",
    "in-domain": "MODEL|TEXT",
    "moses": "FILE",
    "ray": "ADDRESS",
    "table-name": "NAME",
    "time-limit": "SECONDS",
}
"""Names of values in the help, where the type's name is not clear enough."""


def option(
    word: str,
    help: str = "",  # noqa: A002
    *,
    to: str | None = None,
    default: Any = None,
    within: click.ParamType[Any] | Iterable[str] | None = None,
    many: bool = False,
    required: bool = False,
) -> Decorator:
    """Return an option of the vocabulary, a decorator.

    Args:
        word: without its dashes.
        help: its effect in this command.
        to: the parameter of the function; by default that of the option's name.
        default: shown in the help.
        within: the values that this command accepts: a narrower type, or names to choose from.
        many: whether it may be repeated.
        required: whether it must be given.
    """
    kind = TYPES[word]
    if within is not None:
        kind = within if isinstance(within, click.ParamType) else click.Choice(list(within))
    flag = kind is FLAG
    # click takes even a default of None for a value of an option that must be given
    defaults: dict[str, Any] = {} if default is None else {"default": default}
    if flag:
        defaults = {"default": False, "is_flag": True}
    return click.option(
        f"--{word}",
        to or word.replace("-", "_"),
        type=None if flag else kind,
        metavar=None if isinstance(kind, click.Choice) else METAVARS.get(word),
        **defaults,
        show_default=default not in (None, ""),
        multiple=many,
        required=required,
        help=help,
    )
