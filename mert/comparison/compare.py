"""Compare systems as in the paper's Table 1: tune each several times, translate, score, test.

The work directory has a folder for each system and in it one for each seed (see `tune`) with the
translations of the test set; `comparison.json` holds all results. Like a tuning run, a comparison
that was killed goes on.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from mert.bleu import References
from mert.comparison.significance import approximate_randomisation, paired_bootstrap
from mert.corpus import Corpus
from mert.decoders.choice import DecoderSettings
from mert.decoders.decoder import Decoder
from mert.features import FeatureSet
from mert.nbest import read_nbest
from mert.optimisers.space import normalised
from mert.tune import TuningSettings, identity_of, tune
from moses_feature import __version__
from moses_feature.errors import UsageError
from moses_feature.files import Json, locked_directory, write_json
from moses_feature.moses.ini import MosesIni
from moses_feature.run_identity import difference

logger = logging.getLogger(__name__)

RESULTS = "comparison.json"
IDENTITY = "identity.json"
AVERAGE_INI = "average.ini"
TEST = "test"
NEAR_ZERO = 0.005
"""Share of the sum of all absolute weights below which a weight does next to nothing."""

Report = Callable[[str, int], None]


@dataclass(frozen=True)
class Candidate:
    """A system to compare: what to call it, its ini, and what rescores its n-best lists."""

    name: str
    ini: MosesIni
    rescoring: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\w+.@-]+", self.name) or self.name.startswith("."):
            raise UsageError(f"system name {self.name!r}: expected letters, digits, + - . _ @")

    def decoder(self, settings: DecoderSettings) -> DecoderSettings:
        """Return the settings of this system's decoder."""
        return replace(settings, rescoring=self.rescoring)


@dataclass(frozen=True)
class Run:
    """One tuning run of a system and what came of it; BLEU by sacreBLEU, 0 to 100.

    Attributes:
        seed: of the tuning.
        dev_bleu, test_bleu: of the first translations.
        iterations: of the tuning.
        stopped: why it ended.
        weights: of the tuneable features, their absolute values summing to 1.
        constants: features that are the same for all translations of every sentence.
        test_statistics: (sentences, 9) BLEU statistics.
    """

    seed: int
    dev_bleu: float
    test_bleu: float
    iterations: int
    stopped: str
    weights: dict[str, float]
    constants: tuple[str, ...]
    test_statistics: np.ndarray


@dataclass(frozen=True)
class SystemResult:
    """All runs of a system, and its difference from the baseline on the test set.

    Attributes:
        name: of the system.
        runs: one for each seed.
        difference: of the mean test BLEU, 0 to 100; None for the baseline.
        p_randomisation, p_bootstrap: p-values of that difference; None for the baseline.
        notes: what is odd about the weights of features that the baseline has not.
    """

    name: str
    runs: tuple[Run, ...]
    difference: float | None
    p_randomisation: float | None
    p_bootstrap: float | None
    notes: tuple[str, ...]

    def bleu(self, part: str) -> np.ndarray:
        """Return BLEU of all runs on `dev` or `test`."""
        return np.array([getattr(run, f"{part}_bleu") for run in self.runs])


@dataclass(frozen=True)
class Comparison:
    """The results of all systems, the baseline first, and sacreBLEU's signature."""

    systems: tuple[SystemResult, ...]
    signature: str


def compare(
    candidates: Sequence[Candidate],
    dev: Corpus,
    test: Corpus,
    directory: Path,
    decoder: DecoderSettings,
    tuning: Sequence[TuningSettings],
    *,
    command: str = "",
    report: Report = lambda *_: None,
) -> Comparison:
    """Tune every system with every setting, and compare them with the first one.

    Args:
        candidates: the systems; the first one is the baseline.
        dev: what they are tuned on.
        test: what they are compared on.
        directory: made where it is missing.
        decoder: for all.
        tuning: settings that differ in their seeds.
        command: what the user typed.
        report: told what is done, and how many sentences are decoded.

    Raises:
        UsageError: names or seeds that are not unique, or a directory of another comparison.
        MosesFeatureError: a decoder fails, or a system cannot be tuned.
    """
    _check_unique([candidate.name for candidate in candidates], "system names")
    _check_unique([settings.seed for settings in tuning], "seeds")
    with locked_directory(directory, "comparing"):
        _check_directory(directory, dev, test, decoder)
        scorer = _Scorer(test)
        all_runs = [
            _runs(candidate, dev, test, directory, decoder, tuning, scorer, command, report)
            for candidate in candidates
        ]
    report("testing significance", 0)
    baseline = all_runs[0]
    systems = [SystemResult(candidates[0].name, baseline, None, None, None, ())]
    for candidate, runs in zip(candidates[1:], all_runs[1:], strict=True):
        systems.append(_compared(candidate.name, runs, baseline))
    comparison = Comparison(tuple(systems), scorer.signature())
    write_json(directory / RESULTS, _as_json(comparison, command))
    return comparison


