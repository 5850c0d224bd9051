"""A system directory, built step by step: a build that was killed continues with the next file.

Each file appears when it is whole. `build.json` says what is built of what, so that only the same
build continues; `system.json`, the last file, says what was built.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from itertools import chain, pairwise
from pathlib import Path

from moses_feature import __version__
from moses_feature.building.alignment import HEURISTIC, Way, align, ways_of
from moses_feature.building.bitext import Bitext, TextPair, read_alignment, read_texts
from moses_feature.building.language_model import sentences_of, write_model
from moses_feature.building.operations import ORDER, PRUNED, operation_sentences
from moses_feature.building.preparation import (
    Preparer,
    TextPreparer,
    check_available,
    decoded,
    preparation_of,
)
from moses_feature.building.settings import MOST_RATIO, SMALL, Aligner, BuildSettings
from moses_feature.building.start_ini import start_ini
from moses_feature.building.tables import Tables
from moses_feature.moses.alignments import BETWEEN
from moses_feature.moses.ini import SYSTEM, MosesIni
from moses_feature.moses.language_model import load_kenlm
from moses_feature.moses.lines import LineReader, digest_of, read_documents
from moses_feature.moses.system_directory import (
    FORMAT_VERSION,
    INI,
    changed_files,
    made_files,
    write_relative_ini,
)
from moses_feature.runtime.errors import MosesFeatureError, UsageError
from moses_feature.runtime.files import (
    STANDARD_STREAM,
    Json,
    locked_directory,
    open_output,
    write_json,
    write_whole,
)
from moses_feature.runtime.json_files import difference, read_json
from moses_feature.runtime.processes import ObjectProcess

logger = logging.getLogger(__name__)

BUILD = "build.json"
PHRASES, LEXICAL = "phrase-table.gz", ("lex.f2e", "lex.e2f")
MODEL, OPERATIONS = "lm.arpa.gz", "operations.arpa.gz"
PREPARED, TRUECASER, PREPARATION = "text.{}.gz", "truecase.{}", "preparation.json"
MODEL_TEXT = "text.model-{}.gz"
SIDES = ("source", "target")


@dataclass(frozen=True)
class BuildData:
    """The files that a system is built of.

    Attributes:
        source, target: tokenised texts, a sentence on each line.
        alignment: links of each sentence pair; None to align.
        model: a language model to use; None to estimate one.
        model_texts: more text for the language model; raw if the others are.
        documents: the document of each line, whose lines are held out together later (see
            `built_text`); None for single lines.
        languages: the codes of both languages, if the texts are raw: they are prepared first.
    """

    source: str
    target: str
    alignment: str | None = None
    model: str | None = None
    model_texts: Sequence[str] = ()
    documents: str | None = None
    languages: tuple[str, str] | None = None


def build(
    data: BuildData,
    settings: BuildSettings,
    directory: Path,
    command: str = "",
    report: Callable[[str, float | None], None] = lambda *_: None,
) -> Json:
    """Build a system, or go on with it; return the content of its `system.json`.

    Args:
        data: the files.
        settings: how to build.
        directory: created if missing.
        command: the command line, recorded in `system.json`.
        report: called with the current task, and the share of it that is done.

    Raises:
        UsageError: the directory holds something else, or another build.
        FormatError: texts, links or documents that do not belong together, or bad words.
        MosesFeatureError: a file cannot be read, or no aligner is installed.
    """
    if STANDARD_STREAM in (data.source, data.target, data.alignment):
        raise UsageError("building reads from files: expected a file name, found -")
    with locked_directory(directory, "building"):
        return _Build(data, settings, directory, report).run(command)


@dataclass
class _Build:
    """One build and its directory."""

    data: BuildData
    settings: BuildSettings
    directory: Path
    report: Callable[[str, float | None], None]
    seconds: dict[str, float] = field(default_factory=dict)
    preparation: Json = field(default_factory=dict)
    external: list[str] = field(default_factory=list)

    def run(self, command: str) -> Json:
        """Make all files that are missing."""
        self._begin()
        path = self.directory / SYSTEM
        if path.exists():
            content = read_json(path, "a system")
            if not self._has_lost_files(content):
                logger.info("%s is built already: nothing was done", self.directory)
                return content
        if self.data.languages is not None:
            self._prepare(self.data.languages)
        self._write_alignment()
        self._write_tables()
        self._write_model()
        self._write_operations()
        self._write_ini()
        content = self._content(command)
        write_json(path, content)
        return content

    def _has_lost_files(self, content: Json) -> bool:
        """Return whether files of the finished build are missing.

        Raises:
            MosesFeatureError: a file is not the one that was made.
        """
        changed = list(changed_files(self.directory, content))
        for path, found in changed:
            if path.exists():
                raise MosesFeatureError(
                    f"{path}: expected the file that was built, found {found}: remove it, and "
                    "the same command builds it again"
                )
            logger.warning("%s is missing, and built again", path)
        return bool(changed) or not (self.directory / INI).exists()

    def _begin(self) -> None:
        """Check that the directory is new, or holds the beginning of the same build."""
        self.report("reading the texts", None)
        data = self.data
        texts = {side: getattr(data, side) for side in (*SIDES, "alignment", "documents")}
        texts |= {f"lm-text {n}": path for n, path in enumerate(data.model_texts, 1)}
        identity = {
            "inputs": {of: path and digest_of(path) for of, path in texts.items()},
            "model": data.model,
            "languages": data.languages,
            "settings": asdict(self.settings),
        }
        path = self.directory / BUILD
        if path.exists():
            if other := difference(identity, read_json(path, "what is built")):
                raise UsageError(
                    f"{self.directory} holds a build with other {other.key}: expected "
                    f"{other.expected}, found {other.found}; use another directory"
                )
        elif there := [file.name for file in self.directory.iterdir() if file.name[0] != "."]:
            raise UsageError(
                f"{self.directory}: expected a new or empty directory, found {sorted(there)[0]}"
            )
        else:
            if data.documents:
                with LineReader(data.source) as reader:
                    read_documents(data.documents, sum(1 for _ in reader))
            write_json(path, identity)

    @cached_property
    def _texts(self) -> TextPair:
        """The tokenised texts."""
        source, target = map(str, self._tokenised)
        ratio = None if self.data.languages is None else MOST_RATIO
        return read_texts(source, target, self.settings.longest, ratio)

    @property
    def _tokenised(self) -> list[Path]:
        """The files of both texts as the tables have them."""
        if self.data.languages is None:
            return [Path(self.data.source), Path(self.data.target)]
        return [self.directory / PREPARED.format(side) for side in SIDES]

    def _is_prepared(self) -> bool:
        """Return whether all files of the preparation of raw texts are there."""
        facts = self.directory / PREPARATION
        if not facts.exists():
            return False
        sides = read_json(facts, "how texts were prepared").values()
        truecasers = [self.directory / of["truecaser"] for of in sides if of.get("truecaser")]
        return all(file.exists() for file in (*self._tokenised, *truecasers))

    def _prepare(self, languages: tuple[str, str]) -> None:
        """Prepare both raw texts at the same time."""
        files, facts = self._tokenised, self.directory / PREPARATION
        if not self._is_prepared():
            check_available()
            self.report("preparing the texts", None)
            begun = time.monotonic()
            workers = [
                ObjectProcess(partial(TextPreparer, language, self.settings.case), "a tokeniser")
                for language in languages
            ]
            try:
                waiting = [
                    worker.call(
                        TextPreparer.prepare, text, file, self.directory / TRUECASER.format(side)
                    )
                    for worker, text, file, side in zip(
                        workers, (self.data.source, self.data.target), files, SIDES, strict=True
                    )
                ]
                found = [future.result() for future in waiting]
            finally:
                for worker in workers:
                    worker.close()
            with LineReader(files[0]) as reader:
                pairs = sum(1 for _ in reader)
            if pairs < SMALL:
                found[0]["known"] = [file.name for file in files]
            write_json(facts, dict(zip(SIDES, found, strict=True)))
            self._note("preparing", begun)
        self.preparation = read_json(facts, "how texts were prepared")

    @property
    def _alignment_path(self) -> Path:
        name = HEURISTIC if len(self._ways) == 1 else "several"
        if self.data.alignment:
            name = "given"
        return self.directory / f"aligned.{name}.gz"

    @property
    def _ways(self) -> list[Way]:
        """The ways to align words."""
        usual: Aligner = "several" if len(self._texts.source) < SMALL else "eflomal"
        return ways_of(self.settings.aligner or usual, self.settings.seed)

    @cached_property
    def _bitext(self) -> Bitext:
        """The aligned texts."""
        return read_alignment(str(self._alignment_path), self._texts)[0]

    def _note(self, what: str, begun: float) -> None:
        """Note the seconds that something took."""
        self.seconds[what] = round(time.monotonic() - begun, 1)

    def _write_alignment(self) -> None:
        """Write the links of each line, and no links for one that is left out."""
        path = self._alignment_path
        if path.exists():
            return
        begun = time.monotonic()
        if self.data.alignment:
            self.report("reading the alignment", None)
            bitext, _ = read_alignment(self.data.alignment, self._texts)
        else:
            bitext = self._align()
        lines, none = iter(_links(bitext)), BETWEEN * (bitext.alignments - 1) + b"\n"
        with open_output(path) as file:
            for kept in self._texts.kept.tolist():
                file.write(next(lines) if kept else none)
        self._note("alignment", begun)

    def _align(self) -> Bitext:
        done, ways = 0.0, self._ways

        def note(share: float) -> None:
            nonlocal done
            done += share / len(ways)
            self.report("aligning words", min(done, 1.0))

        note(0)
        return Bitext.several([align(self._texts, way, note) for way in ways])

    def _write_tables(self) -> None:
        """Write the tables, and the lexical ones."""
        files = [self.directory / PHRASES, *([self._reordering] if self._reordering else [])]
        if all(file.exists() for file in files):
            return
        begun = time.monotonic()
        self.report("numbering phrases", None)
        tables = Tables(self._bitext, self.settings, self.directory)
        self.report("tables: counting", None)
        lines = tables.lexical.lines(self._bitext)
        direct, inverse = (b"".join(part) for part in zip(*lines, strict=True))
        for path, content in zip(LEXICAL, (direct, inverse), strict=True):
            write_whole(self.directory / path, content)
        written = 0
        with ExitStack() as stack:
            outputs = [stack.enter_context(open_output(file)) for file in files]
            for part in tables.parts():
                for output, content in zip(outputs, (part.phrases, part.reordering), strict=False):
                    output.write(content)
                written += part.lines
                self.report(f"tables: {written:,} lines", part.share)
            if not written:
                raise MosesFeatureError(
                    f"{self._alignment_path}: expected links from which phrases are extracted, "
                    "found none"
                )
        self._note("tables", begun)

    @property
    def _reordering(self) -> Path | None:
        """The reordering table."""
        kind = self.settings.reordering_type
        if kind is None:
            return None
        return self.directory / f"reordering-table.{kind.table_name}.gz"

    def _write_model(self) -> None:
        """Estimate the language model of the target sentences and of further text."""
        path = self.directory / MODEL
        texts = [*self._model_texts()]
        if self.data.model or path.exists():
            return
        self.report("language model", None)
        begun = time.monotonic()
        more = map(sentences_of, texts)
        sentences = chain(self._texts.target.sentences(), chain.from_iterable(more))
        write_model(path, sentences, self.settings.order)
        self._note("language model", begun)

    def _model_texts(self) -> Iterator[str]:
        """Yield the further texts for the language model, prepared as the target text was."""
        if not self.data.languages:
            yield from self.data.model_texts
            return
        found = preparation_of({"preparation": self.preparation}, SIDES[1], self.directory)
        preparer = Preparer(found)
        for number, path in enumerate(self.data.model_texts, 1):
            prepared = self.directory / MODEL_TEXT.format(number)
            if not prepared.exists():
                with LineReader(path) as reader, open_output(prepared) as file:
                    file.writelines(preparer(line).encode() + b"\n" for line in decoded(reader))
            yield str(prepared)

    def _write_operations(self) -> None:
        """Estimate the operation sequence model, if it is wanted."""
        path = self.directory / OPERATIONS
        if not self.settings.osm or path.exists():
            return
        self.report("operations", None)
        begun = time.monotonic()
        write_model(path, operation_sentences(self._bitext), ORDER, PRUNED)
        self._note("operations", begun)

    def _write_ini(self) -> None:
        """Write an ini with start weights."""
        kind, reordering = self.settings.reordering_type, self._reordering
        model = Path(self.data.model) if self.data.model else self.directory / MODEL
        order = load_kenlm(model, lazy=True).order if self.data.model else self.settings.order
        content = start_ini(
            self.directory / PHRASES,
            model,
            order,
            self.settings.distortion_limit,
            (kind, reordering) if kind is not None and reordering is not None else None,
            self.directory / OPERATIONS if self.settings.osm else None,
        )
        ini = MosesIni(self.directory / INI, content)
        self.external = write_relative_ini(self.directory, ini)

    @cached_property
    def _documents(self) -> tuple[Sequence[object], list[Json]]:
        """The document of each line, and the provenance of their file.

        Without one, each line is a document.
        """
        lines = len(self._texts.kept)
        if self.data.documents is None:
            return range(lines), []
        documents, provenance = read_documents(self.data.documents, lines)
        return documents, [provenance]

    def _content(self, command: str) -> Json:
        texts = self._texts
        return {
            "format_version": FORMAT_VERSION,
            "ini": INI,
            "sentences": len(texts.source),
            "words": [len(texts.source.ids), len(texts.target.ids)],
            "left_out": texts.left_out,
            "external": self.external,
            "settings": asdict(self.settings),
            "preparation": self.preparation,
            "inputs": [*texts.inputs, *self._documents[1]],
            "files": asdict(self.data),
            "made": made_files(self.directory),
            "seconds": self.seconds,
            "command": command,
            "version": __version__,
        }


def _links(bitext: Bitext) -> list[bytes]:
    """Return the links of each sentence, of all alignments, as a line of text."""
    links = [b"%d-%d" % (source, target) for source, target in bitext.links.tolist()]
    bounds = pairwise(bitext.link_offsets.tolist())
    all_of_them = [b" ".join(links[first:end]) for first, end in bounds]
    sentences = len(bitext) // bitext.alignments
    return [BETWEEN.join(all_of_them[sentence::sentences]) + b"\n" for sentence in range(sentences)]
