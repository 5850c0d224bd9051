"""How the decoder's inner functions are compiled, and when they are compiled anew."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from numba import njit

compiled = njit(cache=True)
"""For functions that allocate arrays."""

inner = njit(cache=True, _nrt=False)  # type: ignore[call-overload]
"""For functions that do not: without counting references to the arrays they are given.

Counting them takes atomic operations at every use of a member of a tuple of arrays, more time
than the search itself.
"""

HERE = Path(__file__).parent
STAMP = "sources.sha256"


def drop_stale_code(folder: Path = HERE) -> None:
    """Remove compiled code from `__pycache__` if any source file in the folder has changed.

    numba looks at the file of a function alone, not at those of the functions that it calls.
    """
    cache = folder / "__pycache__"
    hashed = hashlib.sha256()
    for source in sorted(folder.glob("*.py")):
        hashed.update(source.read_bytes())
    stamp = cache / STAMP
    with contextlib.suppress(OSError):  # a folder that cannot be written has no such code either
        if stamp.exists() and stamp.read_text() == hashed.hexdigest():
            return
        for file in (*cache.glob("*.nbi"), *cache.glob("*.nbc")):
            file.unlink(missing_ok=True)
        cache.mkdir(exist_ok=True)
        stamp.write_text(hashed.hexdigest())


drop_stale_code()
