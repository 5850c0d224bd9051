"""How functions are compiled by numba, and where their machine code is kept.

numba keeps machine code as long as the file of a function is the same. But the code also contains
called functions and constants from other files, so it is kept in a folder whose name is a digest of
all of them and of numba's version.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, overload

import numba
import numpy as np

from moses_feature.runtime.environment import cache_folder

logger = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])

Floats = Literal["ieee", "contracted", "reordered"]
"""How compiled code computes with floats. ieee: as numpy does, one operation after the other.
contracted: a product and a sum may be one instruction; the order of a sum is that of the code.
reordered: sums may be added up in any order."""
_FLOATS: dict[str, dict[str, Any]] = {
    "ieee": {"error_model": "numpy"},
    "contracted": {"fastmath": {"contract"}, "error_model": "numpy"},
    "reordered": {"fastmath": {"contract", "reassoc", "nsz"}, "error_model": "numpy"},
}

ROOT = Path(__file__).parents[2]
"""The directory of the packages."""
PACKAGES = ("mert", "moses_feature")
_COMPILES = b"moses_feature.runtime.compiled"


def _sources() -> list[Path]:
    """Return the files of all folders that hold compiled functions: what their code may contain."""
    files = [path for name in PACKAGES for path in (ROOT / name).rglob("*.py")]
    folders = {path.parent for path in files if _COMPILES in path.read_bytes()}
    return sorted(path for path in files if path.parent in folders)


def digest() -> str:
    """Return a digest of everything that machine code depends on, in hexadecimal."""
    hashed = hashlib.sha256(f"{numba.__version__} {sys.version}".encode())
    for path in _sources():
        hashed.update(f"\n{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return hashed.hexdigest()[:16]


def _folder() -> Path | None:
    """Make the folder for machine code; None if no folder can be written."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    try:
        folder = (Path(chosen) if chosen else cache_folder()) / f"compiled-{digest()}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not any(folder.iterdir()):
            logger.info("functions are compiled when they are first used: up to a minute in all")
    except OSError:
        logger.warning(
            "no folder for compiled code can be written: it is compiled anew, which takes a minute "
            "(NUMBA_CACHE_DIR names another folder)"
        )
        return None
    return folder if os.access(folder, os.W_OK) else None


KEPT = _folder()
"""Where machine code is kept."""
if KEPT is not None:
    numba.config.CACHE_DIR = str(KEPT)  # type: ignore[attr-defined]


def constant(value: int) -> int:
    """Return a number that compiled code takes for any integer; see `helper`."""
    return cast(int, np.int64(value))


INT_0, INT_1 = constant(0), constant(1)


@overload
def compiled(function: F) -> F: ...
@overload
def compiled(*, floats: Floats = "ieee") -> Callable[[F], F]: ...
def compiled(function: F | None = None, *, floats: Floats = "ieee") -> F | Callable[[F], F]:
    """Compile a function that Python calls, and keep its code. The GIL is released in a call.

    Args:
        function: the function.
        floats: see `Floats`.
    """
    decorate = numba.njit(cache=KEPT is not None, nogil=True, **_FLOATS[floats])
    return decorate if function is None else decorate(function)  # type: ignore[no-any-return]


@overload
def helper(function: F) -> F: ...
@overload
def helper(*, floats: Floats = "ieee", inline: bool = True) -> Callable[[F], F]: ...
def helper(
    function: F | None = None, *, floats: Floats = "ieee", inline: bool = True
) -> F | Callable[[F], F]:
    """Compile a function that only compiled functions call: without a wrapper for Python.

    numba compiles it once more for a number that stands in a call, or that a variable of its caller
    begins with: write `INT_0`, or another `constant`, there.

    Args:
        function: the function.
        floats: see `Floats`.
        inline: whether it becomes a part of its callers. A call passes every array of a tuple as
            seven numbers, and counts references to it; a long function is better called.
    """
    wrappers: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    decorate = numba.njit(forceinline=inline, **wrappers, **_FLOATS[floats])
    return decorate if function is None else decorate(function)  # type: ignore[no-any-return]
