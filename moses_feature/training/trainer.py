"""The training loop of all networks; `objective.py` defines its interface to them."""

from __future__ import annotations

import logging
import math
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import nn

from moses_feature import __version__
from moses_feature.networks.files import CHECKPOINT, CONFIG, check_complete
from moses_feature.networks.phrases import phrase_hash
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.runtime.files import Json
from moses_feature.runtime.json_files import numbered, record
from moses_feature.training.checkpoint import (
    load_checkpoint,
    restore,
    save_checkpoint,
    saved_tensors,
)
from moses_feature.training.objective import Objective, Rows, Terms
from moses_feature.training.ranks import ALONE, Ranks
from moses_feature.training.settings import ANNEALING, BUDGETS, MORE_THAN_WARMUP, RunSettings

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_CHECKPOINTS = 60.0
INTERRUPTED = "interrupted"
FEWEST_EPOCHS, LITTLE_BETTER = 1.0, 0.9
"""The network is said to have learnt too little with fewer epochs, or with a held-out loss above
this share of that of word frequencies."""


@dataclass
class TrainingState:
    """The progress of a training run; with weights and optimiser state, its whole state.

    Losses are in nats per word, END counted as a word, or in the objective's own unit. "Words" are
    then its examples.
    """

    updates_per_epoch: int = 0
    update: int = 0
    seconds: float = 0.0
    best_held_out_loss: float = math.inf
    evaluations_without_gain: int = 0
    last_evaluation: int = 0
    summed_loss: float = 0.0
    summed_words: int = 0
    history: list[dict[str, float]] = field(default_factory=list)


@dataclass(frozen=True)
class RunControl:
    """How a training run is controlled and observed.

    Attributes:
        resume: continue from the checkpoint in the model directory; start if the directory is
            empty.
        command: the command line, for the model's provenance.
        stop: called after each update; returns whether to stop.
        last: whether a run that is stopped leaves a model in any case: it will not be resumed.
        report: called with the state of the run after each update.
        ranks: the processes that train together, all with the same arguments; the first one reads
            and writes. Each takes its share of every batch, so that an update does not depend on
            their number, except for the order of sums.
    """

    resume: bool = False
    command: str = ""
    stop: Callable[[], bool] = lambda: False
    last: bool = False
    report: Callable[[TrainingState], None] = lambda _: None
    ranks: Ranks = ALONE


NO_CONTROL = RunControl()


