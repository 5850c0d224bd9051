"""What each part brings on small corpora: one table of BLEU, chrF, p-values and minutes.

    python benchmarks/small_corpora.py FOLDER WORK --variants base osm network
    python benchmarks/small_corpora.py FOLDER WORK --final --variants base column

FOLDER has a folder for each corpus, such as `tar-es`, with raw texts `train`, `dev`, `test` and
`other`, each with the two languages as endings. Decisions are made without `--final`: then 1,000
pairs of the training text are held out, and everything is judged on them. With `--final` systems
are trained on the whole text, and `test` and `other` are opened.

What is done is kept in WORK, and not done again: a run that was killed continues. A variant is a
line in `VARIANTS`.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mert.comparison.significance import compared, mean_quality
from mert.tuning.state import read_run
from moses_feature.building.preparation import Preparer, preparation_of
from moses_feature.metrics.bleu import BLEU
from moses_feature.metrics.chrf import CHRF
from moses_feature.metrics.metric import Metric
from moses_feature.moses.ini import SYSTEM, MosesIni
from moses_feature.runtime.json_files import read_json

BOTH = "train-and-dev"
"""The raw text of both."""
JUDGED = 1_000
"""Pairs of the training text that are held out for decisions."""
SEEDS = (1, 2, 3)
POP_LIMIT = 200
"""Of the search; below the usual 1000 for speed."""
COMMANDS = {
    "augment-phrase-table": "moses_feature.cli.tables.augment:augment_phrase_table",
    "mert-compare": "moses_feature.cli.tuning.compare:mert_compare",
}


@dataclass(frozen=True)
class Corpus:
    """A corpus, and the folder of all that is made of it.

    Attributes:
        name: such as `tar-es`.
        folder: the raw texts.
        work: of this corpus.
        final: whether `test` and `other` are opened.
        minutes: of a network.
    """

    name: str
    folder: Path
    work: Path
    final: bool
    minutes: float

    @property
    def sides(self) -> tuple[str, str]:
        """The endings of the source and the target texts."""
        source, target = self.name.split("-")
        return source, target

    @property
    def judges(self) -> tuple[str, ...]:
        """The texts to judge on."""
        return ("test", "other") if self.final else ("held-out",)

    def raw(self, name: str, side: str) -> Path:
        """Return a raw text."""
        made = (BOTH,) if self.final else (BOTH, "train", "held-out")
        folder = self.work if name in made else self.folder
        return folder / f"{name}.{side}"

    def text(self, name: str, side: str) -> str:
        """Return a text as the systems have it."""
        return str(self.work / f"{name}.prepared.{side}")

    def path(self, name: str) -> str:
        """Return a file or directory of the work."""
        return str(self.work / name)

    def copied(self, name: str) -> Path:
        """Return a source text whose unknown words are copied as they are."""
        return self.work / f"{name}.copied.{self.sides[0]}"

    def prepare(self) -> None:
        """Hold a part of the training text out, build the baseline, and prepare the texts."""
        self.work.mkdir(parents=True, exist_ok=True)
        if not self.final and not self.raw("held-out", self.sides[0]).exists():
            self._hold_out()
        build(self, "system")
        for name in ("dev", *self.judges):
            for side, of in zip(("source", "target"), self.sides, strict=True):
                if not Path(self.text(name, of)).exists():
                    words = ("text", "prepare", self.path("system"), "--side", side)
                    prepared = run(*words, given=self.raw(name, of).read_bytes())
                    Path(self.text(name, of)).write_bytes(prepared)

    def _hold_out(self) -> None:
        sides = [(self.folder / f"train.{of}").read_text().splitlines() for of in self.sides]
        order = list(range(len(sides[0])))
        random.Random(1).shuffle(order)  # noqa: S311
        parts = {"held-out": sorted(order[:JUDGED]), "train": sorted(order[JUDGED:])}
        for name, rows in parts.items():
            for of, lines in zip(self.sides, sides, strict=True):
                text = "".join(f"{lines[row]}\n" for row in rows)
                (self.work / f"{name}.{of}").write_text(text)


def run(command: str, *words: object, given: bytes | None = None) -> bytes:
    """Run a command of the product, and return its output."""
    module, _, name = COMMANDS.get(command, "moses_feature.cli.main:moses_feature").partition(":")
    program = f"import {module} as m; m.{name}()"
    rest = list(words) if command in COMMANDS else [command, *words]
    began = time.monotonic()
    print(f"+ {command} {' '.join(map(str, words))}", file=sys.stderr, flush=True)
    done = subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "-c", program, *map(str, rest)], input=given, stdout=-1, check=True
    )
    print(f"  {(time.monotonic() - began) / 60:.1f} minutes", file=sys.stderr, flush=True)
    return done.stdout


def build(corpus: Corpus, system: str, *options: object, text: str = "train") -> str:
    """Build a system of a text; return its ini."""
    texts = (corpus.raw(text, side) for side in corpus.sides)
    directory, (source, target) = corpus.path(system), corpus.sides
    if not (Path(directory) / "system.json").exists():
        rules = "--raw", "--source-language", source, "--target-language", target
        run("system", "build", *texts, directory, *rules, *options)
    return f"{directory}/moses.ini"


def column(corpus: Corpus) -> str:
    """Augment the table by a refined column."""
    ini, table = corpus.path("column.ini"), corpus.path("system/phrase-table.gz")
    if not Path(ini).exists():
        words = "--system", corpus.path("system"), "--ini-out", ini, "--minutes", corpus.minutes
        resume = ["--resume"] if Path(corpus.path("column.work")).exists() else []
        run("augment-phrase-table", table, corpus.path("column.gz"), *words, *resume)
    return ini


def more_text(corpus: Corpus) -> str:
    """Build with the target texts of the other corpora in the language model."""
    folders = sorted(of for of in corpus.folder.parent.iterdir() if of.is_dir())
    texts = [of / f"train.{corpus.sides[1]}" for of in folders if of != corpus.folder]
    return build(corpus, "more-text", *(word for text in texts for word in ("--lm-text", text)))


def with_dev(corpus: Corpus, judge: str) -> list[Path]:
    """Return what systems of the training text and dev translate, with the baseline's weights."""
    for of in corpus.sides:
        parts = [corpus.raw(name, of).read_text() for name in ("train", "dev")]
        corpus.raw(BOTH, of).write_text("".join(parts))
    whole = MosesIni.read(build(corpus, "with-dev", text=BOTH))
    directory = whole.path.parent
    outputs = [directory / f"{judge}.seed-{seed}.out" for seed in SEEDS]
    for seed, output in zip(SEEDS, outputs, strict=True):
        if not output.exists():
            tuned_ini = MosesIni.read(corpus.path(f"mira/base/seed-{seed}/moses.ini"))
            ini = directory / f"seed-{seed}.ini"
            whole.with_weights(tuned_ini.weights_by_name(), []).write(ini)
            translate(corpus, judge, directory, ini, output)
    return outputs


