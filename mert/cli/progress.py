"""How far a decoding run is."""

from __future__ import annotations

from moses_feature.cli.progress import Progress


class DecodingProgress:
    """Shows one decoding run after the other.

    Args:
        progress: where it is shown.
        sentences: how many there are to decode, by a word in the description of what is done.
    """

    def __init__(self, progress: Progress, sentences: dict[str, int]) -> None:
        self._progress = progress
        self._sentences = sentences
        self._what = ""
        self._done = 0

    def __call__(self, what: str, done: int) -> None:
        """Show what is being done, and that so many more sentences are done."""
        if what != self._what:
            self._what, self._done = what, 0
            self._progress.restart()
        self._done += done
        total = next((n for word, n in self._sentences.items() if word in what), None)
        if total is None:
            self._progress.show(what, None)
        else:
            share = self._done / total
            self._progress.show(f"{what}: {self._done:,} of {total:,} sentences", share)
