"""Light processes that pack parts of a table, and append the columns, beside the scorer.

They import neither torch nor the commands: each starts in less than a second, and takes 160 MB plus
the parts that it works on.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from copy import copy
from functools import partial
from typing import Any, TypeVar

from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.runtime.processes import ObjectProcess
from moses_feature.tables.columns import NewColumns

Result = TypeVar("Result")


class HelperHere:
    """A helper in this process, for tables too small for another process."""

    def __init__(self, columns: NewColumns) -> None:
        self._columns = columns

    def call(self, method: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Call the method at once."""
        future: Future[Result] = Future()
        try:
            future.set_result(method(self._columns, *arguments))
        except MosesFeatureError as error:
            future.set_exception(error)
        return future

    def close(self) -> None:
        """Do nothing: there is no process to end."""


Helper = HelperHere | ObjectProcess
"""Calls methods of `NewColumns` in the order of the calls."""


def helper_process(columns: NewColumns) -> Helper:
    """Return a helper in a process of its own."""
    return ObjectProcess(partial(copy, columns), "a helper process")
