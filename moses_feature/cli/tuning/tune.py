"""The command `mert-tune`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from mert.settings import DecoderSettings, TuningSettings
from moses_feature import __version__
from moses_feature.cli.common.command import Command, command_line
from moses_feature.cli.common.paths import READ_INI
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


@click.command("mert-tune", cls=Command, no_args_is_help=True)
@click.argument("ini", type=READ_INI)
@option("dev", "The development set, tokenised.", required=True)
@option("dev-reference", "Its translation. Repeatable.", many=True, required=True)
@option("work-dir", "Where all is kept; a run that was killed continues.", required=True)
@option(
    "rescore",
    "Add a model to the n-best lists, as a feature: a sentence network (several of one "
    "name are averaged), or a neural language model; mbr: before a network: expected BLEU against "
    "its own n-best list. Repeatable.",
    many=True,
)
@option(
    "start",
    "Weights that were tuned without the new features of this system (a moses.ini): they are "
    "tried first, with 0 for the new ones, and kept if nothing better is found.",
)
@plan_option
@decoder_options
@tuning_options
@force_option
@option("seed", default=TUNING.seed)
@click.version_option(__version__)
def mert_tune(
    ini: str,
    dev: str,
    dev_reference: tuple[str, ...],
    work_dir: str,
    rescore: tuple[str, ...],
    start: str | None,
    plan: bool,
    decoder_choice: DecoderSettings,
    tuning: TuningSettings,
    force: bool,
) -> None:
    """Tune the weights of a system; writes WORK-DIR/moses.ini.

    Each iteration translates the development set into n-best lists, merges them with
    the earlier ones, and optimises BLEU. The weights whose first translations have the best BLEU
    are kept.

    \b
    Example:
      mert-tune moses.ini --dev dev.en --dev-reference dev.fr --work-dir tuned
    """
    from mert.decoders.choice import make_decoder
    from mert.tuning.corpus import Corpus, check_chain
    from mert.tuning.plan import plan_tuning
    from mert.tuning.state import RESCORING_WEIGHTS, TUNED_INI, decoder_identity, identity_of
    from mert.tuning.tune_rescored import tune_system
    from moses_feature.metrics import metric_of
    from moses_feature.rescoring.features import named_model

    system = MosesIni.read(ini)
    before = None if start is None else MosesIni.read(start).weights_by_name()
    corpus = Corpus.read(dev, dev_reference)
    rescoring = tuple(named_model(text) for text in rescore)
    decoder_choice = replace(decoder_choice, rescoring=rescoring)
    a_sentence = check_chain(system, corpus, decoder_choice)
    planned = plan_tuning(corpus, a_sentence, decoder_choice, tuning)
    if plan:
        click.echo(planned)
        return
    planned.log()
    identity = {**identity_of(system, corpus), "decoder": decoder_identity(decoder_choice)}
    decoder = make_decoder(decoder_choice, system, corpus.sentences)
    try:
        with decoding_progress({"decoding": len(corpus)}) as report:
            state = tune_system(
                system,
                corpus,
                decoder,
                Path(work_dir),
                tuning,
                identity=identity,
                before=before,
                command=command_line(),
                force=force,
                report=report,
            )
    finally:
        decoder.close()
    of = metric_of(tuning.metric)
    shown = f"{of.label} {of.shown(state.best.quality):.2f}"
    ini_path = Path(work_dir) / TUNED_INI
    if not decoder_choice.rescoring or state.kept == "known":
        click.echo(f"{ini_path}: {shown} on {dev}")
        return
    click.echo(f"{Path(work_dir) / RESCORING_WEIGHTS}: {shown} on {dev}, as lists are rescored")
    click.echo(
        f"moses-feature translate {work_dir} uses them, after the search of {ini_path}; for other "
        "lists of that search there is moses-feature list rescore --weights",
        err=True,
    )