def _runs(
    candidate: Candidate,
    dev: Corpus,
    test: Corpus,
    directory: Path,
    settings: DecoderSettings,
    tuning: Sequence[TuningSettings],
    test_scorer: _Scorer,
    command: str,
    report: Report,
) -> tuple[Run, ...]:
    """Tune a system with every seed, and translate the test set with the weights found."""
    home = directory / candidate.name
    home.mkdir(parents=True, exist_ok=True)
    settings = candidate.decoder(settings)
    identity = {**identity_of(candidate.ini, dev), "decoder": settings.identity()}
    with _Lazy(lambda: settings.make(candidate.ini, dev.sentences)) as dev_decoder:
        states = []
        for seed in tuning:
            logger.info("%s, seed %d", candidate.name, seed.seed)
            states.append(
                tune(
                    candidate.ini,
                    dev,
                    dev_decoder,
                    home / f"seed-{seed.seed}",
                    seed,
                    identity=identity,
                    command=command,
                    report=lambda what, done: report(f"{candidate.name}: {what}", done),
                )
            )
        features = dev_decoder.features
    runs = []
    dev_scorer = _Scorer(dev)
    with _Lazy(lambda: settings.make(candidate.ini, test.sentences)) as test_decoder:
        for seed, state in zip(tuning, states, strict=True):
            folder = home / f"seed-{seed.seed}"
            tuned = features.with_weights(state.best.weights)
            path = folder / f"{TEST}.nbest.gz"
            if not path.exists():
                test_decoder.write_nbest(
                    tuned,
                    1,
                    path,
                    lambda done: report(f"{candidate.name}: translating the test set", done),
                )
            best = state.iterations.index(state.best) + 1
            dev_path = folder / f"run{best}.best{seed.n_best}.out.gz"
            dev_bleu, _ = dev_scorer.score(dev_path, features)
            test_bleu, statistics = test_scorer.score(path, features)
            _write_translations(path, features, len(test), folder / f"{TEST}.out")
            weights = dict(zip(features.names, normalised(state.best.weights), strict=True))
            runs.append(
                Run(
                    seed.seed,
                    dev_bleu,
                    test_bleu,
                    len(state.iterations),
                    state.stopped,
                    weights,
                    tuple(state.constants),
                    statistics,
                )
            )
    average = np.mean([normalised(state.best.weights) for state in states], axis=0)
    comment = f"weights averaged over {len(states)} tuning runs by moses-feature {__version__}"
    candidate.ini.with_weights(features.with_weights(average).by_name(), [comment]).write(
        home / AVERAGE_INI
    )
    return tuple(runs)


