"""The commands `mert-optimize`, `mert-decode`, `mert-tune` and `mert-compare`."""

from __future__ import annotations

import gzip
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from mert.checks import check_chain
from mert.cli.options import (
    TUNING,
    decoder_options,
    decoder_settings,
    search_options,
    tuning_options,
)
from mert.cli.progress import DecodingProgress
from mert.comparison.compare import Candidate, compare
from mert.comparison.plot import plot
from mert.comparison.report import as_markdown
from mert.corpus import Corpus, read_text
from mert.decoders.embedded.decoder import EmbeddedDecoder, SearchLimits
from mert.decoders.embedded.system import System
from mert.decoders.embedded.workers import embedded_decoder
from mert.moses_files import read_candidates, read_init
from mert.nbest import read_nbest
from mert.optimisers.candidates import Candidates
from mert.optimisers.choice import OPTIMIZERS, optimizer
from mert.optimisers.space import SearchSpace
from mert.tune import RESCORING_WEIGHTS, TUNED_INI, TuningSettings, identity_of, tune
from moses_feature import __version__
from moses_feature.arrays import Floats
from moses_feature.cli.command import Command, command_line, debug_option
from moses_feature.errors import MosesFeatureError, UsageError
from moses_feature.files import STANDARD_STREAM, whole_file, write_whole
from moses_feature.moses.ini import MosesIni
from moses_feature.rescoring.nbest import named


@click.command(cls=Command, no_args_is_help=True)
@click.argument("features")
@click.argument("scores")
@click.option("--init", help="Start weights and the range of restarts: an init.opt of Moses.")
@click.option(
    "--optimizer", "optimizer_name", type=click.Choice(OPTIMIZERS), default=TUNING.optimizer,
    show_default=True,
)  # fmt: skip
@click.option(
    "--restarts", type=click.IntRange(min=0), default=TUNING.restarts, show_default=True,
    help="Random start points of mert.",
)  # fmt: skip
@click.option(
    "--random-directions", type=click.IntRange(min=0), default=TUNING.random_directions,
    show_default=True, help="Tried by mert when no single feature brings anything.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--fixed", multiple=True, metavar="NAME", help="Keep this weight. Repeatable.")
@click.option(
    "--bound", "bounds", multiple=True, metavar="NAME=LEAST:GREATEST",
    help="Keep this weight between the two. Repeatable.",
)  # fmt: skip
@click.option("--output", help="Write the weights to this file, one line: name value.")
@debug_option
@click.version_option(__version__)
def mert_optimize(
    features: str,
    scores: str,
    init: str | None,
    optimizer_name: str,
    restarts: int,
    random_directions: int,
    seed: int,
    fixed: tuple[str, ...],
    bounds: tuple[str, ...],
    output: str | None,
) -> None:
    """Optimise weights on Moses' feature and score files, text or compressed.

    Prints the best point as Moses' mert does, its corpus BLEU, and why the search ended. Names
    are those of the feature file, such as LM0_0. Weights are divided by the sum of their absolute
    values, unless some are fixed or bounded.

    \b
    Example:
      mert-optimize features.dat scores.dat --init init.opt --output weights.txt
    """
    candidates = read_candidates(features, scores)
    space = _search_space(candidates, init, fixed, bounds)
    start = time.perf_counter()
    optimum = optimizer(optimizer_name, restarts, random_directions)(candidates, space, seed)
    seconds = time.perf_counter() - start
    values = " ".join(f"{weight:.6g}" for weight in optimum.weights)
    click.echo(f"Best point: {values}  => {optimum.bleu:.6g}")
    click.echo(
        f"{optimum.reason}; BLEU {optimum.start_bleu:.6g} at the start; "
        f"{len(candidates.features):,} hypotheses of {len(candidates.offsets) - 1:,} sentences, "
        f"{seconds:.1f} s",
        err=True,
    )
    if output:
        lines = zip(candidates.names, optimum.weights, strict=True)
        write_whole(Path(output), "".join(f"{n} {w:.6g}\n" for n, w in lines).encode())


def _search_space(
    candidates: Candidates, init: str | None, fixed: tuple[str, ...], bounds: tuple[str, ...]
) -> SearchSpace:
    names = candidates.names
    if init is None:
        space = SearchSpace.around(np.full(len(names), 1 / len(names)))
    else:
        start, least, greatest = read_init(init, len(names))
        space = replace(SearchSpace.around(start), draw_lowest=least, draw_highest=greatest)
    for name in fixed:
        space.fixed[_index(names, name)] = True
    for bound in bounds:
        name, _, interval = bound.partition("=")
        index = _index(names, name)
        space.lowest[index], space.highest[index] = _interval(bound, interval)
    return space


def _index(names: tuple[str, ...], name: str) -> int:
    if name not in names:
        raise UsageError(f"no feature {name!r}: expected one of {', '.join(names)}")
    return names.index(name)


def _interval(bound: str, text: str) -> Floats:
    try:
        interval = np.array(text.split(":"), dtype=np.float64)
    except ValueError:
        interval = np.zeros(0)
    if len(interval) != 2 or not interval[0] < interval[1]:
        raise UsageError(f"--bound {bound}: expected NAME=LEAST:GREATEST")
    return interval


