"""Real Moses as the decoder: its `moses` binary, run once for each set of weights.

Its tables are filtered to the phrases of the text (`scripts/training/filter-model-given-input.pl`).
"""

from __future__ import annotations

import gzip
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path

from xopen import xopen

from mert.settings import MosesSettings
from moses_feature.decoder.source_phrases import Sentence, SourcePhrases
from moses_feature.decoder.table_index import TableIndex
from moses_feature.moses.features import FeatureFunction, FeatureSet
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.programs import find_program, run_program
from moses_feature.runtime.errors import MosesFeatureError, UsageError
from moses_feature.runtime.files import whole_file, with_or_without_gz

FILTERED = ("PhraseDictionaryMemory", "LexicalReordering")
LONGEST = 20


def filtered(ini: MosesIni, sentences: Sequence[Sentence], directory: Path) -> MosesIni:
    """Write the tables of an ini without the lines that the sentences cannot use.

    Args:
        ini: the system; its tables are text files.
        sentences: the sentences, as tokens.
        directory: a new directory.

    Returns:
        The ini with the new tables, by absolute paths.

    Raises:
        UsageError: a table is in a binary format.
    """
    paths = {}
    sources = SourcePhrases(sentences, LONGEST)
    for feature in ini.features:
        if feature.is_table and feature.kind not in FILTERED:
            raise UsageError(
                f"{ini.path} at line {feature.line_number}: only tables in text format can be "
                f"filtered, found {feature.kind}"
            )
        if feature.kind in FILTERED:
            filtered = directory.absolute() / f"{feature.name}.gz"
            _filter(with_or_without_gz(feature.path), filtered, sources)
            paths[feature.path] = str(filtered)
    return ini.with_files(paths)


def _filter(table: Path, output: Path, sources: SourcePhrases) -> None:
    index = TableIndex(str(table))
    lines = index.lines(sources)
    with xopen(output, "wb", compresslevel=1, threads=0) as file:
        for begin, end in zip(lines.begin.tolist(), lines.end.tolist(), strict=True):
            file.write(index.content[begin:end].tobytes())


class MosesDecoder:
    """Runs Moses on a text, again and again with other weights; see `Decoder`.

    It runs in a scratch directory with the model files of the ini; relative paths in the ini refer
    to the directory in which the command was started, as for Moses.

    Args:
        ini: the system.
        sentences: the text, as tokens.
        settings: how to run Moses.
        first: the number of the first sentence in n-best lists.

    Raises:
        UsageError: Moses was not found.
        MosesFeatureError: Moses does not start, or shows other features than the ini.
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
        self._binary = find_program(["moses"], settings.binary)
        self._sentences = sentences
        self._scratch = Path(tempfile.mkdtemp(prefix="mert-moses-"))
        self._remove = weakref.finalize(self, shutil.rmtree, self._scratch, ignore_errors=True)
        self._input = self._scratch / "input"
        self._input.write_bytes(b"".join(b" ".join(words) + b"\n" for words in sentences))
        self._ini = self._scratch / "moses.ini"
        try:
            (filtered(ini, sentences, self._scratch) if settings.filter else ini).write(self._ini)
            self.features: FeatureSet = self._ask_for_features(ini)
        except BaseException:
            self.close()
            raise

    def search_errors(self, features: FeatureSet, count: int) -> None:
        """Return None: Moses' limits are in options of its own."""

    def close(self) -> None:
        """Remove the scratch directory."""
        self._remove()

    def _ask_for_features(self, ini: MosesIni) -> FeatureSet:
        """Ask Moses for its features and which are tuneable; weights are taken from the ini.

        The weights that Moses shows are rounded.
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

        Its standard error is kept in `log`.
        """
        command = [str(self._binary), "-config", str(self._ini), *self._settings.options]
        return run_program([*command, *arguments], log, seconds=self._settings.seconds)


def _tuneable(ini: MosesIni, name: str, shown: list[str]) -> FeatureFunction:
    """Return a function from Moses' line about its weights."""
    flags = tuple(weight != "UNTUNEABLECOMPONENT" for weight in shown)
    weights = ini.weights[name].values if name in ini.weights else ()
    if len(weights) != len(shown):
        raise MosesFeatureError(
            f"{ini.path}: expected {len(shown)} weights of {name} as Moses says, found "
            f"{len(weights)}"
        )
    return FeatureFunction(name, weights, flags)
