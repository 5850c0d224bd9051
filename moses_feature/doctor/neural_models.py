"""Checks of neural models: whether they can be read, and the words that they know."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from moses_feature.decoder.model_files import joint_model_of, neural_lm_of
from moses_feature.doctor.finding import Finding
from moses_feature.doctor.model_files import file_read_by
from moses_feature.doctor.table_scan import TableScan
from moses_feature.doctor.texts import Sentence, is_factored
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.ini_features import Feature
from moses_feature.moses.words import LONGEST_PHRASE, WordOptions
from moses_feature.networks.known_words import KnownWords
from moses_feature.networks.vocabulary import Vocabulary
from moses_feature.runtime.errors import MosesFeatureError

SENTENCES = 2000
"""The number of sentences of each text whose words are looked up."""
SOURCE, REFERENCES = "the text to translate", "the references"


@dataclass(frozen=True)
class _Model:
    """The vocabularies of a neural model.

    Attributes:
        target: words of the target language.
        source: words of the source language; None if it reads none.
        words: how tokens become words.
    """

    target: Vocabulary
    source: Vocabulary | None = None
    words: WordOptions = field(default_factory=WordOptions)

    def source_words(self, sentence: Sentence) -> list[bytes]:
        """Return the words of a source sentence."""
        return self.words.pair(b" ".join(sentence[:LONGEST_PHRASE]), b"")[0]

    def target_words(self, sentence: Sentence) -> list[bytes]:
        """Return the words of a translation."""
        return self.words.pair(b"", b" ".join(sentence[:LONGEST_PHRASE]))[1]


def check_neural_models(
    ini: MosesIni,
    source: Sequence[Sentence],
    references: Sequence[Sentence],
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Finding]:
    """Yield the faults of the neural models of an ini.

    Args:
        ini: the system.
        source: sentences to translate.
        references: their reference translations.
        say: called with what was checked.
    """
    texts = {SOURCE: source, REFERENCES: references}
    texts = {text: of_text for text, of_text in texts.items() if not is_factored(of_text)}
    for feature in ini.features:
        path = file_read_by(feature)
        if feature.kind not in LOADERS or path is None:
            continue  # other checks report a missing file
        try:
            model = LOADERS[feature.kind](ini, feature)
        except MosesFeatureError as error:
            remedy = f"see which model {feature.name} should read (moses-feature describe)"
            yield _problem(path, error, "the embedded decoder stops", remedy)
            continue
        said = yield from _check_words(model, path, texts)
        say(f"{path}: knows {' and '.join(said)}" if said else f"{path}: can be read")


def _check_words(
    model: _Model, path: Path, texts: Mapping[str, Sequence[Sentence]]
) -> Generator[Finding, None, list[str]]:
    """Yield the texts of another language; return the share of each that the model knows."""
    said = []
    for text, known, words in _sides(model, path):
        if not texts.get(text):
            continue
        try:
            for sentence in texts[text][:SENTENCES]:
                known.add(words(sentence))
            known.check()
        except MosesFeatureError as error:
            yield _problem(
                path,
                error,
                "its scores tell nothing of translations",
                "give a model of these languages, trained on text that is tokenised, cased and "
                "escaped like the table",
            )
        said.append(f"{100 * known.share:.1f}% of the words of {text}")
    return said


def _problem(path: Path, error: MosesFeatureError, effect: str, remedy: str) -> Finding:
    return Finding("problem", str(path), f"{error}".removeprefix(f"{path}: "), effect, remedy)


def _sides(
    model: _Model, path: Path
) -> Iterator[tuple[str, KnownWords, Callable[[Sentence], list[bytes]]]]:
    """Yield for each language the text, the counter of its words, and how tokens become words."""
    name, source, target = str(path), model.source, model.target
    if source is not None:
        yield SOURCE, KnownWords(name, SOURCE, source, target), model.source_words
    yield REFERENCES, KnownWords(name, REFERENCES, target, source), model.target_words


def check_alignments(ini: MosesIni, scan: TableScan) -> Iterator[Finding]:
    """Yield a finding if a table has no word alignments for a joint model."""
    joint = next((feature for feature in ini.features if feature.kind == JOINT), None)
    if joint is not None and scan.lines and not scan.has_alignments:
        yield Finding(
            "problem",
            str(scan.path),
            f"no word alignments, which {joint.name} reads",
            "the embedded decoder stops",
            "take the table with them: Moses' training writes them into the fourth field",
        )


def _language_model(ini: MosesIni, feature: Feature) -> _Model:
    return _Model(neural_lm_of(ini, feature).load_neural().vocabulary)


def _joint(ini: MosesIni, feature: Feature) -> _Model:
    model = joint_model_of(ini, feature).load()
    return _Model(model.target, model.source)


JOINT = "BilingualNPLM"
LOADERS: Mapping[str, Callable[[MosesIni, Feature], _Model]] = {
    "NeuralLM": _language_model,
    JOINT: _joint,
}
"""By the class of a feature; they read what the decoder reads."""
