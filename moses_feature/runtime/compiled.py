"""How functions are compiled by numba, and when cached machine code is out of date.

numba caches machine code beside the source of a function, and uses it as long as that file is the
same. But the code also contains called functions and constants from other files; so its stamp
covers these files as well.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Timer
from typing import Any, TypeVar

from numba import njit, types
from numba.core.caching import IndexDataCacheFile
from numba.core.registry import CPUDispatcher

from moses_feature.runtime.signals import deferred

logger = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])

ROOT = Path(__file__).parents[2]
"""The directory of the packages."""
_IMPORTS = re.compile(r"^from ((?:moses_feature|mert)[.\w]*) import", re.MULTILINE)
_COMPILES = "moses_feature.runtime.compiled"
SILENT_SECONDS = 3.0
"""Compiling that takes longer is reported; cached code loads at once."""


class _Dispatcher(CPUDispatcher):
    """A compiled function that treats a literal number like any other number.

    numba compiles f(0) and f(x) separately; a search would be compiled twice.
    """

    def get_call_template(self, arguments: Any, options: Any) -> Any:
        return super().get_call_template(tuple(map(types.unliteral, arguments)), options)


class _Entry(_Dispatcher):
    """A function that Python calls. Signals wait during a call; see `runtime.signals`."""

    def compile(self, signature: Any) -> Any:
        timer = Timer(SILENT_SECONDS, _say_that_code_is_made)
        timer.daemon = True
        timer.start()
        try:
            return super().compile(signature)
        finally:
            timer.cancel()

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return deferred(super().__call__, *arguments, **options)


class _Part(_Dispatcher):
    """A function that only compiled code calls: compiled without an entry for Python."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:  # noqa: ARG002
        raise TypeError(f"{self.py_func.__name__} can only be called by compiled functions")


def compiler(
    *, entry: bool = True, counts_references: bool = True, **options: Any
) -> Callable[[F], F]:
    """Return a decorator that compiles a function with options of numba, and keeps its code.

    Args:
        entry: whether Python calls it.
        counts_references: to the arrays that it is given; a function that allocates none need not.
        **options: of numba.
    """
    if not counts_references:
        options["_nrt"] = False
    if not entry:
        options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

    def compile_and_keep(function: F) -> F:
        dispatcher: Any = njit(**options)(function)
        dispatcher.__class__ = _Entry if entry else _Part
        _keep_code(dispatcher, Path(function.__code__.co_filename))
        result: F = dispatcher
        return result

    return compile_and_keep


compiled = compiler()
"""For functions that Python calls."""

threaded = compiler(nogil=True)
"""For functions that several threads of Python call."""

exact = compiler(nogil=True, fastmath={"contract"}, error_model="numpy")
"""For products and sums whose bits depend on nothing but their numbers: a product and a sum may be
one instruction, but the order of a sum is that of the code."""

part = compiler(entry=False)
"""For functions that allocate arrays and that only compiled ones call."""

inner = compiler(entry=False, counts_references=False, forceinline=True)
"""For functions that do not: without counting references to the arrays they are given, and inlined.

Reference counts take atomic operations at every use of a member of a tuple of arrays; a call passes
every array of a tuple as seven numbers. Either takes more time than the search itself.
"""


def _keep_code(dispatcher: Any, source: Path) -> None:
    """Keep the machine code of a function beside its source, under a stamp that covers all of it.

    numba has no public way to say what a stamp covers (numba/core/caching.py), so that private
    attributes are set here. `tests/system/test_compiled.py` names the versions that it was tried
    with. The stamp is part of the file name, too: an index of older code may not even be readable
    by newer code.
    """
    try:
        dispatcher.enable_caching()
    except RuntimeError:  # no folder for the cache can be written
        _say_that_code_is_not_kept()
        return
    stamp = source_stamp(source)
    cache = dispatcher._cache
    name = f"{cache._impl.filename_base}-{stamp[:12]}"
    cache._cache_file = IndexDataCacheFile(cache._cache_path, name, stamp)  # type: ignore[no-untyped-call]


@cache
def _say_that_code_is_made() -> None:
    logger.info("compiling this part of the program, once after an installation: up to a minute")


@cache
def _say_that_code_is_not_kept() -> None:
    logger.warning(
        "no folder for compiled code can be written: it is compiled anew, which takes a minute "
        "(NUMBA_CACHE_DIR names another folder)"
    )


@cache
def source_stamp(source: Path) -> str:
    """Return the SHA-256 of a file and of the files that its compiled code may include.

    These are the imported files of this project that are in the same folder or have compiled
    functions of their own.
    """
    text = source.read_text()
    hashed = hashlib.sha256(text.encode())
    for name in _IMPORTS.findall(text):
        other = ROOT.joinpath(*name.split(".")).with_suffix(".py")
        if other.is_file() and (other.parent == source.parent or _COMPILES in other.read_text()):
            hashed.update(source_stamp(other).encode())
    return hashed.hexdigest()
