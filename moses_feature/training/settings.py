"""Settings of training for all objectives; free of torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from moses_feature.networks.architectures import Dtype
from moses_feature.runtime.errors import UsageError

BUDGETS = ("updates", "epochs", "minutes")
LEARNING_RATES = {"adam": 1e-3, "adadelta": 1.0}
ANNEALING = {"adam": 0.5, "adadelta": 1.0}
MORE_THAN_WARMUP = "give more, or a smaller --warmup"
"""Advice for a budget that ends before the warm-up."""


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How to train, for all objectives; each default is written only here.

    Attributes:
        optimizer: `adam`, or `adadelta` (the paper's; decay 0.95, epsilon 1e-6).
        learning_rate: None for the optimiser's own in `rates`.
        annealing: factor on the learning rate after each evaluation that is not the best so far;
            None for 0.5 (Adam) or 1, no annealing (Adadelta).
        batch_size: examples per update.
        warmup: the first updates, in which the learning rate rises along a line.
        cooldown: the last share of the budget, in which the learning rate falls linearly to 0
            (Hägele et al. 2024).
        updates, epochs, minutes: the budget; the first that is spent ends the training.
        evaluate_every: updates between evaluations; None for the objective's default.
        patience: consecutive evaluations without a better held-out loss that end the training; 0
            for any number.
        clip: the largest norm of the gradient.
        dropout: the share of components that are zeroed in training, in layers that the network
            chooses.
        seed: of the weights, the held-out share and the order of the examples.
        held_out: the share of the data that measures the held-out loss.
        dtype: the type of the matrix products; the weights are always float32.
    """

    rates: ClassVar[Mapping[str, float]] = LEARNING_RATES

    optimizer: Literal["adam", "adadelta"] = "adam"
    learning_rate: float | None = None
    annealing: float | None = None
    warmup: int = 0
    cooldown: float = 0.0
    batch_size: int = 64
    updates: int | None = None
    epochs: float | None = None
    minutes: float | None = None
    evaluate_every: int | None = None
    patience: int = 5
    clip: float = 1.0
    dropout: float = 0.0
    seed: int = 1
    held_out: float = 0.01
    dtype: Dtype = "float32"

    def __post_init__(self) -> None:
        if self.optimizer not in LEARNING_RATES:
            valid = ", ".join(LEARNING_RATES)
            raise UsageError(f"unknown optimizer {self.optimizer!r}: expected one of {valid}")
        if self.dtype not in get_args(Dtype):
            valid = " or ".join(get_args(Dtype))
            raise UsageError(f"unknown dtype {self.dtype!r}: expected {valid}")
        positive = (self.learning_rate, self.epochs, self.minutes, self.annealing, self.clip)
        if not all(value is None or 0 < value < math.inf for value in positive):
            raise UsageError("learning rate, budgets, annealing and clip must be above zero")
        if not 0 <= self.cooldown <= 1:
            raise UsageError(f"cooldown: expected a share, from 0 to 1, found {self.cooldown}")
        budgets = self.updates, self.epochs, self.minutes
        if self.cooldown and all(budget is None for budget in budgets):
            raise UsageError("a cooldown is a share of a budget: give updates, epochs or minutes")
        if not self.patience and all(budget is None for budget in budgets):
            raise UsageError("a patience of 0 never ends: give updates, epochs or minutes")
        if not 0 < self.held_out < 1:
            raise UsageError(f"held-out share: expected above 0 and below 1, found {self.held_out}")
        if not 0 <= self.dropout < 1:
            raise UsageError(f"dropout: expected 0 or more and below 1, found {self.dropout}")

    def spent(self, updates: int, seconds: float, epochs: float | None = None) -> float | None:
        """Return the spent share of the budget that is closest to its end.

        None without a budget; the budget of epochs counts only if `epochs` is known.
        """
        budgets = (updates, self.updates), (seconds / 60, self.minutes), (epochs, self.epochs)
        shares = [done / of for done, of in budgets if done is not None and of is not None]
        return max(shares, default=None)
