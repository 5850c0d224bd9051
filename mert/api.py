"""For Python programs: tune and compare systems, as `mert-compare` does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from mert.comparison.candidate import Candidate
from mert.comparison.compare import compare
from mert.comparison.results import Comparison
from mert.settings import DecoderSettings, TuningSettings
from mert.tuning.corpus import Corpus
from moses_feature.moses.ini import MosesIni

__all__ = ["Comparison", "DecoderSettings", "TuningSettings", "compare_systems"]

TextPath = str | Path


def compare_systems(
    systems: Mapping[str, TextPath],
    dev: tuple[TextPath, TextPath],
    test: tuple[TextPath, TextPath],
    directory: TextPath,
    *,
    runs: int = 3,
    decoder: DecoderSettings | None = None,
    tuning: TuningSettings | None = None,
    report: Callable[[str, int], None] = lambda *_: None,
) -> Comparison:
    """Tune systems and compare them with the first one, as in the paper's Table 1.

    Writes comparison.json, comparison.html and the tuned weights into the directory.

    Args:
        systems: names, and the paths of their moses.ini.
        dev: the development text and its reference, for tuning.
        test: the test text and its reference, for the comparison.
        directory: holds all results; a comparison that was killed is resumed.
        runs: tuning runs of each system, with consecutive seeds.
        decoder: the decoder and its settings; None for the embedded one.
        tuning: the settings of tuning, with the first seed; None for the defaults.
        report: called with the current task and the number of sentences decoded since the last
            call.

    Raises:
        UsageError: the directory holds another comparison.
        MosesFeatureError: a file is missing or wrong, or a decoder fails.
    """
    decoder, tuning = decoder or DecoderSettings(), tuning or TuningSettings()
    candidates = [Candidate(name, MosesIni.read(path)) for name, path in systems.items()]
    corpora = [Corpus.read(text, [reference]) for text, reference in (dev, test)]
    return compare(
        candidates,
        corpora[0],
        corpora[1],
        Path(directory),
        decoder,
        tuning,
        runs,
        report=report,
    )
