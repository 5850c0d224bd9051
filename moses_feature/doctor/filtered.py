"""Whether a filtered table was filtered for the text at hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moses_feature.doctor.finding import Finding
from moses_feature.doctor.table_scan import TableScan
from moses_feature.doctor.texts import Sentence


def check_filtered(scan: TableScan, sentences: Sequence[Sentence]) -> Iterator[Finding]:
    """Yield whether a table in a folder of filtered ones was filtered for another text."""
    if "filtered" not in scan.path.absolute().parent.name or not scan.sources:
        return
    longest = max(source.count(b" ") + 1 for source in scan.sources)
    phrases = {
        b" ".join(sentence[first : first + length])
        for sentence in sentences
        for first in range(len(sentence))
        for length in range(1, min(longest, len(sentence) - first) + 1)
    }
    others = sum(source not in phrases for source in scan.sources)
    if others:
        yield Finding(
            "warning",
            str(scan.path),
            f"{others:,} of its {len(scan.sources):,} source phrases are not in the input",
            "it was filtered for another text, or nothing was filtered: phrases may be missing, or "
            "memory and minutes are lost (mert-moses.pl reuses a folder that is there)",
            "remove the folder, and filter again for this input",
        )
