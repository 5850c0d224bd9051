"""The state of a tuning run, and its file in the directory of the run."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mert.settings import DecoderSettings, TuningSettings
from mert.tuning.corpus import Corpus
from moses_feature.moses.ini import SYSTEM, MosesIni
from moses_feature.moses.marked_models import split_mark
from moses_feature.networks.files import file_identity
from moses_feature.runtime.errors import FormatError, UsageError
from moses_feature.runtime.files import Json, write_json
from moses_feature.runtime.json_files import difference, member, read_json, record

STATE, WHAT = "state.json", "the state of a tuning run"
TUNED_INI = "moses.ini"
"""The last file that a run writes."""
RESCORING_WEIGHTS = "rescoring.weights"
"""The file of all weights, if some features are not in the ini."""
FEATURES, SCORES = "features.dat.gz", "scores.dat.gz"
"""All hypotheses, for Moses' own optimisers."""
TEST_NBEST, TEST_OUT = "test.nbest.gz", "test.out"
"""What a comparison makes of the test set with the weights of a run."""
RESULTS = (TUNED_INI, SYSTEM, RESCORING_WEIGHTS, FEATURES, SCORES, TEST_NBEST, TEST_OUT)
SEARCH = "search"
"""The folder of the run that tunes a decoder by itself, before its lists are rescored."""


_LISTS = re.compile(r"run\d+\.best\d+\.out\.gz")


def lists_name(iteration: int, settings: TuningSettings) -> str:
    """Return the name of the n-best file of an iteration, counted from 1."""
    return f"run{iteration}.best{settings.list_size}.out.gz"


@dataclass
class Iteration:
    """The results of one iteration.

    Attributes:
        weights: of the tuneable features, used for decoding.
        quality: of the first translations by the metric, 0 to 1.
        new: hypotheses that no earlier iteration had found.
        hypotheses: the number of hypotheses of all iterations so far.
        next_weights: the weights that the optimiser found; empty in the last iteration.
        optimised_quality: of the next weights, on all hypotheses so far.
        change: the greatest change of a normalised weight.
        reason: why the optimiser stopped.
        seconds: of decoding and of optimising.
    """

    weights: list[float]
    quality: float
    new: int
    hypotheses: int
    next_weights: list[float] = field(default_factory=list)
    optimised_quality: float | None = None
    change: float | None = None
    reason: str = ""
    seconds: tuple[float, float] = (0.0, 0.0)


@dataclass
class TuningState:
    """A tuning run.

    Attributes:
        identity: what it is of.
        iterations: what it did.
        max_iterations: decoding runs at most; a run continues if it is called again with more.
        stopped: why it ended, empty if it has not.
        constants: features with the same value in all translations of every sentence.
        spread: of each feature; see `Candidates.spread`; of the first iteration's lists.
        began_known: whether its first weights were those of a system without its new features.
    """

    identity: Json
    max_iterations: int
    iterations: list[Iteration] = field(default_factory=list)
    stopped: str = ""
    constants: list[str] = field(default_factory=list)
    spread: list[float] = field(default_factory=list)
    began_known: bool = False

    @property
    def best(self) -> Iteration:
        """The iteration with the best first translations, the first of equal ones."""
        return max(self.iterations, key=lambda iteration: iteration.quality)

    @property
    def kept(self) -> str:
        """Which weights that were there before are the best: known, own of the ini, or none."""
        number = self.iterations.index(self.best) - self.began_known
        return {-1: "known", 0: "own"}.get(number, "none")

    @property
    def has_converged(self) -> bool:
        """Whether the run ended by itself, and not for lack of iterations."""
        last = self.iterations[-1]
        return bool(self.stopped) and (last.new == 0 or bool(last.next_weights))

    def goes_on_with(self, max_iterations: int) -> bool:
        """Return whether the run has ended, and would go on if it may have more iterations."""
        more = max_iterations > self.max_iterations
        return more and bool(self.stopped) and not self.has_converged


def identity_of(ini: MosesIni, corpus: Corpus) -> Json:
    """Return the facts that must be the same for one run to resume another.

    Model files are identified by size and modification time, texts and the ini by content.
    """
    files = {}
    for feature in ini.features:
        path = Path(feature.arguments.get("path", ""))
        if "path" in feature.arguments and path.exists():
            files[str(path)] = file_identity(path)
    return {
        "version": 1,
        "ini": hashlib.sha256(ini.content()).hexdigest(),
        "texts": corpus.identity(),
        "models": files,
    }


