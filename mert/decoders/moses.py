"""Real Moses as the decoder: its `moses` binary, run once for each set of weights."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mert.decoders.filtered import filtered
from mert.source_phrases import Sentence
from moses_feature.errors import MosesFeatureError, UsageError
from moses_feature.files import whole_file
from moses_feature.moses.features import FeatureFunction, FeatureSet
from moses_feature.moses.ini import MosesIni

LINES_SHOWN = 12
"""Last lines of what Moses said that an error shows."""
PLACES = ("bin/moses", "moses", "moses-cmd/moses")
"""Where the binary may be under MOSES_HOME."""


@dataclass(frozen=True)
class MosesSettings:
    """How to run Moses.

    Attributes:
        binary: the `moses` binary; None for `MOSES_HOME` or the PATH.
        threads: of the decoder.
        options: more arguments, such as `-search-algorithm 1 -cube-pruning-pop-limit 1000`.
        seconds: time limit of a run; None for none.
        filter: whether to cut the tables down to the text first.
    """

    binary: str | None = None
    threads: int = 1
    options: tuple[str, ...] = ()
    seconds: float | None = None
    filter: bool = False


def find_moses(binary: str | None) -> Path:
    """Return the path of the `moses` binary.

    Args:
        binary: where it is, if the user said so.

    Raises:
        UsageError: there is none; says where it was looked for.
    """
    looked = []
    if binary is not None:
        path = Path(binary)
        looked.append(str(path))
        candidates = [path, *(path / place for place in PLACES)] if path.is_dir() else [path]
    else:
        candidates = []
        if home := os.environ.get("MOSES_HOME"):
            candidates = [Path(home) / place for place in PLACES]
            looked += map(str, candidates)
        looked.append("moses on the PATH")
        if found := shutil.which("moses"):
            candidates.append(Path(found))
    for candidate in candidates:
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate.absolute()
    raise UsageError(
        f"no Moses: looked for {', '.join(looked)} (give --moses PATH, or set MOSES_HOME)"
    )


class MosesDecoder:
    """Runs Moses over a text, again and again with other weights; see `Decoder`.

    It works in a scratch directory, and the model files are those of the ini; paths in it that
    are relative hold from the directory that the command was started in, as for Moses.

    Args:
        ini: the system.
        sentences: the text, as tokens.
        settings: how to run Moses.
        first: the number of the first sentence in n-best lists.

    Raises:
        UsageError: there is no Moses.
        MosesFeatureError: Moses does not start, or says other features than the ini.
    """

    def __init__(
        self,
        ini: MosesIni,
        sentences: Sequence[Sentence],
        settings: MosesSettings,
        first: int = 0,
    ) -> None:
        self._first = first
        self._settings = settings
        self._binary = find_moses(settings.binary)
        self._sentences = sentences
        self._scratch = Path(tempfile.mkdtemp(prefix="mert-moses-"))
        self._remove = weakref.finalize(self, shutil.rmtree, self._scratch, ignore_errors=True)
        self._input = self._scratch / "input"
        self._input.write_bytes(b"".join(b" ".join(words) + b"\n" for words in sentences))
        self._ini = ini.path.absolute()
        try:
            if settings.filter:
                self._ini = filtered(ini, sentences, self._scratch).absolute()
            self.features: FeatureSet = self._ask_for_features(ini)
        except BaseException:
            self.close()
            raise

    def search_errors(self, features: FeatureSet, count: int) -> None:
        """Return nothing: its limits are in options of its own."""

    def close(self) -> None:
        """Remove the scratch directory."""
        self._remove()

    def _ask_for_features(self, ini: MosesIni) -> FeatureSet:
        """Ask Moses which features there are and which can be tuned; weights are the ini's.

        Moses rounds the weights that it shows.
        """
        shown = self._run(self._scratch / "stderr", "-show-weights").decode(errors="replace")
        functions = []
        for line in shown.splitlines():
            name, _, rest = line.partition(" ")
            if rest.strip() == "UNTUNEABLE":
                weights = ini.weights[name].values if name in ini.weights else (1.0,)
                functions.append(FeatureFunction(name, weights, (False,) * len(weights)))
            elif name.endswith("="):
                functions.append(_tuneable(ini, name[:-1], rest.split()))
        if not any(any(function.tuneable) for function in functions):
            raise MosesFeatureError(
                f"{self._binary} -show-weights: expected lines like Name= 0.2, found "
                f"{shown[:300]!r}"
            )
        return FeatureSet(tuple(functions))

    def write_nbest(
        self,
        features: FeatureSet,
        count: int,
        path: Path,
        report: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Translate all sentences; see `Decoder`."""
        plain = self._scratch / "nbest"
        weights = " ".join(
            f"{name}= {' '.join(f'{value:.9g}' for value in values)}"
            for name, values in features.by_name().items()
        )
        self._run(
            path.with_name(f"{path.name.partition('.')[0]}.moses.log"),
            "-weight-overwrite",
            weights,
            "-n-best-list",
            str(plain),
            str(count),
            "distinct",
            "-input-file",
            str(self._input),
            "-threads",
            str(self._settings.threads),
        )
        with (
            whole_file(path) as temporary,
            plain.open("rb") as content,
            gzip.open(temporary, "wb", compresslevel=1) as file,
        ):
            for line in content:
                number, _, rest = line.partition(b" ")
                file.write(b"%d %b" % (self._first + int(number), rest))
        plain.unlink()
        report(len(self._sentences))

    def _run(self, log: Path, *arguments: str) -> bytes:
        """Run Moses in the current directory and return its standard output.

        What it says on the standard error is kept in `log`.
        """
        command = [str(self._binary), "-config", str(self._ini), *self._settings.options]
        try:
            with log.open("wb") as errors:
                done = subprocess.run(  # noqa: S603  # the user's own decoder
                    [*command, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    timeout=self._settings.seconds,
                    check=False,
                )
        except subprocess.TimeoutExpired:
            raise MosesFeatureError(
                f"{self._binary} was ended after {self._settings.seconds:g} s; it had said:\n"
                + _last_lines(log)
            ) from None
        except OSError as error:
            raise MosesFeatureError(f"{self._binary}: {error.strerror}") from error
        if done.returncode != 0:
            raise MosesFeatureError(
                f"{self._binary} ended with exit code {done.returncode}; it had said:\n"
                + _last_lines(log)
            )
        return done.stdout


def _tuneable(ini: MosesIni, name: str, shown: list[str]) -> FeatureFunction:
    """Return a function from what Moses shows of its weights."""
    flags = tuple(weight != "UNTUNEABLECOMPONENT" for weight in shown)
    weights = ini.weights[name].values if name in ini.weights else ()
    if len(weights) != len(shown):
        raise MosesFeatureError(
            f"{ini.path}: expected {len(shown)} weights of {name} as Moses says, found "
            f"{len(weights)}"
        )
    return FeatureFunction(name, weights, flags)


def _last_lines(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    kept = [line for line in lines if not re.fullmatch(r"[\s*\-0-9.]*", line)]
    return "\n".join(kept[-LINES_SHOWN:])
