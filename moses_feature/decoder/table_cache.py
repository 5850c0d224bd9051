"""What was read of tables, kept on disk for the next one who reads them for the same sentences.

A file is known by what its content follows from: the table's own content, the sentences, what was
asked of the table, and the tables before it, whose target phrases have numbers. A file that is not
whole, or of another version of this program, counts for nothing.
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
FORMAT = 2


class TableCache:
    """Keeps rows of tables in a directory.

    Args:
        directory: made when something is kept; None to keep nothing.
        sentences: for which the tables are read, one after the other.
        longest: words of a source phrase, at most.
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
        """Return rows of a table, as they were kept, or as they are read.

        Args:
            path: of the table.
            asked: what is wanted of it.
            sources: what is wanted; gathers what the table gathered.
            targets: get the numbers that they got.
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
            with suppress(OSError, OutputError):  # a full disk is no reason to end
                kept.parent.mkdir(parents=True, exist_ok=True)
                _keep(kept, rows, sources, targets)
        return rows


def _keep(path: Path, rows: Rows, sources: SourcePhrases, targets: TargetPhrases) -> None:
    links = rows.links.tolist()
    arrays = {
        "source": rows.source,
        "target": rows.target,
        "scores": rows.scores,
        "counts": rows.counts,
        "links": np.frombuffer(b"".join(links), dtype=np.uint8),
        "link_ends": np.cumsum([0, *map(len, links)]),
        "gathered": np.array([sources.gathered]),
    }
    for name, array in targets.phrases._asdict().items():
        arrays[f"phrases_{name}"] = array
    with whole_file(path) as temporary:
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, temporary)


def _kept(path: Path, sources: SourcePhrases, targets: TargetPhrases) -> Rows | None:
    """Return what was kept; None if there is nothing, or nothing of use."""
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
    plain = arrays["source"], arrays["target"], arrays["scores"]
    return Rows(*plain, as_objects, arrays["counts"])