class _Lazy:
    """A decoder that is made when it is first needed, and closed at the end."""

    def __init__(self, make: Callable[[], Decoder]) -> None:
        self._make = make
        self._decoder: Decoder | None = None

    def __enter__(self) -> _Lazy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _made(self) -> Decoder:
        if self._decoder is None:
            self._decoder = self._make()
        return self._decoder

    @property
    def features(self) -> FeatureSet:
        return self._made().features

    def write_nbest(
        self,
        features: FeatureSet,
        count: int,
        path: Path,
        report: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._made().write_nbest(features, count, path, report)

    def close(self) -> None:
        if self._decoder is not None:
            self._decoder.close()


class _Scorer:
    """sacreBLEU on tokenised text against the references of a corpus."""

    def __init__(self, corpus: Corpus) -> None:
        self._metric = BLEU(tokenize="none", smooth_method="none", force=True)
        self._size = len(corpus)
        self._references = [References(references) for references in corpus.references]
        self._streams = [
            [_text(references[n]) for references in corpus.references]
            for n in range(len(corpus.references[0]))
        ]

    def score(self, nbest: Path, features: FeatureSet) -> tuple[float, np.ndarray]:
        """Return BLEU, 0 to 100, and the statistics (sentences, 9) of the first translations."""
        words = [
            list_[0].words if list_ else () for list_ in read_nbest(nbest, features, self._size)
        ]
        bleu = self._metric.corpus_score([_text(w) for w in words], self._streams).score
        statistics = [r.statistics([w]) for r, w in zip(self._references, words, strict=True)]
        return float(bleu), np.concatenate(statistics)

    def signature(self) -> str:
        """Return sacreBLEU's description of the score."""
        return str(self._metric.get_signature())


def _text(words: Sequence[bytes]) -> str:
    return b" ".join(words).decode(errors="surrogateescape")


def _write_translations(nbest: Path, features: FeatureSet, size: int, path: Path) -> None:
    lines = [
        b" ".join(list_[0].words) + b"\n" if list_ else b"\n"
        for list_ in read_nbest(nbest, features, size)
    ]
    path.write_bytes(b"".join(lines))


def _compared(name: str, runs: tuple[Run, ...], baseline: tuple[Run, ...]) -> SystemResult:
    mine, theirs = (np.stack([run.test_statistics for run in of]) for of in (runs, baseline))
    difference = np.mean([r.test_bleu for r in runs]) - np.mean([r.test_bleu for r in baseline])
    return SystemResult(
        name,
        runs,
        float(difference),
        approximate_randomisation(mine, theirs),
        paired_bootstrap(mine, theirs),
        tuple(notes_on_weights(runs, set(baseline[0].weights))),
    )


def notes_on_weights(runs: tuple[Run, ...], known: set[str]) -> list[str]:
    """Say what is odd about the weights of features that the baseline has not."""
    notes = []
    for feature in runs[0].weights:
        if feature in known:
            continue
        weights = np.array([run.weights[feature] for run in runs])
        text = f"{feature}: weights {', '.join(f'{weight:.4f}' for weight in weights)}"
        if any(feature in run.constants for run in runs):
            notes.append(f"{feature}: the same for all translations, its weight does nothing")
        elif np.all(np.abs(weights) < NEAR_ZERO):
            notes.append(f"{text}, near zero: it hardly takes part")
        elif weights.min() < 0 < weights.max():
            notes.append(f"{text}, of both signs: the tuning does not know what to do with it")
        else:
            notes.append(text)
    return notes


def _check_unique(values: Sequence[Any], what: str) -> None:
    if len(set(values)) != len(values) or not values:
        raise UsageError(f"{what}: expected different ones, found {', '.join(map(str, values))}")


def _check_directory(directory: Path, dev: Corpus, test: Corpus, decoder: DecoderSettings) -> None:
    """Refuse a directory of another comparison; systems and seeds may be added later."""
    identity = {
        "dev": list(dev.digests),
        "test": list(test.digests),
        "decoder": decoder.identity(),
    }
    path = directory / IDENTITY
    if path.exists():
        if other := difference(identity, json.loads(path.read_bytes())):
            raise UsageError(
                f"{directory} holds a comparison with other {other.key}: expected "
                f"{other.expected}, found {other.found}; use another --work-dir"
            )
    elif any(directory.iterdir()):
        raise UsageError(f"{directory}: expected a new or empty directory")
    else:
        write_json(path, identity)


def _as_json(comparison: Comparison, command: str) -> Json:
    systems = []
    for system in comparison.systems:
        content = asdict(system)
        for run in content["runs"]:
            del run["test_statistics"]
        for part in ("dev", "test"):
            bleu = system.bleu(part)
            content[f"{part}_mean"] = float(bleu.mean())
            content[f"{part}_std"] = float(bleu.std(ddof=1)) if len(bleu) > 1 else None
        systems.append(content)
    return {
        "signature": comparison.signature,
        "systems": systems,
        "command": command,
        "version": __version__,
    }
