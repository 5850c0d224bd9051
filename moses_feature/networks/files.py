"""The files of a model directory, whatever the network; free of torch.

`model.safetensors` (weights), `config.json` and vocabularies (one word per line, id = line number
counted from 0). Nothing in it is a pickle.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from moses_feature.networks.pieces import PIECES, load_vocabulary
from moses_feature.networks.vocabulary import Vocabulary
from moses_feature.runtime.errors import FormatError, MosesFeatureError
from moses_feature.runtime.files import Json, whole_file, write_json
from moses_feature.runtime.json_files import read_json, record

T = TypeVar("T")

FORMAT_VERSION = 1
WEIGHTS = "model.safetensors"
CHECKPOINT = "checkpoint.safetensors"
"""The state of a training run, in the directory of its model; only `--resume` reads it."""
MEMORY = "memory.safetensors"
"""A text that a sentence network of version 0.2 could remember."""
FOLDS = "folds.json"
"""The file that marks a directory of cross-fitted networks of version 0.2."""
CONFIG = "config.json"
CTRANSLATE2_WEIGHTS = "model.bin"
MODEL_FILES = (
    CONFIG,
    WEIGHTS,
    CHECKPOINT,
    *(f"{side}{of}" for side in ("source", "target", "words") for of in (".vocab", PIECES)),
)
"""The names that a training writes."""


@dataclass(frozen=True)
class ModelFiles:
    """The content of a model directory.

    Attributes:
        config: the content of `config.json` without version and architecture.
        vocabularies: by file name.
        weights: float32 arrays by name.
        checked: whether the files are known to belong together; not if version 0.2 wrote them.
    """

    config: Json
    vocabularies: dict[str, Vocabulary]
    weights: dict[str, NDArray[np.float32]]
    checked: bool = False

    def consistency(self) -> str:
        """Return a SHA-256 of sizes, words, and shapes of weights, which belong together."""
        shapes = sorted((name, list(array.shape)) for name, array in self.weights.items())
        words = [vocabulary.digest() for vocabulary in self.vocabularies.values()]
        content = json.dumps([self.config["sizes"], words, shapes], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    def pair_digest(self) -> str:
        """Return the SHA-256 of everything that determines the scores of a network for pairs."""
        decisive = [self.config.get(key) for key in ("sizes", "words", "escaped", "reading")]
        hashed = hashlib.sha256(json.dumps(decisive).encode())
        for vocabulary in self.vocabularies.values():
            hashed.update(vocabulary.content())
        for name in sorted(self.weights):
            hashed.update(name.encode())
            hashed.update(self.weights[name].tobytes())
        if trained_self_normalised(self.config["training"]):
            return hashlib.sha256(f"{hashed.hexdigest()}, self-normalised".encode()).hexdigest()
        return hashed.hexdigest()


def write_model_files(directory: Path, architecture: str, files: ModelFiles) -> None:
    """Write a model; each file appears complete, the weights last.

    Raises:
        MosesFeatureError: the directory cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MosesFeatureError(f"{directory}: {error.strerror}") from error
    for name, vocabulary in files.vocabularies.items():
        vocabulary.save(directory / name)
    header = {
        "format_version": FORMAT_VERSION,
        "architecture": architecture,
        "vocabularies": {name: of.digest() for name, of in files.vocabularies.items()},
        "consistency": files.consistency(),
    }
    write_json(directory / CONFIG, header | files.config)
    with whole_file(directory / WEIGHTS) as temporary:
        save_file(files.weights, temporary)


def read_model_files(
    directory: Path, architecture: str, keys: Sequence[str], vocabularies: Sequence[str]
) -> ModelFiles:
    """Read what `write_model_files` wrote.

    Args:
        directory: the model directory.
        architecture: the expected architecture.
        keys: keys of the config that must be objects or numbers.
        vocabularies: the file names of the vocabularies.

    Raises:
        MosesFeatureError: a file is missing, or of a newer version of this program.
        FormatError: a file is damaged, or the network has another architecture.
    """
    if not directory.is_dir():
        raise MosesFeatureError(f"{directory}: expected a model directory, found none")
    _check_file(directory, CONFIG)
    config = _read_config(directory / CONFIG)
    if config.get("architecture") != architecture:
        found = f"{config.get('architecture')}"
        raise FormatError(directory / CONFIG, f"architecture {architecture}", found)
    for name in (*vocabularies, WEIGHTS):
        _check_file(directory, name)
    for key in keys:
        if not isinstance(config.get(key), dict):
            found = f"{config.get(key)}"
            raise FormatError(directory / CONFIG, f"{', '.join(keys)}: objects", found)
    read = _read_vocabularies(directory, config, vocabularies)
    consistency = config.pop("consistency", None)
    weights = _read_weights(directory / WEIGHTS)
    files = ModelFiles(config, read, weights, checked=consistency is not None)
    if files.checked and files.consistency() != consistency:
        expected = f"weights for the sizes in {CONFIG} and the vocabularies"
        raise FormatError(directory / WEIGHTS, expected, "those of another model")
    return files


