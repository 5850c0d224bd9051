"""A disk cache of table rows, for later runs on the same sentences.

The name of a cache file is a hash of everything that its content depends on: the content of the
table, the sentences, the request, and the tables read before it, since they number target phrases.
A file that is damaged, or from another version of this program, is ignored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from moses_feature import __version__
from moses_feature.decoder.source_phrases import Sentence, SourcePhrases
from moses_feature.decoder.tables import Rows, TargetPhrases
from moses_feature.runtime.errors import OutputError
from moses_feature.runtime.files import whole_file
from moses_feature.runtime.strings import Strings

BLOCK = 1 << 20
FORMAT = 3


class TableCache:
    """Keeps rows of tables in a directory.

    Args:
        directory: created when something is written; None for no cache.
        sentences: the sentences to translate.
        longest: the longest source phrase in words.
    """

    def __init__(self, directory: str | None, sentences: Sequence[Sentence], longest: int) -> None:
        self._directory = directory
        self._key = hashlib.sha256(f"{FORMAT} {__version__} {longest}\n".encode())
        if directory is not None:
            for sentence in sentences:
                self._key.update(b" ".join(sentence) + b"\n")

    def rows(
        self,
        path: str,
        asked: str,
        sources: SourcePhrases,
        targets: TargetPhrases,
        read: Callable[[], Rows],
    ) -> Rows:
        """Return rows of a table, from the cache or from the table.

        Args:
            path: the table.
            asked: the request, part of the cache key.
            sources: the source phrases; on a hit it numbers the lengths that the table had.
            targets: the target phrases; on a hit it gets the phrases and numbers of the cache.
            read: reads the table.
        """
        if self._directory is None:
            return read()
        self._key.update(f"\n{asked}\n".encode())
        with Path(path).open("rb") as file:
            while block := file.read(BLOCK):
                self._key.update(block)
        kept = Path(self._directory) / f"{self._key.hexdigest()[:32]}.safetensors"
        rows = _kept(kept, sources, targets)
        if rows is None:
            rows = read()
            with suppress(OSError, OutputError):  # without a cache (a full disk) the run goes on
                kept.parent.mkdir(parents=True, exist_ok=True)
                _keep(kept, rows, sources, targets)
        return rows


def _keep(path: Path, rows: Rows, sources: SourcePhrases, targets: TargetPhrases) -> None:
    links = rows.links.tolist()
    arrays = {
        "source": rows.source,
        "target": rows.target,
        "scores": rows.scores,
        "links": np.frombuffer(b"".join(links), dtype=np.uint8),
        "link_ends": np.cumsum([0, *map(len, links)]),
        "gathered": np.array([sources.gathered]),
    }
    for name, array in targets.phrases._asdict().items():
        arrays[f"phrases_{name}"] = array
    with whole_file(path) as temporary:
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, temporary)


def _kept(path: Path, sources: SourcePhrases, targets: TargetPhrases) -> Rows | None:
    """Return the rows in a cache file; None if there is no usable one."""
    try:
        arrays = load_file(path)
    except (OSError, SafetensorError):
        return None
    texts = arrays["links"].tobytes()
    links = [texts[begin:end] for begin, end in pairwise(arrays["link_ends"].tolist())]
    targets.phrases = Strings(*(arrays[f"phrases_{name}"] for name in Strings._fields))
    sources.gather(int(arrays["gathered"][0]))
    as_objects = np.empty(len(links), dtype=object)
    as_objects[:] = links
    return Rows(arrays["source"], arrays["target"], arrays["scores"], as_objects)
