"""Checks of neural language models: whether they can be read, and the words that they know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from moses_feature.decoder.model_files import neural_lm_of
from moses_feature.decoder.system import OPERATIONS
from moses_feature.doctor.finding import Finding
from moses_feature.doctor.model_files import file_read_by
from moses_feature.doctor.table_scan import TableScan
from moses_feature.doctor.texts import Sentence, is_factored
from moses_feature.moses.ini import MosesIni
from moses_feature.networks.known_words import KnownWords
from moses_feature.runtime.errors import MosesFeatureError

SENTENCES = 2000
"""The number of sentences whose words are looked up."""
REFERENCES = "the references"


def check_neural_models(
    ini: MosesIni, references: Sequence[Sentence], say: Callable[[str], None] = lambda _: None
) -> Iterator[Finding]:
    """Yield the faults of the neural models of an ini.

    Args:
        ini: the system.
        references: reference translations.
        say: called with what was checked.
    """
    sentences = () if is_factored(references) else references[:SENTENCES]
    for feature in ini.features:
        path = file_read_by(feature)
        if feature.kind != "NeuralLM" or path is None:
            continue  # other checks report a missing file
        try:
            model = neural_lm_of(ini, feature).load_neural()
        except MosesFeatureError as error:
            remedy = f"see which model {feature.name} should read (moses-feature describe)"
            yield _problem(path, error, "the embedded decoder stops", remedy)
            continue
        known = KnownWords(str(path), REFERENCES, model.vocabulary)
        try:
            for sentence in sentences:
                known.add(sentence)
            known.check()
        except MosesFeatureError as error:
            yield _problem(
                path,
                error,
                "its scores tell nothing of translations",
                "give a model of this language, trained on text that is tokenised, cased and "
                "escaped like the table",
            )
        share = f"knows {100 * known.share:.1f}% of the words of {REFERENCES}"
        say(f"{path}: {share if sentences else 'can be read'}")


def _problem(path: Path, error: MosesFeatureError, effect: str, remedy: str) -> Finding:
    return Finding("problem", str(path), f"{error}".removeprefix(f"{path}: "), effect, remedy)


def check_alignments(ini: MosesIni, scan: TableScan) -> Iterator[Finding]:
    """Yield a finding if a table has no word alignments for an operation sequence model."""
    model = next((feature for feature in ini.features if feature.kind == OPERATIONS), None)
    if model is not None and scan.lines and not scan.has_alignments:
        yield Finding(
            "problem",
            str(scan.path),
            f"no word alignments, which {model.name} reads",
            "the embedded decoder stops",
            "take the table with them: Moses' training writes them into the fourth field",
        )
