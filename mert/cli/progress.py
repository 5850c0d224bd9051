"""How far a decoding run is, on a terminal."""

from __future__ import annotations

import sys

from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm


class DecodingProgress:
    """A bar over the sentences of one decoding run after the other; nothing but on a terminal."""

    def __init__(self, sentences: dict[str, int]) -> None:
        """Take the number of sentences by a word in the description of what is done."""
        self._sentences = sentences
        self._bar: tqdm[None] | None = None
        self._what = ""
        self._redirect = logging_redirect_tqdm()

    def __enter__(self) -> DecodingProgress:
        self._redirect.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
        self._redirect.__exit__(None, None, None)

    def __call__(self, what: str, done: int) -> None:
        """Take what is being done and how many sentences more are done."""
        if sys.stderr is None or not sys.stderr.isatty():
            return
        if what != self._what or self._bar is None:
            if self._bar is not None:
                self._bar.close()
            total = next((n for word, n in self._sentences.items() if word in what), None)
            self._bar = tqdm(total=total, desc=what, leave=False, unit=" sentences")
            self._what = what
        self._bar.update(done)
