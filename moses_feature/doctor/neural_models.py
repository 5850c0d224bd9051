"""Neural models: whether they can be read, and the words that they know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from moses_feature.doctor.finding import Finding
from moses_feature.doctor.model_files import file_read_by
from moses_feature.doctor.table_scan import TableScan
from moses_feature.doctor.texts import Sentence, is_factored
from moses_feature.errors import MosesFeatureError
from moses_feature.joint.scorer import JointModel
from moses_feature.lm.scorer import NeuralLM
from moses_feature.models.known_words import KnownWords
from moses_feature.moses.ini import MosesIni
from moses_feature.search.in_search import SearchInSearch

Ids = Callable[[Sentence], Sequence[int]]
SENTENCES = 2000
"""Of each text, whose words are looked up."""


def check_neural_models(
    ini: MosesIni,
    source: Sequence[Sentence],
    references: Sequence[Sentence],
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Finding]:
    """Yield what is wrong with the model directories of an ini.

    Args:
        ini: the system.
        source: sentences to translate.
        references: their translations.
        say: told what was looked at.
    """
    for feature in ini.features:
        path = file_read_by(ini, feature)
        if feature.kind not in LOADERS or path is None or not path.is_dir():
            continue
        try:
            sides = LOADERS[feature.kind](path)
        except MosesFeatureError as error:
            yield Finding(
                "problem",
                str(path),
                str(error).removeprefix(f"{path}: "),
                "the decoder stops",
                f"see which model {feature.name} should read (moses-feature describe)",
            )
            continue
        texts = {"the text to translate": source, "the references": references}
        said = []
        for (text, sentences), ids in zip(texts.items(), sides, strict=True):
            if ids is None or not sentences or is_factored(sentences):
                continue
            known = KnownWords(str(path), text)
            try:
                for sentence in islice(sentences, SENTENCES):
                    known.add(ids(sentence))
                known.check()
            except MosesFeatureError as error:
                yield Finding(
                    "problem",
                    str(path),
                    str(error).removeprefix(f"{path}: "),
                    "its scores tell nothing of translations",
                    "give a model of these languages, trained on text that is tokenised, cased and "
                    "escaped like the table",
                )
            said.append(f"{100 * known.share:.1f}% of the words of {text}")
        say(f"{path}: knows {' and '.join(said)}" if said else f"{path}: can be read")


def check_alignments(ini: MosesIni, scan: TableScan) -> Iterator[Finding]:
    """Yield whether a joint model finds no word alignments in a table."""
    joint = next((feature for feature in ini.features if feature.kind == JOINT), None)
    if joint is not None and scan.lines and not scan.has_alignments:
        yield Finding(
            "problem",
            str(scan.path),
            f"no word alignments, which {joint.name} reads",
            "the embedded decoder stops",
            "take the table with them: Moses' training writes them into the fourth field",
        )


def _language_model(path: Path) -> tuple[Ids | None, Ids]:
    return None, NeuralLM.load(path).ids


def _joint(path: Path) -> tuple[Ids | None, Ids]:
    model = JointModel.load(path)
    return model.source.ids, model.target.ids


def _search(path: Path) -> tuple[Ids | None, Ids]:
    model = SearchInSearch(path)
    return model.source_ids, model.ids


JOINT = "BilingualNPLM"
LOADERS: Mapping[str, Callable[[Path], tuple[Ids | None, Ids]]] = {
    "NeuralLM": _language_model,
    JOINT: _joint,
    "RNNsearch": _search,
}
"""By the class of a feature, what gives the ids of source words, and of target words."""
