"""Moses' feature, score and init files, as `mert`, `extractor` and `kbmira` read and write them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from mert.optimisers.candidates import Candidates
from moses_feature.metrics.bleu import STATISTICS
from moses_feature.moses.features import FeatureSet
from moses_feature.moses.lines import LineReader
from moses_feature.runtime.arrays import Floats
from moses_feature.runtime.errors import FormatError, shown
from moses_feature.runtime.files import open_output, write_whole

MOST_WORDS = 1e15
"""An upper bound of counts of words or matches."""


@dataclass(frozen=True)
class _Block:
    """The lines of one sentence: its number, the rest of its header, and rows of numbers."""

    sentence: int
    header: list[bytes]
    rows: Floats


def read_candidates(features: str | Path, scores: str | Path) -> Candidates:
    """Read a feature file and its score file, text or compressed.

    Blocks of the same sentence, as written by several iterations, are merged.

    Raises:
        FormatError: a line not in Moses' format, or files that do not belong together.
    """
    feature_blocks = list(_blocks(features, b"FEATURES_TXT", width=None))
    score_blocks = list(_blocks(scores, b"SCORES_TXT", width=STATISTICS))
    if not feature_blocks:
        raise FormatError(features, "FEATURES_TXT_BEGIN_0 blocks", "none")
    if len(feature_blocks) != len(score_blocks):
        expected = f"{len(feature_blocks)} sentences as in {features}"
        raise FormatError(scores, expected, f"{len(score_blocks)}")
    width = feature_blocks[0].rows.shape[1]
    names = tuple(name.decode(errors="backslashreplace") for name in feature_blocks[0].header)
    if len(names) != width:
        raise FormatError(
            features, f"{width} names of features, as the block says", f"{len(names)}"
        )
    pairs: dict[int, list[tuple[Floats, Floats]]] = {}
    for feature_block, score_block in zip(feature_blocks, score_blocks, strict=True):
        number = feature_block.sentence
        if score_block.sentence != number:
            raise FormatError(scores, f"sentence {number}", f"sentence {score_block.sentence}")
        if len(score_block.rows) != len(feature_block.rows):
            expected = f"{len(feature_block.rows)} hypotheses of sentence {number}"
            raise FormatError(scores, expected, f"{len(score_block.rows)}")
        if feature_block.rows.shape[1] != width:
            expected = f"{width} features of sentence {number}, as in the first block"
            raise FormatError(features, expected, f"{feature_block.rows.shape[1]}")
        if len(feature_block.rows):
            pairs.setdefault(number, []).append((feature_block.rows, score_block.rows))
    if not pairs:
        raise FormatError(features, "hypotheses", "empty blocks alone")
    ordered = [block for number in sorted(pairs) for block in pairs[number]]
    sizes = [sum(len(rows) for rows, _ in pairs[number]) for number in sorted(pairs)]
    return Candidates(
        np.concatenate([rows for rows, _ in ordered]),
        np.concatenate([rows for _, rows in ordered]).astype(np.int64),
        np.concatenate([[0], np.cumsum(sizes)]),
        names,
    )


def write_weights(path: Path, features: FeatureSet, comments: Iterable[str] = ()) -> None:
    """Write weights as lines like `LM0= 0.1`, six significant digits, behind comments.

    They are those of the values in n-best lists, the tuneable ones.
    """
    lines = [f"# {comment}\n" for comment in comments]
    lines += [
        f"{name}= {' '.join(f'{weight:.6g}' for weight in weights)}\n"
        for name, weights in features.tuneable_by_name().items()
    ]
    write_whole(path, "".join(lines).encode())


def write_candidates(
    features: Path, scores: Path, candidates: Candidates, label: str = "BLEU"
) -> None:
    """Write a feature file and its score file, compressed by gzip.

    Values have six significant digits, as those of Moses' extractor. The label is the metric's name
    in the score file; Moses knows BLEU, WER and TER.
    """
    offsets = candidates.offsets.tolist()
    names = " ".join(candidates.names).encode()
    width = len(candidates.names)
    row = " ".join(["%.6g"] * width).encode() + b"\n"
    width_of_scores = candidates.statistics.shape[1]
    counts = " ".join(["%d"] * width_of_scores).encode() + b"\n"
    for path, kind, template, values, header in (
        (features, b"FEATURES", row, candidates.features, b"%d %b" % (width, names)),
        (
            scores,
            b"SCORES",
            counts,
            candidates.statistics,
            b"%d %b" % (width_of_scores, label.encode()),
        ),
    ):
        with open_output(path, 1) as file:
            for sentence, (first, last) in enumerate(pairwise(offsets)):
                file.write(b"%b_TXT_BEGIN_0 %d %d %b\n" % (kind, sentence, last - first, header))
                file.write(b"".join(template % tuple(v) for v in values[first:last].tolist()))
                file.write(b"%b_TXT_END_0\n" % kind)


def _blocks(path: str | Path, kind: bytes, width: int | None) -> Iterator[_Block]:
    begin, end = kind + b"_BEGIN_0", kind + b"_END_0"
    with LineReader(path) as reader:
        header: list[bytes] | None = None
        lines: list[bytes] = []
        for line in reader:
            if line.startswith(begin):
                header = line.split()
                lines = []
                if header[0] != begin or len(header) < 4 or not _all_digits(header[1:4]):
                    raise FormatError(
                        path,
                        f"{begin.decode()} SENTENCE COUNT WIDTH …",
                        shown(line),
                        reader.line_number,
                    )
            elif line.startswith(end):
                if header is None:
                    raise FormatError(path, begin.decode(), shown(line), reader.line_number)
                rows = _rows(lines, header, width, path, reader.line_number - len(lines))
                yield _Block(int(header[1]), header[4:], rows)
                header = None
            elif header is None:
                raise FormatError(path, begin.decode(), shown(line), reader.line_number)
            else:
                lines.append(line)
        if header is not None:
            raise FormatError(path, end.decode(), "the end of the file", reader.line_number)


def _all_digits(words: list[bytes]) -> bool:
    return all(word.isdigit() and len(word) < 10 for word in words)


def _rows(
    lines: list[bytes], header: list[bytes], width: int | None, path: str | Path, first: int
) -> Floats:
    count, columns = int(header[2]), int(header[3])
    if len(lines) != count:
        raise FormatError(path, f"{count} lines as the block says", f"{len(lines)}", first - 1)
    if width is not None and columns != width:
        raise FormatError(path, f"{width} statistics of BLEU", f"{columns}", first - 1)
    try:
        rows = np.array(b" ".join(lines).split(), dtype=np.float64).reshape(count, columns)
    except ValueError:
        rows = np.full((0, columns), np.nan)
    good = np.isfinite(rows) if width is None else (rows >= 0) & (rows < MOST_WORDS)
    if len(rows) == count and good.all():
        return rows
    for number, line in enumerate(lines, first):
        try:
            values = np.array(line.split(), dtype=np.float64)
        except ValueError:
            values = np.array([np.nan])
        good = np.isfinite(values) if width is None else (values >= 0) & (values < MOST_WORDS)
        if len(values) != columns or not good.all():
            kind = "finite numbers" if width is None else "counts"
            raise FormatError(path, f"{columns} {kind}", shown(line), number)
    raise FormatError(path, f"{columns} numbers a line", "others", first)


def read_init(path: str | Path, size: int) -> tuple[Floats, Floats, Floats]:
    """Read an `init.opt`: start weights, and the least and greatest weights of restarts.

    Raises:
        FormatError: not three lines of `size` numbers.
    """
    rows = []
    with LineReader(path) as reader:
        for line in reader:
            if line.strip():
                try:
                    rows.append(np.array(line.split(), dtype=np.float64))
                except ValueError:
                    raise FormatError(path, "numbers", shown(line), reader.line_number) from None
                if len(rows[-1]) != size:
                    expected = f"{size} numbers, one for each feature"
                    raise FormatError(path, expected, f"{len(rows[-1])}", reader.line_number)
    if len(rows) != 3:
        raise FormatError(path, "three lines: start, least, greatest", f"{len(rows)} lines")
    return rows[0], rows[1], rows[2]