def best(corpus: Corpus, judge: str) -> list[Path]:
    """Return what the system translates that one command makes of the time."""
    source, target = (corpus.raw("dev", of) for of in corpus.sides)
    dev = "--dev", source, "--dev-reference", target
    system = Path(build(corpus, "best", "--minutes", corpus.minutes, *dev)).parent
    output = system / f"{judge}.out"
    if not output.exists():
        translate(corpus, judge, system, system, output)
    return [output]


def translate(corpus: Corpus, judge: str, prepares: Path, system: Path, output: Path) -> None:
    """Prepare a raw text like the text of a system, and translate it."""
    text = corpus.raw(judge, corpus.sides[0]).read_bytes()
    prepared = run("text", "prepare", prepares, given=text)
    words = "translate", system, "--tokens", "--pop-limit", POP_LIMIT
    output.write_bytes(run(*words, given=prepared))


def network(corpus: Corpus) -> str:
    """Train a Transformer; return the model."""
    model = Path(corpus.path("network"))
    if not (model.parent / "network.done").exists():
        texts = (corpus.path(f"system/text.{side}.gz") for side in ("source", "target"))
        resume = ["--resume"] if model.exists() else []
        words = "--architecture", "transformer", "--subwords", 1000, "--minutes", corpus.minutes
        run("model", "train-sentences", *texts, model, *words, *resume)
        (model.parent / "network.done").touch()
    return str(model)


def base(corpus: Corpus) -> str:
    """The baseline."""
    return corpus.path("system/moses.ini")


def copied(corpus: Corpus) -> str:
    """The baseline, for texts whose unknown words are not spelt like known ones."""
    directory = Path(corpus.path("system"))
    known = preparation_of(read_json(directory / SYSTEM, "a system"), "source", directory)
    preparer = Preparer(replace(known, known=None))
    for name in ("dev", *corpus.judges):
        lines = corpus.raw(name, corpus.sides[0]).read_text().splitlines()
        corpus.copied(name).write_text("".join(f"{preparer(line)}\n" for line in lines))
    return base(corpus)


@dataclass(frozen=True)
class Variant:
    """A system to try.

    Attributes:
        make: makes what is missing; returns the ini.
        algorithm: the optimiser of its weights.
        copies: whether its source texts have unknown words as they are.
    """

    make: Callable[[Corpus], str]
    algorithm: str = "mira"
    copies: bool = False

    @property
    def work(self) -> str:
        """The work directory, which it shares with others of the same texts and optimiser."""
        return f"{self.algorithm}{'.copied' if self.copies else ''}"


