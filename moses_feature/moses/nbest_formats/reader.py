"""N-best lists in any known format, as lines of Moses' format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from moses_feature.moses.lines import LineReader
from moses_feature.moses.nbest_formats.json_lines import json_lines
from moses_feature.moses.nbest_formats.marian import marian
from moses_feature.moses.nbest_formats.translation import Format
from moses_feature.runtime.errors import FormatError, UsageError
from moses_feature.runtime.files import Json

MOSES = "moses"
OTHERS: Mapping[str, Format] = {"marian": marian, "json": json_lines}
FORMATS = (MOSES, *OTHERS)


class NbestReader:
    """N-best lists, line by line in Moses' format.

    `line_number` is the line of the file (1-based) of the last translation, `fraction()` the share
    of the file that has been read.

    Args:
        path: the file, text or compressed; `-` is the standard input.
        form: one of `FORMATS`.

    Raises:
        UsageError: there is no such format; lists the names.
        FormatError: while lines are read, a line not of the format, or no translation.
        MosesFeatureError: as for `LineReader`.
    """

    def __init__(self, path: str | Path, form: str = MOSES) -> None:
        if form not in FORMATS:
            raise UsageError(f"unknown format {form!r}: expected one of {', '.join(FORMATS)}")
        self._reader = LineReader(path)
        self._form = form
        self.path = self._reader.path
        self.line_number = 0

    def __enter__(self) -> NbestReader:
        return self

    def __exit__(self, *exception: object) -> None:
        self._reader.__exit__(*exception)

    def __iter__(self) -> Iterator[bytes]:
        if self._form == MOSES:
            for line in self._reader:
                self.line_number = self._reader.line_number
                yield line
            return
        for translation in OTHERS[self._form](self._reader):
            self.line_number = translation.line_number
            yield translation.as_moses_line(self.path)
        if not self.line_number:
            raise FormatError(self.path, f"translations in the format of {self._form}", "none")

    def provenance(self, role: str) -> Json:
        """Return the provenance of the file, once it has been read; see `LineReader.provenance`."""
        return self._reader.provenance(role)

    def fraction(self) -> float | None:
        """Return the share of the file read so far, 0 to 1, or None for a stream."""
        return self._reader.fraction()
