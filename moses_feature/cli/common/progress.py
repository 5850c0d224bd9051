"""Progress of long runs: a bar on a terminal, a log line now and then elsewhere."""

from __future__ import annotations

import logging
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn

from moses_feature.runtime.processes import duration
from moses_feature.training.settings import MORE_THAN_WARMUP, RunSettings

if TYPE_CHECKING:
    from tqdm import tqdm

    from moses_feature.tables.augment import AugmentProgress
    from moses_feature.training.trainer import TrainingState

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_LINES = 30.0
BAR = "{percentage:3.0f}%|{bar}| {desc} [{elapsed}<{remaining}]"
BAR_WITHOUT_END = "{desc} [{elapsed}]"


class Progress:
    """Shows the progress of a run: the share of the whole, if it is known, and a few words.

    Time is counted from the first share that is shown: reading, and the work of an earlier run, say
    nothing about the remaining time.

    Args:
        has_end: whether the whole is known.
        first: the description of the task until another one is shown.
    """

    def __init__(self, has_end: bool, first: str = "reading") -> None:
        self._started = time.monotonic()
        self._shown = self._started
        self._base: tuple[float, float] | None = None
        self._stack = ExitStack()
        self._bar_format = BAR if has_end else BAR_WITHOUT_END
        self._bar: tqdm[NoReturn] | None = None
        if sys.stderr is not None and sys.stderr.isatty():
            self._bar = self._new_bar(first)

    def _new_bar(self, text: str, share: float = 0.0) -> tqdm[NoReturn]:
        """Return a bar that counts time, and what is done, from now on."""
        from tqdm import tqdm

        return tqdm(total=1.0, initial=share, desc=text, bar_format=self._bar_format, leave=False)

    def __enter__(self) -> Progress:
        if self._bar is not None:
            from tqdm.contrib.logging import logging_redirect_tqdm

            self._stack.enter_context(logging_redirect_tqdm())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        self._stack.close()

    def restart(self) -> None:
        """Count the time from now on."""
        self._started = time.monotonic()
        self._base = None

    def seconds(self) -> float:
        """Return the time since the beginning."""
        return time.monotonic() - self._started

    def show(self, text: str, share: float | None) -> None:
        """Show a state, if it is time to."""
        now = time.monotonic()
        share = None if share is None else min(max(share, 0.0), 1.0)
        if self._base is None:
            self._base = now, share or 0.0
            if self._bar is not None:
                self._bar.close()
                self._bar = self._new_bar(text, share or 0.0)
        if now - self._shown < (SECONDS_BETWEEN_LINES if self._bar is None else 0.2):
            return
        self._shown = now
        if self._bar is not None:
            self._bar.set_description_str(text, refresh=False)
            self._bar.update((share or 0.0) - self._bar.n)
            self._bar.refresh()
        else:
            logger.info("%s%s", text, self._time_left(now, share))

    def _time_left(self, now: float, share: float | None) -> str:
        if share is None or self._base is None or share <= self._base[1]:
            return ""
        seconds = (now - self._base[0]) * (1.0 - share) / (share - self._base[1])
        return f", {seconds / 60:.1f} min left"


@contextmanager
def building_progress() -> Iterator[Callable[[str, float | None], None]]:
    """Show the progress of a build: its current step, and the share of it that is done."""
    with Progress(has_end=True) as bar:
        yield bar.show


class AugmentReporter:
    """Shows an augmentation: lines, pairs per second, time left."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._written_before: int | None = None
        self._first_time = 0.0

    def __call__(self, state: AugmentProgress, share: float | None) -> None:
        """Show the state of the run and the share of the table that was read."""
        if self._written_before is None:  # a resumed run has lines that cost no time now
            self._written_before = state.written
            self._first_time = self._progress.seconds()
        self._progress.show(
            f"{state.lines:,} lines, {self.pairs_per_second(state):,.0f} pairs/s", share
        )

    def pairs_per_second(self, state: AugmentProgress) -> float:
        """Return how many lines a second this run has written."""
        seconds = self._progress.seconds() - self._first_time
        return (state.written - (self._written_before or 0)) / seconds if seconds else 0.0


PLANNED_AFTER = 10.0
"""Seconds of training by which its speed is known."""
PLANNED_FROM = 60.0
"""Seconds of a run whose plan is worth printing."""


class TrainingReporter:
    """Shows a training run: its plan, updates, loss since the last evaluation, share of the budget.

    Attributes:
        planned: whether the plan has been printed.
    """

    def __init__(self, progress: Progress, settings: RunSettings, examples: str = "pairs") -> None:
        self._progress = progress
        self._settings = settings
        self._examples = examples
        self._before: tuple[int, float] | None = None
        self.planned = False

    def __call__(self, state: TrainingState) -> None:
        """Show the state of the run."""
        if self._before is None:
            self._progress.restart()
            self._before = state.update, state.seconds
            return
        updates, seconds = state.update - self._before[0], state.seconds - self._before[1]
        a_second = updates / seconds
        if not self.planned and seconds >= PLANNED_AFTER:
            self.planned = True
            self._print_plan(state, a_second)
        loss = ""
        if state.summed_words:  # since the last evaluation
            loss = f", loss {state.summed_loss / state.summed_words:.3f}"
        speed = f"{a_second * self._settings.batch_size:,.0f} {self._examples}/s"
        share = self._settings.spent(state.update, state.seconds)
        self._progress.show(f"update {state.update:,}, {speed}{loss}", share)

    def _print_plan(self, state: TrainingState, a_second: float) -> None:
        """Print how long an epoch and the whole will take, at this speed."""
        settings, epoch = self._settings, state.updates_per_epoch / a_second
        ends = []
        if settings.minutes is not None:
            ends.append(60 * settings.minutes)
        if settings.epochs is not None:
            ends.append(settings.epochs * epoch)
        if settings.updates is not None:
            ends.append(settings.updates / a_second)
        whole = f"until {settings.patience} evaluations in a row bring nothing, which may be long"
        if ends:
            updates = min(ends) * a_second
            whole = f"{duration(min(ends))} at most, {updates:,.0f} updates"
            if updates < settings.warmup:
                whole += f", within the warm-up of {settings.warmup}: {MORE_THAN_WARMUP}"
        if not ends or min(ends) >= PLANNED_FROM:
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            logger.info(
                "plan (an estimate): %.0f %s/s, an epoch %s; %s; %.1f GB of memory so far",
                a_second * settings.batch_size,
                self._examples,
                duration(epoch),
                whole,
                memory,
            )
