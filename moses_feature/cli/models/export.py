"""The command `moses-feature model export`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from moses_feature.cli.common.command import Command
from moses_feature.cli.common.paths import READ_MODEL, WRITE
from moses_feature.cli.common.vocabulary import option
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.runtime.files import Json


@click.command("export", cls=Command, no_args_is_help=True)
@click.argument("model", type=READ_MODEL)
@click.argument("output", type=WRITE)
@option("format", "For whom.", within=["nplm", "ctranslate2"], required=True)
def export_command(model: str, output: str, format: Literal["nplm", "ctranslate2"]) -> None:  # noqa: A002
    """Write a model for another program.

    nplm: a language model, for a Moses that was built with NPLM. OUTPUT is a file, the network in
    NPLM's text format. The line of moses.ini is printed. Moses does not subtract log Z, so that
    the model should be self-normalised.

    ctranslate2: a Transformer. OUTPUT is a new directory. `model translate` takes it as MODEL and
    is faster; rescoring is slower. CTranslate2's own programs read it, too; text comes and goes as
    tokens.

    \b
    Example:
      moses-feature model export french.cslm french.nplm --format nplm
      moses-feature model export en-fr.transformer en-fr.ct2 --format ctranslate2
    """
    write = {"nplm": _export_nplm, "ctranslate2": _export_ctranslate2}
    write[format](Path(model), Path(output))


def _export_nplm(directory: Path, path: Path) -> None:
    from moses_feature.cslm.nplm import write_nplm
    from moses_feature.cslm.scorer import NeuralLM

    network = NeuralLM.load(directory)
    write_nplm(path, network)
    click.echo(f"NeuralLM name=CSLM0 factor=0 order={network.order} path={path.absolute()}")
    _warn_of_log_norms(network.normalised, network.training)


def _export_ctranslate2(directory: Path, output: Path) -> None:
    from moses_feature.networks.architectures import architecture_with
    from moses_feature.networks.direction import FORWARD
    from moses_feature.networks.pieces import PieceVocabulary
    from moses_feature.phrases.model import load_model
    from moses_feature.rescoring.ctranslate2_export import export_ctranslate2
    from moses_feature.transformer.settings import TransformerSizes

    read = load_model(directory)
    sizes, source, target = read.network.sizes, read.source, read.target
    if (
        not isinstance(sizes, TransformerSizes)
        or not isinstance(source, PieceVocabulary)
        or not isinstance(target, PieceVocabulary)
        or read.direction != FORWARD
    ):
        raise MosesFeatureError(
            f"{directory}: expected a Transformer of subwords, {FORWARD}, found "
            f"{architecture_with(read.network.sizes)}, {read.direction}"
        )
    weights = {name: tensor.numpy() for name, tensor in read.network.state_dict().items()}
    export_ctranslate2(output, sizes, weights, source, target)


def _warn_of_log_norms(normalised: bool, training: Json) -> None:
    """Say that Moses will not subtract log Z of a model that was not trained for that."""
    if not normalised:
        return
    norm = training.get("mean_absolute_log_norm")
    known = f"mean |log Z| {norm:.2f}" if isinstance(norm, float) else "log Z is not known"
    click.echo(
        f"warning: not trained with --self-normalisation ({known}), and Moses will not "
        "normalise its scores",
        err=True,
    )
