"""Real Moses as the decoder: its `moses` binary, run once for each set of weights."""

from __future__ import annotations

import gzip
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mert.decoders.filtered import filtered
from mert.source_phrases import Sentence
from moses_feature.errors import MosesFeatureError
from moses_feature.files import whole_file
from moses_feature.moses.features import FeatureFunction, FeatureSet
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.programs import find_program, run_program


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

    Raises:
        UsageError: there is none; says where it was looked for.
    """
    return find_program(["moses"], binary)


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
        return run_program([*command, *arguments], log, seconds=self._settings.seconds)


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
