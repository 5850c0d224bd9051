"""Building tables and a language model, against Moses' own tools where they are at hand.

    MOSES_HOME=/path/to/mosesdecoder python benchmarks/building.py SOURCE TARGET ALIGNMENT

Both sides in one run, wall-clock time. Moses' side is what train-model.perl runs in steps 4 to 7
for a phrase-based model with lexicalised reordering: lexical tables, extract, sort, score,
consolidate. Its output and ours are compared to the byte.
"""

from __future__ import annotations

import argparse
import filecmp
import gzip
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from moses_feature.building.bitext import read_alignment, read_texts
from moses_feature.building.language_model import estimate
from moses_feature.building.settings import BuildSettings
from moses_feature.building.tables import Tables
from moses_feature.moses.programs import find_program

LEXICAL = "get_lexical(@ARGV[0..3],0)"
TYPE = "wbe msd wbe-msd-bidirectional-fe"


def plain(source: Path, target: Path) -> Path:
    """Return a copy of a text that is not compressed."""
    opened = gzip.open if source.suffix == ".gz" else open
    with opened(source, "rb") as packed, target.open("wb") as file:
        shutil.copyfileobj(packed, file)
    return target


def shell(command: str, folder: Path) -> None:
    """Run a command of Moses' training in a folder."""
    subprocess.run(  # noqa: S603  # our own commands
        ["/bin/bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        check=True,
        capture_output=True,
        env={**os.environ, "LC_ALL": "C"},
    )


def by_moses(texts: list[Path], length: int, folder: Path, home: Path) -> None:
    """Run steps 4 to 7."""
    source, target, links = texts
    program = {
        name: find_program([name])
        for name in ("extract", "score", "consolidate", "lexical-reordering-score")
    }
    training = home / "scripts/training"
    shell(
        f"perl -I{training} -MLexicalTranslationModel=get_lexical -e '{LEXICAL}' "
        f"{source} {target} {links} lex",
        folder,
    )
    shell(
        f"{program['extract']} {target} {source} {links} extract {length} orientation "
        "--model wbe-msd --GZOutput --SentenceOffset 0",
        folder,
    )
    for part in ("", ".inv", ".o"):
        shell(f"gzip -cd extract{part}.gz | sort -T . | gzip -c > extract{part}.sorted.gz", folder)
    shell(f"{program['score']} extract.sorted.gz lex.f2e half.f2e.gz", folder)
    shell(f"{program['score']} extract.inv.sorted.gz lex.e2f half.gz --Inverse", folder)
    shell("gzip -cd half.gz | sort -T . | gzip -c > half.e2f.gz", folder)
    shell(
        f"{program['consolidate']} half.f2e.gz half.e2f.gz /dev/stdout | gzip -c > phrases.gz",
        folder,
    )
    shell(
        f"{program['lexical-reordering-score']} extract.o.sorted.gz 0.5 reordering. "
        f"--model '{TYPE}'",
        folder,
    )


def by_us(texts: list[Path], length: int, folder: Path) -> None:
    """Make the same two tables."""
    source, target, links = map(str, texts)
    bitext, _ = read_alignment(links, read_texts(source, target, 1000))
    tables = Tables(bitext, BuildSettings(phrase_length=length))
    with (
        gzip.open(folder / "phrases.gz", "wb", compresslevel=1) as phrases,
        gzip.open(folder / "reordering.gz", "wb", compresslevel=1) as reordering,
    ):
        for part in tables.parts():
            phrases.write(part.phrases)
            reordering.write(part.reordering)


def model_by_us(text: Path, folder: Path) -> None:
    """Make a language model."""
    with text.open("rb") as lines, (folder / "lm.arpa").open("wb") as file:
        file.writelines(estimate((line.split() for line in lines), 5).arpa())


def seconds_of(work: Callable[[], None]) -> float:
    """Return the time that something takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def same(one: Path, other: Path) -> bool:
    """Return whether two compressed files hold the same."""
    folder = Path(tempfile.mkdtemp(dir=one.parent))
    return filecmp.cmp(plain(one, folder / "one"), plain(other, folder / "other"), shallow=False)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("source", "target", "alignment"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--phrase-length", type=int, default=7)
    given = parser.parse_args()
    home = Path(os.environ["MOSES_HOME"]) if "MOSES_HOME" in os.environ else None
    with tempfile.TemporaryDirectory(prefix="building-") as name:
        folder = Path(name)
        (folder / "moses").mkdir()
        inputs = (given.source, given.target, given.alignment)
        texts = [plain(path, folder / f"text{n}") for n, path in enumerate(inputs)]
        by_us(texts, given.phrase_length, folder)  # compiled once
        ours = seconds_of(lambda: by_us(texts, given.phrase_length, folder))
        ours_model = seconds_of(lambda: model_by_us(texts[1], folder))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(f"tables: {ours:.1f} s; language model: {ours_model:.1f} s; {peak:.2f} GB at most")
        if home is None:
            return
        moses = folder / "moses"
        theirs = seconds_of(lambda: by_moses(texts, given.phrase_length, moses, home))
        lmplz = find_program(["lmplz"])
        command = f"{lmplz} -o 5 -S 2G -T . < {texts[1]} > lm.arpa"
        theirs_model = seconds_of(lambda: shell(command, moses))
        print(
            f"Moses: {theirs:.1f} s, {theirs / ours:.1f} times as long; lmplz {theirs_model:.1f} s"
        )
        tables = (
            ("phrases.gz", "phrases.gz"),
            (
                "reordering.gz",
                "reordering.wbe-msd-bidirectional-fe.gz",
            ),
        )
        print(f"the same bytes: {[same(folder / one, moses / other) for one, other in tables]}")


if __name__ == "__main__":
    main()
