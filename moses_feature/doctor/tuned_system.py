"""What a tuned system has beside its ini: models that rescore its lists, and their weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from moses_feature.doctor.finding import Finding
from moses_feature.moses.features import FeatureSet
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.system_directory import SYSTEM, SystemDirectory
from moses_feature.rescoring.features import scorers_of, with_rescoring
from moses_feature.rescoring.source import SourceText
from moses_feature.runtime.errors import MosesFeatureError


def check_tuned(system: SystemDirectory, ini: MosesIni) -> Iterator[Finding]:
    """Yield what keeps a tuned system from translating."""
    where = str(system.ini.parent / SYSTEM)
    if system.built is not None and not (system.built / SYSTEM).is_file():
        yield Finding(
            "warning",
            where,
            f"the system that it was tuned from, {system.built}, is not there",
            "raw text cannot be translated",
            "give --tokens, or bring it back",
        )
    if not system.rescoring:
        return
    try:
        scorers = scorers_of(system.rescoring, SourceText([b""], "no text"))
        with_rescoring(FeatureSet.of_ini(ini), scorers, system.weights or Path())
    except MosesFeatureError as error:
        effect = "moses-feature translate and serve stop"
        remedy = "tune the system again, or bring back what it was tuned with"
        yield Finding("problem", where, f"{error}", effect, remedy)
