"""The command `moses-feature model refine`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

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
from moses_feature.moses.ini_features import Feature
from moses_feature.phrases.settings import RefineSettings
from moses_feature.phrases.table_words import TableWords
from moses_feature.runtime.errors import UsageError
from moses_feature.tables.features_json import features_json, table_words

if TYPE_CHECKING:
    from moses_feature.phrases.refinement.lists import NetworkColumn

DEFAULTS = RefineSettings()


@click.command("refine", cls=Command, no_args_is_help=True)
@click.argument("model", type=READ_MODEL)
@click.argument("refined", type=WRITE_MODEL)
@option(
    "ini",
    "The tuned system that the lists are of, with the network's column or without.",
    required=True,
)
@table_name_option
@option("source", "The text that was decoded, tokenised.", required=True)
@option("reference", "Its translation. Repeatable.", many=True, required=True)
@option("lists", "Its n-best lists, with segmentation.", required=True)
@option(
    "documents",
    "The document of each line, a name a line: the held-out sentences are whole documents.",
)
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
        "Of the network's column while it learns; by default that of the ini, which must not be 0, "
        "or, where the lists have no such column, the best of five.",
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
    documents: str | None,
    resume: bool,
    estimate: bool,
    settings: RefineSettings,
    device: DeviceOptions,
) -> None:
    """Refine a network for expected BLEU on n-best lists.

    The lists are those of a tuned system, over sentences that it has not seen. The network learns
    to raise the BLEU that the log-linear model expects of each list, with its log p as a column;
    the best one, by the same on held-out sentences, is kept in REFINED. Score the table with it,
    and tune again. (augment-phrase-table --system does all of this.)

    \b
    Example:
      mert-decode tuned.ini --with-segmentation --lists lists.gz < unseen.en > unseen.out
      moses-feature model refine my.model better.model --ini tuned.ini --source unseen.en \\
          --reference unseen.fr --lists lists.gz --epochs 3
    """
    from moses_feature.cli.models.training_run import train_and_show
    from moses_feature.phrases.refinement.lists import RefineData
    from moses_feature.phrases.refinement.refine import refine

    system = MosesIni.read(ini)
    table = system.table(table_name)
    features = FeatureSet.of_ini(system)
    column = _column(system, table, features, settings)
    path = table.arguments.get("path", "")
    words = table_words(path) if column else TableWords()
    data = RefineData(Path(model), source, reference, lists, features, words, column, documents)
    train_and_show(
        refine, data, settings, Path(refined), device.prepare(), resume, "sentences", estimate
    )


def _column(
    ini: MosesIni, table: Feature, features: FeatureSet, settings: RefineSettings
) -> NetworkColumn | None:
    """Return the network's column in the lists of a system; None if its table has none.

    Raises:
        UsageError: the column is of several networks, or has no weight.
    """
    from moses_feature.phrases.refinement.lists import NetworkColumn
    from moses_feature.tables.score_lines import network_column, network_digests

    path = table.arguments.get("path", "")
    if not features_json(path).exists():
        return None
    place, digests = network_column(path), network_digests(path)
    if len(digests) > 1:
        raise UsageError(f"{path}: the column is the mean of {len(digests)} networks, not of one")
    columns = features.columns(table.name)
    if place >= len(columns):
        raise UsageError(f"{ini.path}: expected {place + 1} weights of {table.name} and more")
    column = columns[place]
    if not features.tuneable[column]:
        raise UsageError(f"{ini.path}: the network's column is not tuneable")
    if not features.weights[column] and settings.weight is None:
        raise UsageError(
            f"{ini.path}: the weight of the network's column is 0: tune it first, or give "
            "--column-weight"
        )
    return NetworkColumn(int(features.tuneable[:column].sum()), digests[0])