@click.command("mert-decode", cls=Command, no_args_is_help=True)
@click.argument("ini")
@click.option(
    "--n-best", nargs=2, metavar="FILE N", type=(str, click.IntRange(min=1)),
    help="Also write the N best distinct translations of each sentence, as Moses does.",
)  # fmt: skip
@click.option(
    "--force", "force", metavar="FILE",
    help="Find the best derivation of the translations in FILE, and nothing else.",
)  # fmt: skip
@search_options
@debug_option
@click.version_option(__version__)
def mert_decode(
    ini: str,
    n_best: tuple[str, int] | None,
    force: str | None,
    pops: int | None,
    stack: int | None,
    jobs: int | None,
) -> None:
    """Translate the standard input, a sentence on each line, with the embedded decoder.

    Reads moses.ini and the text tables and KenLM models that it names; what it cannot follow, it
    refuses. Paths in the ini that are relative hold from the current directory, as for Moses.

    \b
    Example:
      mert-decode moses.ini < test.en > test.out --n-best test.nbest.gz 100
    """
    if force and (n_best or jobs):
        raise UsageError("--force goes neither with --n-best nor with --jobs")
    system = System.of_ini(MosesIni.read(ini))
    sentences, _ = read_text(STANDARD_STREAM)
    limits = SearchLimits(pops, stack)
    if force:
        _force(EmbeddedDecoder(system, sentences, limits), sentences, force)
        return
    began = time.perf_counter()
    decoder = embedded_decoder(system, sentences, limits, jobs or 1)
    loaded = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="mert-decode-") as scratch:
        path = Path(scratch) / "nbest.gz"
        with DecodingProgress({"decoding": len(sentences)}) as progress:
            decoder.write_nbest(
                decoder.features, n_best[1] if n_best else 1, path,
                lambda done: progress("decoding", done),
            )  # fmt: skip
        decoder.close()
        seconds = time.perf_counter() - loaded
        lost = _print_first(path, decoder.features, len(sentences))
        if n_best:
            _copy_nbest(path, Path(n_best[0]))
    click.echo(
        f"{len(sentences):,} sentences in {seconds:.1f} s "
        f"({len(sentences) / max(seconds, 1e-9):,.1f} a second), "
        f"models read in {loaded - began:.1f} s",
        err=True,
    )
    if lost:
        raise MosesFeatureError(f"{lost} sentences have no translation within the distortion limit")


def _print_first(path: Path, features: Any, sentences: int) -> int:
    """Print the first translation of each sentence; return how many have none."""
    lost = 0
    output = sys.stdout.buffer
    for hypotheses in read_nbest(path, features, sentences):
        lost += not hypotheses
        words = hypotheses[0].words if hypotheses else ()
        output.write(b" ".join(words) + b"\n")
    output.flush()
    return lost


def _copy_nbest(source: Path, target: Path) -> None:
    """Copy an n-best list, decompressed unless the name ends in .gz."""
    with (
        source.open("rb") as compressed,
        whole_file(target) as temporary,
        temporary.open("wb") as file,
    ):
        keep = target.suffix == ".gz"
        shutil.copyfileobj(compressed if keep else gzip.GzipFile(fileobj=compressed), file)


def _force(decoder: EmbeddedDecoder, sentences: Any, path: str) -> None:
    """Print the score and the features of each given translation; refuse to skip any."""
    translations, _ = read_text(path)
    if len(translations) != len(sentences):
        raise MosesFeatureError(
            f"{path}: expected {len(sentences)} lines as in the input, found {len(translations)}"
        )
    lost = 0
    for number, words in enumerate(translations):
        found = decoder.force(number, words)
        lost += not found
        for hypothesis in found:
            values = (decoder.features.template() % tuple(hypothesis.features + 0.0)).decode()
            click.echo(f"{number} ||| {values} ||| {hypothesis.score:.6g}")
    if lost:
        raise MosesFeatureError(f"{lost} of {len(translations)} translations cannot be derived")


