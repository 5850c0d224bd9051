"""Option groups: options that stand together in the help and reach a command as one object."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import wraps
from typing import Any, Generic, Protocol, TypeVar

import click
from click.core import ParameterSource

Given = dict[str, Any]
"""The options of a command, as click passes them."""

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Decorator(Protocol):
    """A decorator that adds options to the function of a command."""

    def __call__(self, command: F, /) -> F:
        """Add them."""


class OptionGroup(Generic[T]):
    """Options that reach the function of a command as one object; a decorator.

    Args:
        title: the title of the options in the help.
        name: the name of the function's parameter.
        make: makes the object; takes its options out of those of the command (see `taking`).
        *options: click's decorators, in the order of the help.
    """

    def __init__(
        self, title: str, name: str, make: Callable[[Given], T], *options: Decorator
    ) -> None:
        self._title = title
        self._name = name
        self._make = make
        self._options = options

    def __call__(self, command: F) -> F:
        """Add the options to a command."""

        @wraps(command)
        def with_object(**given: Any) -> Any:
            made = self._make(given)
            return command(**{self._name: made}, **given)

        decorated: Any = with_object
        others = list(getattr(decorated, "__click_params__", []))
        decorated = options(*self._options)(decorated)
        for parameter in decorated.__click_params__:
            if parameter not in others:
                parameter.help_group = self._title
        result: F = decorated
        return result

    def given(self) -> list[str]:
        """Return the names of the options that the user has given."""

        def nothing() -> None:
            pass

        return typed(parameter.name or "" for parameter in click.command()(self(nothing)).params)


def typed(names: Iterable[str]) -> list[str]:
    """Return those options, by the names of their parameters, that the user has given."""
    context, typed = click.get_current_context(), ParameterSource.COMMANDLINE
    return [name for name in names if context.get_parameter_source(name) is typed]


def take(kind: type[T], given: Given, **others: Any) -> T:
    """Make a dataclass from the options named like its fields, and take them out.

    Args:
        kind: the dataclass.
        given: the options of a command; those that are used are removed.
        **others: values of other fields. A field that has neither keeps its default.
    """
    names = (f.name for f in fields(kind))  # type: ignore[arg-type]
    own = {name: given.pop(name) for name in names if name in given and name not in others}
    return kind(**own, **others)


def taking(kind: type[T]) -> Callable[[Given], T]:
    """Return a function that makes a dataclass from options; see `take`."""
    return lambda given: take(kind, given)


def options(*decorators: Decorator) -> Decorator:
    """Return a decorator that adds several options, in this order."""

    def decorate(command: F) -> F:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate
