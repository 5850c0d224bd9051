"""The command `moses-feature model add-memory`."""

from __future__ import annotations

from pathlib import Path

import click

from moses_feature.cli.common.command import Command
from moses_feature.cli.common.paths import READ, READ_MODEL, WRITE_DIRECTORY
from moses_feature.sentences.settings import SentenceData


@click.command("add-memory", cls=Command, no_args_is_help=True)
@click.argument("model", type=READ_MODEL)
@click.argument("source", type=READ)
@click.argument("target", type=READ)
@click.argument("directory", type=WRITE_DIRECTORY)
def add_memory_command(model: str, source: str, target: str, directory: str) -> None:
    """Let a sentence network remember a text and its translation.

    DIRECTORY becomes a copy of MODEL, an RNNsearch or a Transformer, with the text. For each
    sentence that it translates or scores, it looks at the 32 most similar ones of the text: words
    that followed similar states in their translations become more probable. Nothing is trained. The
    text may be the one that MODEL was trained on, or any other, tokenised and escaped in the same
    way; SOURCE and TARGET are in the same order as in training.

    \b
    Example:
      moses-feature model add-memory en-fr.transformer train.en train.fr en-fr.memory
    """
    from moses_feature.sentences.add_memory import add_memory

    text = SentenceData(source, target)
    pairs, left_out = add_memory(Path(model), text, Path(directory))
    click.echo(
        f"{directory} remembers {pairs:,} different pairs; {left_out:,} were empty or too long",
        err=True,
    )
