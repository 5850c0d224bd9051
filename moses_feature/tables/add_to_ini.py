"""Put an augmented table, or a neural language model, into a moses.ini."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path

from moses_feature.cslm.nplm import load_neural_lm
from moses_feature.cslm.settings import LM_ARCHITECTURE
from moses_feature.moses.ini import MosesIni, moses_path
from moses_feature.moses.ini_features import Feature
from moses_feature.moses.lines import LineReader
from moses_feature.moses.nbest_lists import named
from moses_feature.moses.phrase_table import SCORES, checked_fields
from moses_feature.networks.architectures import SENTENCE_ARCHITECTURES
from moses_feature.networks.files import CONFIG, architecture_of
from moses_feature.runtime.errors import FormatError, MosesFeatureError, UsageError
from moses_feature.runtime.files import with_or_without_gz
from moses_feature.tables.features_json import features_json, read_columns, texts_of

START_WEIGHT = 0.1
"""The start weight of a new score: small and positive, as MERT's start range is [0, 1]."""


def add_to_ini(
    ini_path: Path,
    output: Path,
    table: Path | None,
    name: str | None = None,
    weights: Sequence[float] = (),
    binary: Path | None = None,
) -> list[float]:
    """Write an ini that reads the augmented `table`, and return the weights of its new scores.

    Args:
        ini_path: an ini that reads the table without the new scores, or with too few scores.
        output: where to write the changed ini; may be `ini_path`.
        table: the augmented table; None for the one that the ini names, whose number of scores in
            the ini is too small.
        name: the name of the phrase table in the ini, if it has several.
        weights: start weights of the new scores, 0.1 each if empty; a weight of 0 is not tuned.
        binary: the augmented table in the binary format of the ini's table; None for text.

    Raises:
        FormatError: Moses would refuse the ini, or the number of scores in the table is not the
            one in its `*.features.json`.
        UsageError: several tables of the ini may be meant, or the number of weights is wrong.
    """
    ini = MosesIni.read(ini_path)
    ini.check_names()
    feature = ini.table(name)
    if table is None:
        table = _own_table(ini, feature)
    columns = first_line_scores(table)
    added = columns - feature.score_count
    if added < 1:
        raise MosesFeatureError(
            f"{table}: expected more than the {feature.score_count} scores of {feature.name} in "
            f"{ini_path}, found {columns}: expected an augmented table, and an ini of the table "
            "before"
        )
    _check_description(table, feature.score_count, added)
    if weights and len(weights) != added:
        raise UsageError(f"expected {added} weights for {added} new scores, found {len(weights)}")
    if not all(map(math.isfinite, weights)):
        raise UsageError(f"expected finite weights, found {', '.join(map(str, weights))}")
    if output.exists() and table.exists() and output.samefile(table):
        raise UsageError(f"{output} is the table: write the ini to another file")
    start = list(weights) or [START_WEIGHT] * added
    if binary is not None and not binary.exists():
        raise MosesFeatureError(f"{binary}: expected a binary table, found none")
    changed = ini.with_scores(feature, binary or table, start, binary=binary is not None)
    if texts := texts_of(table):
        note = f"{feature.name} has the phrases of {', '.join(texts)} alone"
        changed = changed.with_weights({}, [note])
    changed.write(output)
    return start


def _own_table(ini: MosesIni, feature: Feature) -> Path:
    """Return the file of a table; like Moses, add `.gz` if there is no file of that name."""
    path = feature.path
    if (place := with_or_without_gz(path)).is_file():
        return place
    if Path(path).is_dir():
        raise ini.error(feature.line_number, "a text table", f"a folder {path}: a binary one?")
    raise ini.error(feature.line_number, "a phrase table", f"no file {path}")


def add_models(ini_path: Path, output: Path, models: Sequence[str], weight: float) -> list[str]:
    """Write an ini with new features, one for each neural model, and return their names.

    Args:
        ini_path: an ini.
        output: where to write the changed ini; may be `ini_path`.
        models: `[NAME=]MODEL` each. MODEL is a model directory, for the embedded decoder, or for a
            language model also a file in NPLM's format, for Moses too
            (`moses-feature model export` writes it).
        weight: the start weight of each.

    Raises:
        MosesFeatureError: a model cannot be read, or Moses could not read its path.
        UsageError: an invalid name, or a model that the ini has already.
    """
    if not math.isfinite(weight):
        raise UsageError(f"expected a finite weight, found {weight}")
    ini = MosesIni.read(ini_path)
    ini.check_names()
    added = []
    for text in models:
        given, path = named(text)
        name, line = _line_of(ini, given, Path(path))
        ini = ini.with_feature(line, name, [weight])
        added.append(name)
    ini.write(output)
    return added


def _line_of(ini: MosesIni, given: str, model: Path) -> tuple[str, str]:
    """Return the name of a new feature, given or unused, and its line."""
    kind = architecture_of(model) if model.is_dir() else LM_ARCHITECTURE
    if kind in SENTENCE_ARCHITECTURES:
        raise UsageError(
            f"{model} is a network for sentences, which rescores n-best lists: give it to "
            "mert-tune --rescore or mert-compare --rescore"
        )
    if kind != LM_ARCHITECTURE:
        raise FormatError(model / CONFIG, f"architecture {LM_ARCHITECTURE}", kind)
    path = moses_path(model)
    for feature in ini.features:
        if feature.arguments.get("path") == path:
            raise UsageError(f"{ini.path} has {path} already, as {feature.name}")
    names = {feature.name for feature in ini.features}
    name = given or next(name for n in itertools.count() if (name := f"CSLM{n}") not in names)
    order = load_neural_lm(model).order
    return name, f"NeuralLM name={name} factor=0 order={order} path={path}"


def first_line_scores(table: Path) -> int:
    """Return the number of scores in the first line of a phrase table."""
    with LineReader(table) as reader:
        for line in reader:
            return len(checked_fields(line, table, 1)[SCORES].split())
    raise MosesFeatureError(f"{table}: expected lines of a phrase table, found an empty file")


def _check_description(table: Path, old: int, added: int) -> None:
    """Check that the last columns are those of the table's `*.features.json`, if there is one.

    For a table that was augmented twice, it names only the columns of the second time.
    """
    path = features_json(table)
    if not path.is_file():
        return
    indices = list(read_columns(table).values())
    last = old + added
    if len(indices) > added or indices != list(range(last - len(indices), last)):
        expected = (
            f"new columns {list(range(old, last))} after the ini's {old}, or the last of them"
        )
        raise FormatError(path, expected, f"{indices}")