@click.command("mert-tune", cls=Command, no_args_is_help=True)
@click.argument("ini")
@click.option("--input", "input_text", required=True, help="The development set, tokenised.")
@click.option(
    "--reference", "references", multiple=True, required=True,
    help="Its translation. Repeatable.",
)  # fmt: skip
@click.option("--work-dir", required=True, help="Where all is kept; a run that was killed goes on.")
@click.option(
    "--rescore", multiple=True, metavar="NAME=MODEL",
    help="Add a neural language model to the n-best lists, as a feature of this name: for a "
    "Moses that cannot use it in search. Repeatable.",
)  # fmt: skip
@decoder_options
@tuning_options
@click.option("--seed", type=click.IntRange(min=0), default=TUNING.seed, show_default=True)
@debug_option
@click.version_option(__version__)
def mert_tune(
    ini: str, input_text: str, references: tuple[str, ...], work_dir: str, **options: Any
) -> None:
    """Tune the weights of a system; writes WORK-DIR/moses.ini.

    Each iteration translates the development set into n-best lists, merges them with the earlier
    ones, and optimises BLEU. The weights whose first translations have the best BLEU are kept.

    \b
    Example:
      mert-tune moses.ini --input dev.en --reference dev.fr --work-dir tuned
    """
    system = MosesIni.read(ini)
    corpus = Corpus.read(input_text, references)
    decoder_choice = decoder_settings(options)
    settings = TuningSettings(**options)
    check_chain(system, corpus, decoder_choice)
    identity = {**identity_of(system, corpus), "decoder": decoder_choice.identity()}
    decoder = decoder_choice.make(system, corpus.sentences)
    try:
        with DecodingProgress({"decoding": len(corpus)}) as progress:
            state = tune(
                system, corpus, decoder, Path(work_dir), settings,
                identity=identity, command=command_line(), report=progress,
            )  # fmt: skip
    finally:
        decoder.close()
    click.echo(f"{Path(work_dir) / TUNED_INI}: BLEU {100 * state.best.bleu:.2f} on {input_text}")
    if decoder_choice.rescoring:
        click.echo(
            f"{Path(work_dir) / RESCORING_WEIGHTS}: for moses-feature rescore --weights",
            err=True,
        )


@click.command("mert-compare", cls=Command, no_args_is_help=True)
@click.argument("systems", nargs=-1, required=True, metavar="NAME=INI...")
@click.option("--dev", required=True, help="The development set, tokenised.")
@click.option("--dev-reference", multiple=True, required=True, help="Its translation. Repeatable.")
@click.option("--test", required=True, help="The test set.")
@click.option("--test-reference", multiple=True, required=True, help="Its translation. Repeatable.")
@click.option("--work-dir", required=True, help="Where all is kept; a run that was killed goes on.")
@click.option(
    "--seeds", type=click.IntRange(min=1), default=3, show_default=True,
    help="Tuning runs of each system.",
)  # fmt: skip
@click.option(
    "--seed", type=click.IntRange(min=0), default=TUNING.seed, show_default=True,
    help="Of the first run; the others have the next ones.",
)  # fmt: skip
@click.option(
    "--rescore", multiple=True, metavar="SYSTEM:NAME=MODEL",
    help="Add a neural language model to the n-best lists of a system. Repeatable.",
)  # fmt: skip
@decoder_options
@tuning_options
@debug_option
@click.version_option(__version__)
def mert_compare(
    systems: tuple[str, ...],
    dev: str,
    dev_reference: tuple[str, ...],
    test: str,
    test_reference: tuple[str, ...],
    work_dir: str,
    seeds: int,
    seed: int,
    **options: Any,
) -> None:
    """Tune and compare systems as in the paper's Table 1; the first one is the baseline.

    Prints BLEU on the development and test sets, mean and standard deviation over the tuning
    runs, and whether the difference from the baseline is significant. Writes comparison.json,
    comparison.html and, for each system, average.ini with the weights averaged over its runs.

    \b
    Example:
      mert-compare baseline=moses.ini rnn=moses.augmented.ini --work-dir table1 \\
          --dev dev.en --dev-reference dev.fr --test test.en --test-reference test.fr
    """
    rescoring = [_rescoring(text) for text in options.pop("rescore")]
    candidates = [_candidate(system, rescoring) for system in systems]
    unknown = {system for system, *_ in rescoring} - {c.name for c in candidates}
    if unknown:
        raise UsageError(f"--rescore: no system {', '.join(sorted(unknown))}")
    dev_corpus, test_corpus = Corpus.read(dev, dev_reference), Corpus.read(test, test_reference)
    decoder = decoder_settings(options)
    tuning = [TuningSettings(seed=seed + run, **options) for run in range(seeds)]
    for candidate in candidates:
        check_chain(candidate.ini, dev_corpus, candidate.decoder(decoder))
    check_chain(candidates[0].ini, test_corpus, candidates[0].decoder(decoder))
    sizes = {"test": len(test_corpus), "decoding": len(dev_corpus)}
    with DecodingProgress(sizes) as progress:
        comparison = compare(
            candidates, dev_corpus, test_corpus, Path(work_dir), decoder, tuning,
            command=command_line(), report=progress,
        )  # fmt: skip
    click.echo(as_markdown(comparison))
    page = Path(work_dir) / "comparison.html"
    plot(comparison, page)
    click.echo(f"{page}: BLEU by system and run", err=True)


def _rescoring(text: str) -> tuple[str, str, str]:
    """Return system, feature and model."""
    system, colon, feature = text.partition(":")
    if not colon:
        raise UsageError(f"{text}: expected SYSTEM:NAME=MODEL, such as cslm:CSLM0=french.cslm")
    return system, *named(feature, "CSLM0")


def _candidate(text: str, rescoring: list[tuple[str, str, str]]) -> Candidate:
    name, equals, path = text.partition("=")
    if not equals or not path:
        raise UsageError(f"{text}: expected NAME=INI, such as baseline=moses.ini")
    mine = tuple((feature, model) for system, feature, model in rescoring if system == name)
    return Candidate(name, MosesIni.read(path), mine)
