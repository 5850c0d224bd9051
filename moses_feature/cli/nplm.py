"""What the commands that write NPLM's format have to say."""

from __future__ import annotations

import click

from moses_feature.files import Json


def warn_of_log_norms(training: Json) -> None:
    """Say that Moses will not subtract log Z of a model that was not trained for that."""
    norm = training.get("mean_absolute_log_norm")
    known = f"mean |log Z| {norm:.2f}" if isinstance(norm, float) else "log Z is not known"
    click.echo(
        f"warning: not trained with --self-normalisation ({known}), and Moses will not "
        "normalise its scores",
        err=True,
    )
