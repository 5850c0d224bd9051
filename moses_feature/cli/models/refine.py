"""The command `moses-feature model refine`."""

from __future__ import annotations

from pathlib import Path

import click

from moses_feature.cli.common.command import Command, debug_option
from moses_feature.cli.common.device import DeviceOptions, device_options
from moses_feature.cli.common.groups import OptionGroup, taking
from moses_feature.cli.common.options import estimate_option, table_name_option
from moses_feature.cli.common.paths import READ_MODEL, WRITE_MODEL
from moses_feature.cli.common.vocabulary import FiniteRange, option
from moses_feature.cli.models.training_options import resume_option, run_options
from moses_feature.moses.features import FeatureSet
from moses_feature.moses.ini import MosesIni
from moses_feature.phrases.settings import RefineSettings
from moses_feature.runtime.errors import UsageError
from moses_feature.tables.features_json import table_words

DEFAULTS = RefineSettings()


@click.command("refine", cls=Command, no_args_is_help=True)
@click.argument("model", type=READ_MODEL)
@click.argument("refined", type=WRITE_MODEL)
@option("ini", "The tuned system that the lists are of, with weights.", required=True)
@table_name_option
@option("source", "The text that was decoded, tokenised.", required=True)
@option("reference", "Its translation. Repeatable.", many=True, required=True)
@option("lists", "Its n-best lists, with segmentation.", required=True)
@resume_option
@estimate_option
@OptionGroup(
    "Training",
    "settings",
    taking(RefineSettings, "clip"),
    option(
        "perplexity",
        "Of the translations of a list, at the start.",
        default=DEFAULTS.perplexity,
        within=FiniteRange(1, min_open=True),
    ),
    option(
        "column-weight",
        "Of the network's column while it learns; that of the ini by default, which must not be 0.",
        to="weight",
        within=FiniteRange(0, min_open=True),
    ),
    option(
        "held-out",
        "Share of the sentences that measure the loss and are not learnt from.",
        default=DEFAULTS.held_out,
        within=FiniteRange(0, 1, min_open=True, max_open=True),
    ),
    run_options(DEFAULTS, "sentences", "a quarter of an epoch"),
)
@device_options
@debug_option
def refine_command(
    model: str,
    refined: str,
    ini: str,
    table_name: str | None,
    source: str,
    reference: tuple[str, ...],
    lists: str,
    resume: bool,
    estimate: bool,
    settings: RefineSettings,
    device: DeviceOptions,
) -> None:
    """Refine a network for expected BLEU on n-best lists.

    The lists are those of a system that has the network's column already and was tuned, over
    sentences that are like unseen ones: mert-decode --leave-one-out --with-segmentation makes them
    of training sentences. The network learns to raise the BLEU that the log-linear model expects of
    each list; the best one, by the same on held-out sentences, is kept in REFINED. Score the table
    with it, and tune again.

    \b
    Example:
      mert-decode tuned.ini --leave-one-out train.fr --with-segmentation --lists lists.gz < train.en
      moses-feature model refine my.model better.model --ini tuned.ini --source train.en \\
          --reference train.fr --lists lists.gz --epochs 3
    """
    from moses_feature.cli.models.training_run import train_and_show
    from moses_feature.phrases.refinement.lists import RefineData
    from moses_feature.phrases.refinement.refine import refine
    from moses_feature.tables.score_lines import network_column, network_digests

    system = MosesIni.read(ini)
    table = system.table(table_name)
    path = table.arguments.get("path", "")
    place, digests = network_column(path), network_digests(path)
    if len(digests) > 1:
        raise UsageError(f"{path}: the column is the mean of {len(digests)} networks, not of one")
    features = FeatureSet.of_ini(system)
    columns = features.columns(table.name)
    if place >= len(columns):
        raise UsageError(f"{ini}: expected {place + 1} weights of {table.name} and more")
    column = columns[place]
    if not features.tuneable[column]:
        raise UsageError(f"{ini}: the network's column is not tuneable")
    if not features.weights[column] and settings.weight is None:
        raise UsageError(
            f"{ini}: the weight of the network's column is 0: tune it first, or give "
            "--column-weight"
        )
    texts = source, reference, lists
    place_in_lists = int(features.tuneable[:column].sum())
    of_table = place_in_lists, digests[0], table_words(path)
    data = RefineData(Path(model), *texts, features, *of_table)
    train_and_show(
        refine, data, settings, Path(refined), device.prepare(), resume, "sentences", estimate
    )