class Trainer:
    """One training run, resumable bit by bit on the same machine.

    Args:
        objective: the network and its data.
        settings: how to train.
        directory: the directory of the best model and the checkpoint.
        device: the device of the products.
        provenance: of the data, recorded in the model's config.
        control: stopping, resuming and reporting; see `RunControl`.
    """

    def __init__(
        self,
        objective: Objective,
        settings: RunSettings,
        directory: Path,
        device: torch.device,
        provenance: Json,
        control: RunControl = NO_CONTROL,
    ) -> None:
        self._objective = objective
        self._settings = settings
        self._directory = directory
        self._device = device
        self._provenance = provenance
        self.state = TrainingState(objective.updates_per_epoch)
        self.network = objective.network
        self._evaluate_every = settings.evaluate_every or objective.evaluate_every
        self._annealing = settings.annealing or ANNEALING[settings.optimizer]
        self._optimizer = _optimizer(settings, self.network)
        self._rate: float | None = None
        self._control = control
        self._ranks = control.ranks
        self._parallel = self._ranks.parallel(self.network)

    def run(self) -> str:
        """Train until the budget is spent, patience runs out or the control stops it.

        It continues from the checkpoint in the model directory, if there is one.

        Returns:
            The reason for stopping.

        Raises:
            MosesFeatureError: the loss is no longer a number, or the checkpoint belongs to other
                data or settings.
        """
        self._ranks.from_first(self._resume_if_begun)
        budget, warmup = self._settings.updates, self._settings.warmup
        ends_in_warmup = budget is not None and budget < warmup
        if ends_in_warmup:  # said before the time is spent
            self._advise_on_warmup(f"{budget} updates end")
        reason, objective, best = self._train(), self._objective, self.state.best_held_out_loss
        what = "best held-out loss " if objective.sign > 0 else "best of held-out sentences "
        gained = f"; {what}{objective.sign * best:.4f}{objective.unit}" if best < math.inf else ""
        logger.info("training ended: %s%s", reason, gained)
        if reason != INTERRUPTED:
            if self._settings.minutes is not None:
                minutes, updates = self._settings.minutes, self.state.update
                logger.info("elsewhere: --updates %d instead of --minutes %g", updates, minutes)
            if not ends_in_warmup and self.state.update < warmup:
                self._advise_on_warmup(f"{self.state.update} updates were")
            if too_little := ", and ".join(self._learnt_too_little()):
                logger.warning("the network has learnt too little: %s", too_little)
        return reason

    def seconds_an_update(self, updates: int) -> float:
        """Return how long an update takes: the median over so many. They change the network."""
        seconds = []
        for _ in range(updates):
            begun = time.monotonic()
            self._update()
            seconds.append(time.monotonic() - begun)
        return statistics.median(seconds)

    def _learnt_too_little(self) -> Iterator[str]:
        """Yield signs that the network needs more training."""
        objective, state = self._objective, self.state
        epochs = state.update / objective.updates_per_epoch
        if epochs < FEWEST_EPOCHS and not objective.starts_trained:
            yield f"it has seen {100 * epochs:.0f}% of its data once"
        of_frequencies = objective.frequency_loss
        if of_frequencies and state.best_held_out_loss > LITTLE_BETTER * of_frequencies:
            yield (
                f"its held-out loss of {state.best_held_out_loss:.2f} is near the "
                f"{of_frequencies:.2f} of word frequencies alone"
            )

    def _advise_on_warmup(self, what: str) -> None:
        warmup = self._settings.warmup
        logger.warning("%s within the warm-up of %d: %s", what, warmup, MORE_THAN_WARMUP)

    def _resume_if_begun(self) -> None:
        if holds_model(self._directory):
            self._resume()
        elif self._control.resume:
            logger.info("%s: nothing to resume, training begins", self._directory)

    def _resume(self) -> None:
        saved = load_checkpoint(self._directory, self.network, self._optimizer, self._identity())
        self.state = record(
            TrainingState, saved, self._directory / CHECKPOINT, "the state of a training run"
        )
        if self.state.best_held_out_loss < math.inf:
            try:
                check_complete(self._directory)
            except MosesFeatureError as error:
                raise MosesFeatureError(f"{error} (--resume needs the best model)") from None
        logger.info("resumed at update %d", self.state.update)

    def _train(self) -> str:
        if self._ranks.count > 1:
            self._begin_as_the_first()
        if self.state.update == 0:
            if self._objective.starts_trained and not self.state.history:
                self._evaluate()
            self._save_checkpoint()
        started = time.monotonic() - self.state.seconds
        saved_at = self.state.seconds
        interrupted = False
        while (reason := self._finished()) is None and not interrupted:
            loss, words = self._update()
            seconds = stopped = 0.0
            if self._ranks.first:  # its clock and keyboard decide for all processes
                seconds, stopped = time.monotonic() - started, float(self._control.stop())
            loss, words, seconds, stopped = self._ranks.sums((loss, words, seconds, stopped))
            self.state.summed_loss += loss
            self.state.summed_words += int(words)
            self.state.seconds = seconds
            interrupted = stopped > 0
            if self.state.update % self._evaluate_every == 0:
                self._evaluate()
                self._save_checkpoint()
                saved_at = self.state.seconds
            elif self.state.seconds - saved_at > SECONDS_BETWEEN_CHECKPOINTS:
                self._save_checkpoint()
                saved_at = self.state.seconds
            self._control.report(self.state)
        # The last updates may have made the best model; an interrupted run evaluates when resumed.
        ended = reason is not None or self._control.last
        if ended and self.state.last_evaluation != self.state.update:
            self._evaluate()
        self._save_checkpoint()
        return reason or INTERRUPTED

    def _begin_as_the_first(self) -> None:
        """Take state, weights and optimiser from the first process, which may have resumed."""
        found = self._ranks.from_first(
            lambda: (
                asdict(self.state),
                saved_tensors(self.network, self._optimizer),
                self._optimizer.param_groups[0]["lr"],
            )
        )
        state, tensors, learning_rate = found
        if not self._ranks.first:
            self.state = TrainingState(**state)
            restore(self.network, self._optimizer, tensors, learning_rate)

    def _finished(self) -> str | None:
        settings, state = self._settings, self.state
        if 0 < settings.patience <= state.evaluations_without_gain:
            return f"no better held-out loss in {settings.patience} evaluations"
        if settings.updates is not None and state.update >= settings.updates:
            return f"{_counted(state.update, 'update')} done"
        epochs = state.update / self._objective.updates_per_epoch
        if settings.epochs is not None and epochs >= settings.epochs:
            return f"{_counted(settings.epochs, 'epoch')} done"
        if settings.minutes is not None and state.seconds >= 60 * settings.minutes:
            return f"{settings.minutes:.3g} minutes spent"
        return None

    def _step(self) -> None:
        """Make a step of the optimiser, a smaller one in the warm-up and in the cooldown."""
        state, cooldown = self.state, self._settings.cooldown
        epochs = state.update / self._objective.updates_per_epoch
        spent = self._settings.spent(state.update, state.seconds, epochs)
        factor = min(1.0, (1 - spent) / cooldown) if cooldown and spent is not None else 1.0
        if state.update < self._settings.warmup:
            factor *= (state.update + 1) / self._settings.warmup
        [group] = self._optimizer.param_groups
        rate = group["lr"]
        self._rate = group["lr"] = rate * factor
        self._optimizer.step()
        group["lr"] = rate

    def _update(self) -> tuple[float, float]:
        """Make one update; return the loss and the words of this process's share."""
        rows = self._objective.batch(self.state.update)
        mine, weight = self._ranks.share(rows)
        # Dropout is seeded so that a resumed run continues identically and processes differ.
        place = (self._settings.seed, self.state.update, self._ranks.index)
        torch.manual_seed(phrase_hash([b"%d %d %d" % place]))
        self._optimizer.zero_grad()
        weight *= self._ranks.count  # as gradients are averaged over the processes
        *first, last = self._objective.parts(mine)
        with self._ranks.apart(self._parallel):
            losses = [self._learn(part, weight, len(rows)) for part in first]
        losses.append(self._learn(last, weight, len(rows)))
        loss, words = (sum(of_each) for of_each in zip(*losses, strict=True))
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), self._settings.clip)
        if not (math.isfinite(loss) and math.isfinite(norm.item())):
            raise self._diverged(
                self.state.update + 1, f"the loss is {loss:g}, its gradient {norm.item():g}"
            )
        self._step()
        self.state.update += 1
        return (loss, words) if weight else (0.0, 0.0)

    def _learn(self, rows: Rows, weight: float, pairs: int) -> tuple[float, int]:
        """Add the gradient of the loss of some examples; return the loss and their words.

        The loss that is minimised is the sum over all words, divided by the number of pairs in the
        whole batch.
        """
        terms = self._terms(self._parallel, rows)
        loss = -terms.rewards.sum()
        minimised = loss
        if terms.log_norms is not None:
            minimised = loss + self._objective.norm_penalty * terms.log_norms.square().sum()
        if terms.penalty is not None:
            minimised = minimised + terms.penalty
        torch.autograd.backward(minimised * weight / pairs)
        return loss.item(), len(terms.rewards)

    def _diverged(self, update: int, what: str) -> MosesFeatureError:
        return MosesFeatureError(
            f"update {update}: {what}; the last good checkpoint is in {self._directory}, a "
            "smaller --learning-rate may help"
        )

    def _terms(self, network: nn.Module, rows: Rows) -> Terms:
        bfloat16 = self._settings.dtype == "bfloat16"
        with torch.autocast(self._device.type, torch.bfloat16, enabled=bfloat16):
            return self._objective.terms(network, rows)

    def _held_out(self) -> dict[str, float]:
        """Return loss and penalty per word, and the mean of |log Z| if it is needed."""
        loss, words, log_norms, normed_words, penalty = 0.0, 0, 0.0, 0, 0.0
        examples, size = self._objective.held_out, self._objective.evaluation_batch
        ranks = self._ranks
        self.network.eval()
        with torch.no_grad():
            for first in range(ranks.index * size, len(examples), ranks.count * size):
                terms = self._terms(self.network, examples[first : first + size])
                loss -= terms.rewards.double().sum().item()
                words += len(terms.rewards)
                if terms.log_norms is not None:
                    log_norms += terms.log_norms.double().abs().sum().item()
                    normed_words += len(terms.log_norms)
                if terms.penalty is not None:
                    penalty += terms.penalty.item()
        self.network.train()
        sums = self._ranks.sums((loss, words, log_norms, normed_words, penalty))
        found = {"held_out_loss": sums[0] / sums[1]}
        if sums[3]:
            found["mean_absolute_log_norm"] = sums[2] / sums[3]
        if sums[4]:
            found["held_out_penalty"] = sums[4] / sums[1]
        return found

    def _evaluate(self) -> None:
        state = self.state
        held_out = self._held_out()
        held_out_loss = held_out["held_out_loss"]
        if not math.isfinite(held_out_loss):
            raise self._diverged(state.update, f"the held-out loss is {held_out_loss:g}")
        trained = {}
        if state.summed_words:
            trained["training_loss"] = state.summed_loss / state.summed_words
        rate = {} if self._rate is None else {"learning_rate": self._rate}
        better = held_out_loss < state.best_held_out_loss
        state.history.append(
            {
                "update": state.update,
                "minutes": round(state.seconds / 60, 3),
                **trained,
                **held_out,
                **rate,
            }
        )
        epochs = state.update / self._objective.updates_per_epoch
        logger.info(
            "update %d  epoch %.2f  %.1f min%s  %s:%s  held-out %s%s",
            state.update,
            epochs,
            state.seconds / 60,
            "".join(f"  learning rate {of_last:.2g}" for of_last in rate.values()),
            self._objective.loss_name,
            "".join(f" training {self._objective.sign * loss:.4f}" for loss in trained.values()),
            self._objective.shown(held_out),
            "  (best)" if better else "",
        )
        state.last_evaluation = state.update
        state.summed_loss, state.summed_words = 0.0, 0
        if better:
            state.best_held_out_loss = held_out_loss
            state.evaluations_without_gain = 0
            if self._ranks.first:
                self._objective.save(self._directory, self._training(held_out))
        else:
            state.evaluations_without_gain += 1
            self._optimizer.param_groups[0]["lr"] *= self._annealing

    def _training(self, held_out: dict[str, float]) -> Json:
        """Return the record of the training for the model's config."""
        return {
            "settings": asdict(self._settings),
            **held_out,
            "history": self.state.history,
            "processes": self._ranks.count,
            "command": self._control.command,
            "version": __version__,
            **self._provenance,
        }

    def _save_checkpoint(self) -> None:
        if not all(bool(torch.isfinite(p).all()) for p in self.network.parameters()):
            raise self._diverged(self.state.update, "a weight is no longer a number")
        if not self._ranks.first:
            return
        save_checkpoint(
            self._directory, self.network, self._optimizer, asdict(self.state), self._identity()
        )

    def _identity(self) -> Json:
        """Return the facts that must be the same for a run to be resumed.

        The budget may grow, and what follows from it may be another.
        """
        settings = asdict(self._settings)
        for of_budget in (*BUDGETS, "patience", "cooldown", "annealing"):
            del settings[of_budget]
        inputs = numbered((of["role"], of["sha256"]) for of in self._provenance["inputs"])
        return {"settings": settings, "inputs": inputs, **self._objective.identity()}


def holds_model(directory: Path) -> bool:
    """Return whether a directory holds a model, or a checkpoint of one."""
    return (directory / CONFIG).exists() or (directory / CHECKPOINT).exists()


def _counted(number: float, what: str) -> str:
    return f"{number:.12g} {what}{'' if number == 1 else 's'}"


def _optimizer(settings: RunSettings, network: nn.Module) -> torch.optim.Optimizer:
    rate = settings.learning_rate or settings.rates[settings.optimizer]
    if settings.optimizer == "adam":
        return torch.optim.Adam(network.parameters(), lr=rate, fused=True)
    return torch.optim.Adadelta(network.parameters(), lr=rate, rho=0.95, eps=1e-6)
