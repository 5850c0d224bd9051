"""A report on an augmented table and its network, as a page or as text."""

from __future__ import annotations

import logging
from pathlib import Path

from moses_feature.phrases.generation.generator import generator_of
from moses_feature.phrases.model import load_model
from moses_feature.report.facts import Facts, ReadNetwork, summarise
from moses_feature.report.maps import INSTALL, can_make_maps, map_section, maps_of
from moses_feature.report.page import Section, write_page
from moses_feature.report.refining import refining
from moses_feature.report.sections import (
    agreement,
    disagreement,
    long_phrases,
    long_phrases_section,
    long_phrases_text,
    training,
    what_was_done,
)
from moses_feature.runtime.errors import FormatError, MosesFeatureError
from moses_feature.runtime.files import write_whole
from moses_feature.tables.features_json import features_json
from moses_feature.tables.score_lines import network_column, network_digests

logger = logging.getLogger(__name__)

SCRIPT = Path(__file__).with_name("report.js")


def write_report(
    table_path: str,
    model_directory: Path,
    output: Path,
    seed: int = 1,
) -> None:
    """Write the page; or the table of long phrases alone, as text.

    Args:
        table_path: an augmented table.
        model_directory: the model that scored it.
        output: the page; text, if its name ends in .txt.
        seed: of samples and maps.

    Raises:
        MosesFeatureError: the table has not been augmented.
        FormatError: the table was scored by another model, or a file is damaged.
    """
    if not Path(table_path).is_file():
        raise MosesFeatureError(f"{table_path}: expected a table in a file, found none")
    column, facts = network_column(table_path), Facts.read(table_path)
    model = load_model(model_directory)
    _check_model(table_path, model_directory, model.digest)
    network = ReadNetwork(model, generator_of(model_directory), facts.words.words(model))
    logger.info("reading %s", table_path)
    summary = summarise(table_path, column)
    _check_lines(table_path, facts, summary.lines)
    logger.info("drawing samples")
    tables = long_phrases(summary, network, facts, seed)
    if output.suffix == ".txt":
        write_whole(output, long_phrases_text(tables).encode(errors="replace"))
        return
    loss = model.training.get("held_out_loss", float("nan"))
    sections = [
        what_was_done(table_path, facts, model, loss, summary, _averaged(table_path)),
        *training(model),
        *refining(model, facts.words),
        agreement(summary, facts),
        disagreement(summary, facts),
        long_phrases_section(tables),
    ]
    if can_make_maps():
        for kind, points in maps_of(network, summary, facts, seed):
            sections.append(map_section(kind, points, summary.long_phrases))
    else:
        logger.warning("no maps of words and phrases: %s", INSTALL)
        sections.append(Section("Maps", f"There are none: {INSTALL} makes them."))
    title = f"What a network makes of {Path(table_path).name}"
    write_page(output, title, sections, SCRIPT.read_text())


def _check_model(table_path: str, model_directory: Path, digest: str) -> None:
    found = network_digests(table_path)
    if digest not in found:
        raise FormatError(
            features_json(table_path),
            f"the model in {model_directory} to have scored the table's first p(target | source) "
            f"(SHA-256 {digest[:12]}…)",
            f"{' and '.join(f'{other[:12]}…' for other in found)}",
        )


def _averaged(table_path: str) -> int:
    """Return the number of networks that were averaged in the column."""
    return len(network_digests(table_path))


def _check_lines(table_path: str, facts: Facts, lines: int) -> None:
    expected = facts.counts.get("lines_written", lines)
    if lines != expected:
        described = f"{expected:,} lines, as {features_json(table_path)} says"
        raise FormatError(table_path, described, f"{lines:,}")
