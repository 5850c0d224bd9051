"""The development text, and a quick check for errors that would otherwise appear hours later."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mert.decoders.choice import make_decoder
from mert.settings import DecoderSettings, TuningSettings
from moses_feature.doctor.examine import examine_fast
from moses_feature.doctor.model_files import check_kept_phrases
from moses_feature.doctor.neural_models import check_neural_models
from moses_feature.metrics.bleu import References
from moses_feature.moses.features import FeatureSet
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.lines import Sentence, read_parallel
from moses_feature.moses.nbest_lists import read_nbest
from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.runtime.files import Json
from moses_feature.runtime.json_files import numbered

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Corpus:
    """Sentences with references, as tokens.

    Attributes:
        sentences: the sentences to translate.
        references: (sentences, references of each).
        paths: the files of the input and of the references.
        digests: SHA-256 of these files, uncompressed.
    """

    sentences: tuple[Sentence, ...]
    references: tuple[tuple[Sentence, ...], ...]
    paths: tuple[str, ...]
    digests: tuple[str, ...]

    @classmethod
    def read(cls, source: str | Path, references: Sequence[str | Path]) -> Corpus:
        """Read tokenised texts, a sentence on each line.

        Raises:
            MosesFeatureError: a file is missing, has no words, or another number of lines than
                the input.
        """
        paths = (source, *references)
        texts, digests = read_parallel(paths)
        return cls(
            texts[0], tuple(zip(*texts[1:], strict=True)), tuple(map(str, paths)), tuple(digests)
        )

    def __len__(self) -> int:
        return len(self.sentences)

    def identity(self) -> Json:
        """Return the SHA-256 of each text by what it is."""
        names = ["source", *("reference" for _ in self.digests[1:])]
        return numbered(zip(names, self.digests, strict=True))


PROBES = 40
"""The number of sentences, spread over the text, that are translated for the check."""


def check_chain(ini: MosesIni, corpus: Corpus, settings: DecoderSettings) -> float:
    """Check the system, translate a few sentences and compare them with their references.

    Returns:
        How many seconds one process needs for the n-best list of a sentence.

    Raises:
        MosesFeatureError: files are missing or of other systems, the decoder fails, its features
            are not those of the ini, or the translations share no two consecutive words with the
            references.
    """
    fatal, others = examine_fast(ini)
    others += check_kept_phrases(ini, corpus.paths[0], corpus.digests[0])
    references = [list(of_sentence[0]) for of_sentence in corpus.references]
    fatal += check_neural_models(ini, references)
    for finding in others:
        logger.warning("%s", finding)
    if fatal:
        raise MosesFeatureError("\n".join(map(str, fatal)))
    filled = [n for n, sentence in enumerate(corpus.sentences) if sentence]
    step = max(1, len(filled) // PROBES)
    probes = filled[::step][:PROBES]
    decoder = make_decoder(
        replace(
            settings,
            jobs=None,
            ray=None,
            cache=None,
            moses=replace(settings.moses, threads=1),
        ),
        ini,
        [corpus.sentences[n] for n in probes],
    )
    try:
        _check_features(ini, decoder.features, [name for name, _ in settings.rescoring])
        with tempfile.TemporaryDirectory(prefix="mert-check-") as directory:
            path = Path(directory) / "nbest.gz"
            times: list[float] = []
            began = time.monotonic()
            decoder.write_nbest(
                decoder.features,
                TuningSettings.list_size,
                path,
                lambda _: times.append(time.monotonic()),
            )
            lists = list(read_nbest(path, decoder.features, len(probes)))
    finally:
        decoder.close()
    translations = [list_[0].words if list_ else () for list_ in lists]
    if not any(translations):
        raise MosesFeatureError(f"{ini.path}: the decoder translated none of {len(probes)} lines")
    matches = sum(
        int(References(corpus.references[number]).statistics([words])[0, 2])
        for number, words in zip(probes, translations, strict=True)
    )
    if matches == 0:
        first = b" ".join(next(filter(None, translations))).decode(errors="replace")
        raise MosesFeatureError(
            f"no two words in a row of {len(probes)} translations are in {corpus.paths[1]}: is it "
            f"a translation of {corpus.paths[0]}, in the target language, tokenised, cased and "
            f"escaped like the system's output ({first!r})?"
        )
    if len(times) == 1:  # all at once
        return (times[0] - began) / len(probes)
    return (times[-1] - times[0]) / (len(times) - 1)


def _check_features(ini: MosesIni, features: FeatureSet, added: Sequence[str]) -> None:
    """Check that the decoder's features, and their numbers of values, are those of the ini."""
    of_ini = {f.name: len(f.weights) for f in FeatureSet.of_ini(ini).functions}
    of_decoder = {f.name: len(f.weights) for f in features.functions if f.name not in added}
    if of_ini != of_decoder:
        raise MosesFeatureError(
            f"{ini.path}: expected the features {of_ini}, the decoder has {of_decoder}"
        )
