"""The commands `moses-feature model export-nplm` and `export-ctranslate2`."""

from __future__ import annotations

from pathlib import Path

import click

from moses_feature.cli.common.command import Command
from moses_feature.cli.common.paths import READ_MODEL, WRITE, WRITE_DIRECTORY
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.runtime.files import Json


@click.command("export-nplm", cls=Command, no_args_is_help=True)
@click.argument("model", type=READ_MODEL)
@click.argument("output", type=WRITE)
def export_command(model: str, output: str) -> None:
    """Write a language model in NPLM's format, for Moses.

    Prints its line of moses.ini, for a Moses that was built with NPLM. OUTPUT is the network in
    NPLM's text format. Of a joint model, the lists of its words stand beside it: OUTPUT.source and
    OUTPUT.target. Moses does not subtract log Z, so that the model should be self-normalised.

    \b
    Example:
      moses-feature model export-nplm french.cslm french.nplm
      moses-feature model export-nplm en-fr.joint en-fr.nplm
    """
    from moses_feature.cslm.nplm import write_nplm
    from moses_feature.cslm.scorer import NeuralLM
    from moses_feature.joint.nplm import write_joint_nplm
    from moses_feature.joint.scorer import JointModel
    from moses_feature.joint.settings import JOINT_ARCHITECTURE
    from moses_feature.networks.files import CONFIG, architecture_of

    directory, path = Path(model), Path(output)
    if (directory / CONFIG).is_file() and architecture_of(directory) == JOINT_ARCHITECTURE:
        joint = JointModel.load(directory)
        line = write_joint_nplm(path, joint).line("NNJM0")
        _warn_of_log_norms(joint.normalised, joint.training)
    else:
        network = NeuralLM.load(directory)
        write_nplm(path, network)
        line = f"NeuralLM name=CSLM0 factor=0 order={network.order} path={path.absolute()}"
        _warn_of_log_norms(network.normalised, network.training)
    click.echo(line)


@click.command("export-ctranslate2", cls=Command, no_args_is_help=True)
@click.argument("model", type=READ_MODEL)
@click.argument("directory", type=WRITE_DIRECTORY)
def export_ctranslate2_command(model: str, directory: str) -> None:
    """Write a Transformer for CTranslate2.

    DIRECTORY is made; `model translate` takes it in place of MODEL and is faster, `rescore` is
    slower. CTranslate2's own programs read it, too; text comes and goes as tokens.

    \b
    Example:
      moses-feature model export-ctranslate2 en-fr.transformer en-fr.ct2
    """
    from moses_feature.networks.architectures import architecture_with
    from moses_feature.networks.direction import FORWARD
    from moses_feature.networks.pieces import PieceVocabulary
    from moses_feature.phrases.model import load_model
    from moses_feature.rescoring.ctranslate2_export import export_ctranslate2
    from moses_feature.transformer.settings import TransformerSizes

    read = load_model(Path(model))
    sizes, source, target = read.network.sizes, read.source, read.target
    if (
        not isinstance(sizes, TransformerSizes)
        or not isinstance(source, PieceVocabulary)
        or not isinstance(target, PieceVocabulary)
        or read.direction != FORWARD
    ):
        raise MosesFeatureError(
            f"{model}: expected a Transformer of subwords, {FORWARD}, found "
            f"{architecture_with(read.network.sizes)}, {read.direction}"
        )
    weights = {name: tensor.numpy() for name, tensor in read.network.state_dict().items()}
    export_ctranslate2(Path(directory), sizes, weights, source, target)


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