def check_complete(directory: Path) -> None:
    """Check that a model has its files, and the words that it was trained with.

    Raises:
        MosesFeatureError: one is missing.
        FormatError: one is damaged.
    """
    for name in (CONFIG, WEIGHTS):
        _check_file(directory, name)
    config = _read_config(directory / CONFIG)
    names = config.get("vocabularies")
    _read_vocabularies(directory, config, list(names) if isinstance(names, dict) else [])


def _read_vocabularies(
    directory: Path, config: Json, names: Sequence[str]
) -> dict[str, Vocabulary]:
    """Read vocabularies, and check them by their digests, which the config loses."""
    read = {name: load_vocabulary(directory / name) for name in names}
    digests = config.pop("vocabularies", {})
    if not isinstance(digests, dict):
        raise FormatError(directory / CONFIG, "vocabularies: an object", f"{digests}")
    for name, digest in digests.items():
        if name in read and read[name].digest() != digest:
            raise FormatError(
                directory / name, "the words that the network was trained with", "others"
            )
    return read


def file_identity(path: str | Path) -> list[int]:
    """Return size and modification time of a file, or of the files of a model.

    Of one of ours, these are weights and config; another program's model may have any.
    """
    path = Path(path)
    files = [path]
    if is_model_directory(path):
        files = [path / WEIGHTS, path / CONFIG]
    elif path.is_dir():
        files = sorted(file for file in path.iterdir() if file.is_file())
    return [n for file in files for n in (file.stat().st_size, file.stat().st_mtime_ns)]


def is_model_directory(directory: Path) -> bool:
    """Return whether a directory holds one network."""
    return (directory / CONFIG).is_file() and (directory / WEIGHTS).is_file()


def is_ctranslate2(directory: str | Path) -> bool:
    """Return whether a directory is a model of CTranslate2."""
    return (Path(directory) / CTRANSLATE2_WEIGHTS).is_file()


def architecture_of(directory: Path) -> str:
    """Return the architecture that a model directory names.

    Raises:
        MosesFeatureError: it is no model directory, or of a newer version of this program.
    """
    if (directory / FOLDS).is_file():
        raise MosesFeatureError(
            f"{directory}: expected one network, found one for each fold, as version 0.2 trained "
            "them: name one of them, such as fold-1 in it"
        )
    if not directory.is_dir():
        raise MosesFeatureError(f"{directory}: expected a model directory, found none")
    _check_file(directory, CONFIG)
    return str(_read_config(directory / CONFIG).get("architecture"))


def settings_of(kind: type[T], config: Json, name: str, path: Path) -> T:
    """Make an object from a member of a config, such as the sizes of a network.

    Raises:
        FormatError: a value is missing, unknown or invalid.
    """
    try:
        return record(kind, config[name], path, f"{name} of a model")
    except ValueError as error:
        raise FormatError(path, f"{name} of a model", f"{error}") from error


def check_weights(
    path: Path, weights: Mapping[str, NDArray[Any]], shapes: Mapping[str, tuple[int, ...]]
) -> None:
    """Check the shapes of weights.

    Raises:
        FormatError: the shapes differ; the directory's files do not belong together.
    """
    found = {name: array.shape for name, array in weights.items()}
    if found == dict(shapes):
        return
    differing = [n for n in sorted({*found, *shapes}) if found.get(n) != shapes.get(n)]
    raise FormatError(
        path,
        f"weights for the sizes in {CONFIG} and the vocabularies",
        ", ".join(
            f"{name} {found.get(name, 'missing')} for {shapes.get(name, 'none')}"
            for name in differing
        )[:200],
    )


def trained_self_normalised(training: Json) -> bool:
    """Return whether a model's training kept log Z near 0."""
    settings = training.get("settings")
    return isinstance(settings, dict) and bool(settings.get("self_normalisation"))


def _check_file(directory: Path, name: str) -> None:
    if not (directory / name).is_file():
        if (directory / CHECKPOINT).is_file() and not any(
            (directory / of_model).is_file() for of_model in (CONFIG, WEIGHTS)
        ):
            raise MosesFeatureError(
                f"{directory}: no model yet, only the checkpoint of a training: --resume continues"
            )
        raise MosesFeatureError(f"{directory}: not a model directory, {name} is missing")


def _read_config(path: Path) -> Json:
    if is_ctranslate2(path.parent):
        raise FormatError(path.parent, "a network of this program", "a model of CTranslate2")
    if os.path.lexists(path.with_name(MEMORY)):
        raise MosesFeatureError(
            f"{path.with_name(MEMORY)}: expected no memory (version 0.2 could add one); without "
            "this file the network is the one that it was made from"
        )
    config = read_json(path, "a JSON object")
    version = config.get("format_version")
    if type(version) is not int or version < 1:
        raise FormatError(path, "a format_version", f"{version}")
    if version > FORMAT_VERSION:
        raise FormatError(
            path, f"format version {FORMAT_VERSION} or older", f"version {version}: update me"
        )
    return config


def _read_weights(path: Path) -> dict[str, NDArray[np.float32]]:
    try:
        weights = load_file(path)
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise FormatError(path, "the weights of a model", f"a damaged file ({error})") from error
    for name, weight in weights.items():
        if weight.dtype != np.float32:
            raise FormatError(path, "float32 weights", f"{weight.dtype} in {name}")
        if not np.isfinite(weight).all():
            raise FormatError(path, "finite weights", f"nan or inf in {name}")
    return weights
