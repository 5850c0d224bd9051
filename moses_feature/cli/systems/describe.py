"""What `moses-feature describe` says of a system."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from moses_feature.runtime.errors import FormatError, MosesFeatureError
from moses_feature.runtime.files import Json

if TYPE_CHECKING:
    from moses_feature.moses.system_directory import SystemDirectory


def describe_system(path: Path) -> Iterator[tuple[str, str]]:
    """Yield what a system is made of: names and values.

    Raises:
        MosesFeatureError: there is no system, or it is damaged.
    """
    from moses_feature.moses.ini import SYSTEM
    from moses_feature.moses.system_directory import WHAT, SystemDirectory
    from moses_feature.runtime.json_files import read_json

    of = SystemDirectory.read(path)
    facts = of.ini.parent / SYSTEM
    content = read_json(facts, WHAT) if path.is_dir() and facts.is_file() else {}
    yield from _of_ini(of)
    yield from _of_tuning(of, content)
    yield from _of_building(of)
    external = content.get("external")
    for file in external if isinstance(external, list) else []:
        yield "needs from elsewhere", str(file)


def _of_ini(system: SystemDirectory) -> Iterator[tuple[str, str]]:
    """Yield the features with their weights."""
    ini = system.moses_ini()
    if not ini.features:
        raise FormatError(ini.path, "a model, a system or a moses.ini", "no [feature] section")
    yield "ini", str(ini.path)
    for feature in ini.features:
        weights = ini.weights.get(feature.name)
        values = " ".join(f"{value:.4g}" for value in weights.values) if weights else "no weights"
        file = f" of {feature.path}" if feature.path else ""
        yield feature.name, f"{values}{file}"


def _of_tuning(system: SystemDirectory, content: Json) -> Iterator[tuple[str, str]]:
    from moses_feature.metrics import METRICS, metric_of
    from moses_feature.rescoring.nbest import read_weights

    for name, path in system.rescoring:
        yield "rescoring", f"{name}: {path}"
    if system.weights is not None:
        yield "weights of its lists", f"{system.weights}, lists of {system.list_size}"
        with suppress(MosesFeatureError, OSError):  # the doctor tells what is wrong with them
            for name, values in read_weights(system.weights).items():
                yield f"  {name}", " ".join(f"{value:.4g}" for value in values)
    tuned = content.get("tuned")
    if not isinstance(tuned, dict):
        yield "tuned", "no"
        return
    texts = tuned.get("texts")
    yield "tuned on", ", ".join(map(str, texts)) if isinstance(texts, dict) else "not known"
    name, quality = str(tuned.get("metric")), tuned.get("quality")
    if name in METRICS and isinstance(quality, float) and math.isfinite(quality):
        metric = metric_of(name)
        yield f"{metric.label} there", f"{metric.shown(quality):.2f}"


def _of_building(system: SystemDirectory) -> Iterator[tuple[str, str]]:
    """Yield the texts that it was built of, and how they were prepared."""
    from moses_feature.building.preparation import preparation_of
    from moses_feature.moses.ini import SYSTEM
    from moses_feature.moses.system_directory import WHAT
    from moses_feature.runtime.json_files import read_json

    built = system.built
    if built is None or not (built / SYSTEM).is_file():
        return
    content = read_json(built / SYSTEM, WHAT)
    files, words = content.get("files"), content.get("words")
    if isinstance(files, dict):
        yield "built of", f"{files.get('source')} and {files.get('target')}"
    if isinstance(words, list):
        of_sides = " and ".join(map(str, words))
        yield "of these", f"{content.get('sentences')} sentence pairs with {of_sides} words"
    for side in ("source", "target"):
        try:
            of = preparation_of(content, side, built)
        except FormatError as error:
            yield side, f"not known: {error}"
            continue
        except MosesFeatureError:
            yield side, "tokens, as they are"
            continue
        spelt = ", unknown words spelt like near known ones" if of.known else ""
        yield side, f"raw text, {of.language}, {of.case}{spelt}"
