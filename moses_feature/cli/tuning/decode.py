"""The command `mert-decode`."""

from __future__ import annotations

import gzip
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_feature import __version__
from moses_feature.cli.common.command import Command
from moses_feature.cli.common.groups import typed
from moses_feature.cli.common.paths import READ_INI, WRITE
from moses_feature.cli.common.progress import Progress
from moses_feature.cli.common.vocabulary import WholeRange, option
from moses_feature.cli.tuning.options import (
    TUNING,
    DecodingProgress,
    SearchOptions,
    search_options,
)
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.lines import read_text
from moses_feature.moses.system_directory import MOST_TRANSLATIONS
from moses_feature.runtime.errors import MosesFeatureError, UsageError
from moses_feature.runtime.files import STANDARD_STREAM, open_output

if TYPE_CHECKING:
    from moses_feature.decoder.decoder import EmbeddedDecoder
    from moses_feature.decoder.source_phrases import Sentence
    from moses_feature.moses.features import FeatureSet


@click.command("mert-decode", cls=Command, no_args_is_help=True)
@click.argument("ini", type=READ_INI)
@option(
    "lists",
    "Also write the n-best list of each sentence, its best distinct translations, as Moses does.",
    within=WRITE,
)
@option(
    "nbest-size",
    "Translations of a list.",
    to="list_size",
    default=TUNING.list_size,
    within=WholeRange(1, MOST_TRANSLATIONS),
)
@option("constraint", "Find the best derivation of the translations in FILE, and nothing else.")
@option(
    "with-alignment",
    "Have word alignments in the n-best lists, as Moses' -print-alignment-info-in-n-best; the "
    "phrase tables must have them.",
)
@option(
    "with-segmentation",
    "Have the phrases in the n-best lists, as Moses' -include-segmentation-in-n-best.",
)
@search_options
@click.version_option(__version__)
def mert_decode(
    ini: str,
    lists: str | None,
    list_size: int,
    constraint: str | None,
    with_alignment: bool,
    with_segmentation: bool,
    search: SearchOptions,
) -> None:
    """Translate the standard input, a sentence on each line, with the embedded decoder.

    Reads moses.ini and the text tables and KenLM models that it names; it refuses what it cannot
    follow. Relative paths in the ini are relative to the current directory, as for Moses. The whole
    input is read first, and its part of the tables; moses-feature translate --tokens translates
    line by line.

    \b
    Example:
      mert-decode moses.ini < test.en > test.out --lists test.nbest.gz --nbest-size 100
    """
    from moses_feature.decoder.decoder import EmbeddedDecoder, embedded_decoder
    from moses_feature.decoder.system import System

    if constraint and (lists or search.jobs):
        raise UsageError("--constraint goes neither with --lists nor with --jobs")
    if (with_alignment or with_segmentation or typed(["list_size"])) and not lists:
        raise UsageError("--nbest-size, --with-alignment and --with-segmentation are for --lists")
    read = MosesIni.read(ini)
    system = System.of_ini(read)
    system = replace(
        system,
        alignments=system.alignments or with_alignment,
        segmentation=system.segmentation or with_segmentation,
    )
    sentences, digest = read_text(STANDARD_STREAM)
    _check(read, digest)
    if constraint:
        _force(EmbeddedDecoder(system, sentences, search.limits), sentences, constraint)
        return
    began = time.perf_counter()
    decoder = embedded_decoder(system, sentences, search.limits, search.jobs)
    loaded = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="mert-decode-") as scratch:
        path = Path(scratch) / "nbest.gz"
        with Progress(has_end=True) as bar:
            progress = DecodingProgress(bar, {"decoding": len(sentences)})
            decoder.write_nbest(
                decoder.features,
                list_size if lists else 1,
                path,
                lambda done: progress("decoding", done),
            )
        decoder.close()
        seconds = time.perf_counter() - loaded
        lost = _print_first(path, decoder.features, len(sentences))
        if lists:
            _copy_nbest(path, Path(lists))
    click.echo(
        f"{len(sentences):,} sentences in {seconds:.1f} s "
        f"({len(sentences) / max(seconds, 1e-9):,.1f} a second), "
        f"models read in {loaded - began:.1f} s",
        err=True,
    )
    if lost:
        raise MosesFeatureError(f"{lost} sentences have no translation within the distortion limit")


def _check(ini: MosesIni, digest: str) -> None:
    """Check that the models of an ini are for this text."""
    from moses_feature.doctor.model_files import check_kept_phrases
    from moses_feature.doctor.neural_models import check_neural_models

    for finding in (
        *check_kept_phrases(ini, "the standard input", digest),
        *check_neural_models(ini, []),
    ):
        if finding.severity == "problem":
            raise MosesFeatureError(str(finding))
        click.echo(str(finding), err=True)


def _lines_beside(path: str, sentences: int) -> Sequence[Sentence]:
    """Return the sentences of a file with a line for each one of the input."""
    found, _ = read_text(path)
    if len(found) != sentences:
        raise MosesFeatureError(
            f"{path}: expected {sentences} lines as in the input, found {len(found)}"
        )
    return found


def _print_first(path: Path, features: FeatureSet, sentences: int) -> int:
    """Print the first translation of each sentence; return the number of sentences without one."""
    from moses_feature.moses.nbest_lists import read_nbest

    lost = 0
    for hypotheses in read_nbest(path, features, sentences):
        lost += not hypotheses
        words = hypotheses[0].words if hypotheses else ()
        click.echo(b" ".join(words))
    return lost


def _copy_nbest(source: Path, target: Path) -> None:
    """Copy an n-best list, compressed anew: its parts are those of the processes."""
    with gzip.open(source) as lists, open_output(target) as file:
        shutil.copyfileobj(lists, file)


def _force(decoder: EmbeddedDecoder, sentences: Sequence[Sentence], path: str) -> None:
    """Print the score and features of each given translation; fail if one cannot be reached."""
    translations = _lines_beside(path, len(sentences))
    lost = 0
    for number, words in enumerate(translations):
        found = decoder.force(number, words)
        lost += not found
        for hypothesis in found:
            values = (decoder.features.template() % tuple(hypothesis.features + 0.0)).decode()
            click.echo(f"{number} ||| {values} ||| {hypothesis.score:.6g}")
    if lost:
        raise MosesFeatureError(f"{lost} of {len(translations)} translations cannot be derived")
