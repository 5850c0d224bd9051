"""Smaller tables: the pairs that the network believes in."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from moses_feature.errors import UsageError
from moses_feature.files import Json, open_output, write_json
from moses_feature.tables.features_json import features_json, read_features
from moses_feature.tables.score_lines import ScoreLine, network_column, phrases_of_table
from moses_feature.tables.writer import COMPRESSION


@dataclass(frozen=True)
class PruneSettings:
    """What is kept of the targets of a source phrase.

    Attributes:
        best: how many, those with the highest p(target | source) of the network; None for all.
        least: natural log of p(target | source) of each for a word, the end of the phrase being
            one; None for any. The best target of a single word is kept in any case: without it
            the word would be unknown.
    """

    best: int | None = None
    least: float | None = None

    def kept(self, lines: list[ScoreLine]) -> set[int]:
        """Return the places of the lines of a source phrase that are kept."""
        ranked = sorted(range(len(lines)), key=lambda place: -lines[place].by_network)
        if self.least is not None:
            enough = [place for place in ranked if _per_word(lines[place]) >= self.least]
            is_word = b" " not in lines[0].source
            ranked = enough or (ranked[:1] if is_word else [])
        return set(ranked[: self.best])


def prune(table: str, output: str, settings: PruneSettings, command: str) -> Json:
    """Write the lines of an augmented table that are kept, each as it is.

    Returns:
        what is written into the `*.features.json` of the output.

    Raises:
        UsageError: nothing would be left out.
        MosesFeatureError: the table has not been augmented.
        FormatError: a line that is none of a phrase table.
    """
    if settings.best is None and settings.least is None:
        raise UsageError("expected --best or --least: what is to be left out?")
    column, facts = network_column(table), read_features(table)
    kept = all_lines = 0
    with open_output(Path(output), COMPRESSION) as file:
        for _, lines in phrases_of_table(table, column):
            places = settings.kept(lines)
            kept += len(places)
            all_lines += len(lines)
            file.writelines(lines[place].line for place in sorted(places))
    facts |= {
        "output": Path(output).name,
        "lines_before_pruning": all_lines,
        "lines_written": kept,
        "pruned": asdict(settings),
        "prune_command": command,
    }
    write_json(features_json(output), facts)
    return facts


def _per_word(line: ScoreLine) -> float:
    return line.network_log_prob / (line.target.count(b" ") + 2)
