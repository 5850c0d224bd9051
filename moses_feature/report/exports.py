"""Maps as files for other tools."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from pathlib import Path

from moses_feature.files import whole_file, write_whole
from moses_feature.report.maps import Map

logger = logging.getLogger(__name__)


def write_exports(directory: Path, kind: str, points: Map) -> list[Path]:
    """Write a map for other tools.

    `KIND.coordinates.tsv` has a line of names and then name, x and y; `KIND.vectors.tsv` and
    `KIND.metadata.tsv` are what TensorBoard's projector loads; `KIND.parquet`, if pyarrow is
    there, has name, x, y, cluster and vector, as embedding-atlas loads it.

    Returns:
        what was written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    names = [name.replace("\t", " ") for name in points.names]
    places = [
        f"{name}\t{x:.4f}\t{y:.4f}\n" for name, (x, y) in zip(names, points.places, strict=True)
    ]
    vectors = ["\t".join(f"{value:.6g}" for value in row) + "\n" for row in points.vectors]
    files = {
        "coordinates": ["name\tx\ty\n", *places],
        "vectors": vectors,
        "metadata": [f"{name}\n" for name in names],
    }
    written = []
    for name, lines in files.items():
        written.append(directory / f"{kind}.{name}.tsv")
        write_whole(written[-1], "".join(lines).encode(errors="replace"))
    if find_spec("pyarrow") is None:
        logger.info("no %s.parquet: pip install pyarrow makes it", kind)
    else:
        written.append(directory / f"{kind}.parquet")
        _write_parquet(written[-1], points)
    return written


def _write_parquet(path: Path, points: Map) -> None:
    import pyarrow  # type: ignore[import-untyped]
    from pyarrow import parquet

    columns = {
        "name": [name.encode(errors="replace").decode() for name in points.names],
        "x": points.places[:, 0],
        "y": points.places[:, 1],
        "cluster": points.clusters,
        "vector": list(points.vectors),
    }
    with whole_file(path) as temporary:
        parquet.write_table(pyarrow.table(columns), temporary)