def decoder_identity(decoder: DecoderSettings) -> Json:
    """Return everything that determines the translations, as JSON."""
    rescoring = []
    for name, model in decoder.rescoring:
        mark, path = split_mark(model)
        rescoring.append([name, mark, _digest(file_identity(path)) if path else ""])
    added = {"rescoring": rescoring} if rescoring else {}
    if decoder.decoder == "moses":
        return {"decoder": "moses", "options": list(decoder.moses.options), **added}
    limits = {"pops": decoder.limits.pops, "stack": decoder.limits.stack}
    return {"decoder": "embedded", **limits, **added}


def _digest(facts: list[int]) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def read_run(directory: Path) -> TuningState:
    """Read the state of the run in a directory.

    Raises:
        FormatError: the file is damaged.
    """
    path = directory / STATE
    content = read_json(path, WHAT)
    iterations = member(content, "iterations", list[Any], path, WHAT)
    content["iterations"] = [record(Iteration, of, path, WHAT) for of in iterations]
    run = record(TuningState, content, path, WHAT)
    widths = {len(iteration.weights) for iteration in run.iterations}
    widths |= {len(i.next_weights) for i in run.iterations if i.next_weights}
    last_open = run.iterations and not run.stopped and not run.iterations[-1].next_weights
    if len(widths) > 1 or last_open or (run.stopped and not run.iterations):
        raise FormatError(path, WHAT, "iterations that do not fit together")
    return run


def has_ended(directory: Path, identity: Json, settings: TuningSettings) -> bool:
    """Return whether a directory holds a finished run with this identity.

    Raises:
        FormatError: the file is damaged, of whatever run it is.
    """
    if not (directory / STATE).exists() or not (directory / TUNED_INI).exists():
        return False
    run = read_run(directory)
    same = difference(run_identity(identity, settings), run.identity) is None
    return same and run.max_iterations == settings.max_iterations


def run_identity(identity: Json, settings: TuningSettings) -> Json:
    """Return what a run and one that continues it have in common, settings included."""
    decisive = {n: v for n, v in asdict(settings).items() if n != "max_iterations"}
    return {**identity, "settings": decisive}


def read_state(directory: Path, identity: Json, max_iterations: int) -> TuningState:
    """Read the state of the run in a directory, or begin one.

    Args:
        directory: of the run.
        identity: what the run that wants to go on is of; see `run_identity`.
        max_iterations: decoding runs at most.

    Raises:
        UsageError: the directory holds something else, or a run with another identity.
        FormatError: the file is damaged.
    """
    path = directory / STATE
    identity = json.loads(json.dumps(identity))
    if not path.exists():
        there = {file.name for file in directory.iterdir() if not file.name.startswith(".")}
        if there := there - {SEARCH}:
            raise UsageError(
                f"{directory}: expected a new or empty directory, or one of an earlier run of "
                f"the same, found {', '.join(sorted(there)[:3])}"
            )
        state = TuningState(identity, max_iterations)
        write_json(path, asdict(state))
        return state
    state = read_run(directory)
    if other := difference(identity, state.identity):
        raise UsageError(
            f"{directory} holds a run with other {other.key}: expected {other.expected}, found "
            f"{other.found}; use another --work-dir"
        )
    if max_iterations < state.max_iterations:
        raise UsageError(
            f"{directory} holds a run of {state.max_iterations} iterations at most: expected as "
            f"many or more, found {max_iterations}; use another --work-dir"
        )
    return state


def remove_results(directory: Path, *, lists_too: bool = False) -> None:
    """Remove the files that a run wrote at its end, or that were made with its weights.

    Args:
        directory: of the run.
        lists_too: remove its n-best lists and its state, too: the run begins anew.
    """
    for name in RESULTS:
        (directory / name).unlink(missing_ok=True)
    if lists_too:
        (directory / STATE).unlink(missing_ok=True)
        for path in directory.iterdir():
            if _LISTS.fullmatch(path.name):
                path.unlink()
