"""The command `mert-compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mert.settings import DecoderSettings, TuningSettings
from moses_feature import __version__
from moses_feature.cli.common.command import Command, command_line
from moses_feature.cli.common.paths import READ_SYSTEM
from moses_feature.cli.common.vocabulary import option
from moses_feature.cli.tuning.options import (
    TUNING,
    decoder_options,
    decoding_progress,
    force_option,
    plan_option,
    tuning_options,
)
from moses_feature.moses.ini import MosesIni
from moses_feature.runtime.errors import UsageError

if TYPE_CHECKING:
    from mert.comparison.candidate import Candidate


@click.command("mert-compare", cls=Command, no_args_is_help=True)
@click.argument("systems", nargs=-1, metavar="[NAME=INI]...", type=READ_SYSTEM)
@option("dev", "The development set, tokenised; for systems to tune.")
@option("dev-reference", "Its translation. Repeatable.", many=True)
@option("test", "The test set.", required=True)
@option("test-reference", "Its translation. Repeatable.", many=True, required=True)
@option("work-dir", "Where all is kept; a run that was killed continues.", required=True)
@option(
    "translations",
    "What another system made of the test set, a translation on each line; several files of "
    "one name are several runs of it. Repeatable.",
    many=True,
)
@option("seeds", "Tuning runs of each system.", default=3)
@option(
    "seed",
    "Of the first run; the others have the next ones.",
    default=TUNING.seed,
)
@option(
    "rescore",
    "Add a model to the n-best lists of a system, whose name and a colon stand before it, such as "
    "all:T=en-fr.transformer: a sentence network (several of one name are averaged), or a neural "
    "language model; mbr: before a network: expected BLEU against its own n-best list. Repeatable.",
    many=True,
)
@plan_option
@decoder_options
@tuning_options
@force_option
@click.version_option(__version__)
def mert_compare(
    systems: tuple[str, ...],
    dev: str | None,
    dev_reference: tuple[str, ...],
    test: str,
    test_reference: tuple[str, ...],
    work_dir: str,
    translations: tuple[str, ...],
    seeds: int,
    rescore: tuple[str, ...],
    plan: bool,
    decoder_choice: DecoderSettings,
    tuning: TuningSettings,
    force: bool,
) -> None:
    """Tune and compare systems as in the paper's Table 1; the first one is the baseline.

    Finished outputs of other systems (--translations) are compared with it; without systems to
    tune, the first of them is the baseline.

    Prints BLEU on the development and test sets, mean and standard deviation over the tuning
    runs, and whether the difference from the baseline is significant. Writes comparison.json,
    comparison.html and, for each system, average.ini with the weights averaged over its runs.

    \b
    Example:
      mert-compare baseline=moses.ini rnn=moses.augmented.ini --work-dir table1 \\
          --dev dev.en --dev-reference dev.fr --test test.en --test-reference test.fr
      mert-compare --translations moses=moses.out --translations marian=seed1.out \\
          --translations marian=seed2.out \\
          --test test.en --test-reference test.fr --work-dir outputs
    """
    from mert.comparison.candidate import PAGE, check_names
    from mert.comparison.compare import compare, plan_comparison
    from mert.comparison.report import as_markdown
    from mert.tuning.corpus import Corpus

    if systems and not (dev and dev_reference):
        raise UsageError("systems are tuned: expected --dev and --dev-reference")
    if not systems and (dev or dev_reference):
        raise UsageError("--dev and --dev-reference are for systems to tune: expected NAME=INI")
    finished = _outputs(translations)
    rescoring = [_rescoring(text) for text in rescore]
    candidates = [_candidate(system, rescoring) for system in systems]
    unknown = {system for system, *_ in rescoring} - {c.name for c in candidates}
    if unknown:
        raise UsageError(f"--rescore: no system {', '.join(sorted(unknown))}")
    check_names([*(c.name for c in candidates), *finished])
    dev_corpus = Corpus.read(dev, dev_reference) if dev else None
    test_corpus = Corpus.read(test, test_reference)
    if plan:
        if dev_corpus is None:
            raise UsageError("--plan is for systems to tune: expected NAME=INI")
        click.echo(
            plan_comparison(candidates, dev_corpus, test_corpus, decoder_choice, tuning, seeds)
        )
        return
    sizes = {"test": len(test_corpus), "decoding": len(dev_corpus or ())}
    with decoding_progress(sizes) as report:
        comparison = compare(
            candidates,
            dev_corpus,
            test_corpus,
            Path(work_dir),
            decoder_choice,
            tuning,
            seeds,
            outputs=finished,
            command=command_line(),
            force=force,
            report=report,
        )
    click.echo(as_markdown(comparison))
    click.echo(
        f"{Path(work_dir) / PAGE}: the same as a page, with plots; open it in a browser", err=True
    )


def _outputs(texts: tuple[str, ...]) -> dict[str, list[str]]:
    paths: dict[str, list[str]] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or not path:
            raise UsageError(f"--translations {text}: expected NAME=FILE, such as marian=test.out")
        paths.setdefault(name, []).append(path)
    return paths


def _rescoring(text: str) -> tuple[str, str, str]:
    """Return system, feature and model."""
    from moses_feature.rescoring.features import named_model

    system, colon, feature = text.partition(":")
    if not colon or "=" in system:
        expected = "expected the name of a system before it, such as all:CSLM0=french.cslm"
        raise UsageError(f"--rescore {text}: {expected}")
    return system, *named_model(feature)


def _candidate(text: str, rescoring: list[tuple[str, str, str]]) -> Candidate:

    from mert.comparison.candidate import Candidate

    name, equals, path = text.partition("=")
    if not equals or not path:
        raise UsageError(f"{text}: expected NAME=INI, such as baseline=moses.ini")
    mine = tuple((feature, model) for system, feature, model in rescoring if system == name)
    return Candidate(name, MosesIni.read(path), mine)