OF_RAW_TEXT = {"with-dev": with_dev, "best": best}
"""Systems that prepare the texts to judge themselves, with their own words."""
VARIANTS = {
    "base": Variant(base),
    "copied": Variant(copied, copies=True),
    "mert": Variant(base, "mert"),
    "eflomal": Variant(lambda of: build(of, "eflomal", "--aligner", "eflomal")),
    "osm": Variant(lambda of: build(of, "osm", "--osm")),
    "more-text": Variant(more_text),
    "column": Variant(column),
    "network": Variant(base),
}


def tuned(corpus: Corpus, name: str, judge: str) -> list[Path]:
    """Tune a variant beside the baseline; return its translations, one file for each run."""
    if name in OF_RAW_TEXT:
        return OF_RAW_TEXT[name](corpus, judge)
    variant = VARIANTS[name]
    work = Path(corpus.path(variant.work))
    first, runs = corpus.judges[0], [work / name / f"seed-{seed}" for seed in SEEDS]

    def source(of: str) -> str | Path:
        return corpus.copied(of) if variant.copies else corpus.text(of, corpus.sides[0])

    if not all((path / "test.out").exists() for path in runs):
        systems = [f"{name}={variant.make(corpus)}"]
        if name != "base" and variant.work == VARIANTS["base"].work:
            systems.insert(0, f"base={base(corpus)}")
        texts = [
            *("--dev", source("dev")),
            *("--dev-reference", corpus.text("dev", corpus.sides[1])),
            *("--test", source(first)),
            *("--test-reference", corpus.text(first, corpus.sides[1])),
        ]
        how = ["--seeds", len(SEEDS), "--algorithm", variant.algorithm, "--pop-limit", POP_LIMIT]
        if name == "network":
            path = network(corpus)
            how += ["--rescore", f"{name}:T={path}", "--rescore", f"{name}:A=mbr:{path}"]
        run("mert-compare", *systems, *texts, "--work-dir", work, *how)
    if judge == first:
        return [path / "test.out" for path in runs]
    for path in runs:
        if not (path / f"{judge}.out").exists():
            words = "translate", path, "--tokens", "--pop-limit", POP_LIMIT
            found = run(*words, given=Path(source(judge)).read_bytes())
            (path / f"{judge}.out").write_bytes(found)
    return [path / f"{judge}.out" for path in runs]


def statistics(paths: list[Path], reference: Path, metric: Metric) -> np.ndarray:
    """Return the statistics (runs, sentences, width) of translations."""
    of_lines = [metric.references([line.split()]) for line in _lines(reference)]
    return np.stack(
        [
            np.concatenate(
                [of.statistics([line.split()]) for of, line in zip(of_lines, lines, strict=True)]
            )
            for lines in map(_lines, paths)
        ]
    )


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def row(corpus: Corpus, name: str, judge: str) -> str:
    """Return a row of the table."""
    reference = Path(corpus.text(judge, corpus.sides[1]))
    cells = []
    both = tuned(corpus, "base", judge), tuned(corpus, name, judge)
    for metric in (BLEU, CHRF):
        baseline, found = (statistics(paths, reference, metric) for paths in both)
        qualities = [100 * metric.quality(of.sum(axis=0)) for of in found]
        spread = f" ± {np.std(qualities, ddof=1):.2f}" if len(found) > 1 else ""
        cells.append(f"{np.mean(qualities):.2f}{spread}")
        gain = 100 * (mean_quality(found, metric) - mean_quality(baseline, metric))
        if name != "base":
            cells.append(f"{gain:+.2f} (p {compared(found, baseline, metric).p:.3f})")
        else:
            cells.append("")
    runs = both[0] if name in OF_RAW_TEXT else both[1]
    dev = 100 * np.mean([read_run(path.parent).best.quality for path in runs])
    return f"| {corpus.name} | {judge} | {name} | {dev:.2f} | {' | '.join(cells)} |"


def main() -> None:
    """Make what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--corpora", nargs="*")
    variants = [*VARIANTS, *OF_RAW_TEXT]
    parser.add_argument("--variants", nargs="*", choices=variants, default=variants)
    parser.add_argument("--minutes", type=float, default=20.0, help="of a network, and of `best`")
    parser.add_argument("--final", action="store_true")
    given = parser.parse_args()
    names = given.corpora or sorted(of.name for of in given.folder.iterdir() if of.is_dir())
    print("| corpus | text | variant | dev BLEU | BLEU | gain | chrF | gain |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name in names:
        work = given.work / ("final" if given.final else "decide") / name
        corpus = Corpus(name, given.folder / name, work, given.final, given.minutes)
        corpus.prepare()
        for judge in corpus.judges:
            for variant in given.variants:
                print(row(corpus, variant, judge), flush=True)


if __name__ == "__main__":
    main()
