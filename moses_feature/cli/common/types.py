"""Types of options, and options that commands of several groups share; free of torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import Any, Generic, TypeVar

import click
from click.core import ParameterSource

from moses_feature.moses.nbest_formats.reader import FORMATS, MOSES
from moses_feature.moses.nbest_lists import NAME
from moses_feature.runtime.errors import UsageError

format_option = click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default=MOSES,
    show_default=True,
    help="Whose lists they are. Those of other decoders get a WordPenalty0, and what orders them.",
)


table_name_option = click.option(
    "--table-name", metavar="NAME", help="Of the phrase table in the ini, if it has several."
)


def named_models(given: Sequence[str]) -> list[tuple[str, list[Path]]]:
    """Return names and directories of `NAME=DIRECTORY …`; those of one name stand together.

    Raises:
        UsageError: several without names, or a name that is none.
    """
    found: dict[str, list[Path]] = {}
    for text in given:
        name, equals, path = ("", "", text) if Path(text).is_dir() else text.rpartition("=")
        if (equals and not NAME.fullmatch(name)) or not path:
            raise UsageError(f"{text}: expected NAME=DIRECTORY, the name of letters and digits")
        found.setdefault(name, []).append(Path(path))
    if len(given) > 1 and "" in found:
        raise UsageError(
            f"{found[''][0]}: several models need names, such as forward={found[''][0]}; those of "
            "one name are averaged"
        )
    return list(found.items())


Given = dict[str, Any]
"""The options of a command, as click passes them."""

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class WholeRange(click.IntRange):
    """A whole number in a range; N in the help."""

    name = "N"


POSITIVE = WholeRange(min=1)
NOT_NEGATIVE = WholeRange(min=0)
THREADS = WholeRange(1, 1024)
BATCH = WholeRange(1, 1 << 20)
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


class Gathered(Generic[T]):
    """Options that reach the function of a command as one object; a decorator.

    Args:
        title: of the options, in the help.
        name: of the function's parameter.
        from_options: makes the object; takes its options out of those of the command.
        options: click's decorators, in the order of the help.
    """

    def __init__(
        self,
        title: str,
        name: str,
        from_options: Callable[[Given], T],
        *options: Callable[[F], F],
    ) -> None:
        self._title = title
        self._name = name
        self._from_options = from_options
        self._options = options

    def __call__(self, command: F) -> F:
        """Add the options to a command."""

        @wraps(command)
        def with_gathered(**given: Any) -> Any:
            gathered = self._from_options(given)
            return command(**{self._name: gathered}, **given)

        decorated: Any = with_gathered
        others = list(getattr(decorated, "__click_params__", []))
        for option in reversed(self._options):
            decorated = option(decorated)
        for parameter in decorated.__click_params__:
            if parameter not in others:
                parameter.help_group = self._title
        result: F = decorated
        return result

    def given(self) -> list[str]:
        """Return the names of those of the options that the user has typed."""

        def nothing() -> None:
            pass

        return typed(parameter.name or "" for parameter in click.command()(self(nothing)).params)


def typed(names: Iterable[str]) -> list[str]:
    """Return those of some options, by the names of their parameters, that the user has typed."""
    context, typed = click.get_current_context(), ParameterSource.COMMANDLINE
    return [name for name in names if context.get_parameter_source(name) is typed]


def taken(kind: type[T], given: Given, *without: str, **others: Any) -> T:
    """Make a dataclass of the options that are called like its fields, and take them out.

    Args:
        kind: the dataclass.
        given: the options of a command; those that are used are removed.
        without: fields that are no options: they keep their defaults.
        others: values of fields that are no options.

    Raises:
        KeyError: the command has no such option.
    """
    skipped = {*without, *others}
    own = {f.name: given.pop(f.name) for f in fields(kind) if f.name not in skipped}  # type: ignore[arg-type]
    return kind(**own, **others)


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return a decorator that adds several options, in this order."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate
