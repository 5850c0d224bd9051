"""Ctrl-C and SIGTERM at random moments of decoding, tuning, optimising, building and training.

    python tests/fuzz/interrupts.py [--interrupts N] [--seed N]

An interrupted command ends with exit code 130 or 143 and without a traceback; the same command
again ends with the bytes of one that was never interrupted.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

TESTS = Path(__file__).parents[1]
DECODE, TUNE, OPTIMISE = (
    f"from moses_feature.cli.common.start import {name}; {name}()"
    for name in ("decode", "tune", "optimize")
)
AUGMENT, MAIN = (
    f"from moses_feature.cli.common.start import {name}; {name}()" for name in ("augment", "main")
)
SIZES = "hidden=8 embedding=8 maxout=8"
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


class Command:
    """A command in a folder, that may be interrupted.

    Args:
        folder: where it runs.
        program: Python code.
        arguments: of the command.
        stdin: a file; None for nothing.
        output: what is the same whenever it has ended.
        begun: a file that is there if a run is to go on with --resume; None if it goes on as it is.
    """

    def __init__(
        self,
        folder: Path,
        program: str,
        arguments: list[str],
        stdin: str | None,
        output: list[str],
        begun: str | None = None,
    ) -> None:
        self._begun = None if begun is None else folder / begun
        self._folder = folder
        self._command = [sys.executable, "-c", program, *arguments]
        self._stdin = stdin
        self._output = output

    def run(self, after: float | None = None, number: int = 0) -> int:
        """Run it; send a signal after so many seconds. Return the exit code.

        Raises:
            AssertionError: it ends otherwise than it should.
        """
        stdin = subprocess.DEVNULL if self._stdin is None else (self._folder / self._stdin).open()
        with (self._folder / "stdout").open("wb") as stdout:
            resume = ["--resume"] if self._begun is not None and self._begun.exists() else []
            process = subprocess.Popen(
                [*self._command, *resume],
                cwd=self._folder,
                stdin=stdin,
                stdout=stdout,
                stderr=subprocess.PIPE,
                preexec_fn=_listen_to_ctrl_c,
            )
        if after is not None:
            time.sleep(after)
            process.send_signal(number)
        errors = process.communicate(timeout=600)[1].decode()
        # The system's own way to end a process is good before it has begun and after its end.
        allowed = {0} if after is None else {0, CODES[signal.Signals(number)], -number}
        if "nothing to resume" not in errors:
            assert process.returncode in allowed, (process.returncode, errors)
        assert "Traceback" not in errors, errors
        assert "Exception ignored" not in errors, errors
        return process.returncode

    def result(self) -> list[bytes]:
        """Return what it has written."""
        return [(self._folder / name).read_bytes() for name in self._output]


def _listen_to_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def interrupt(make: Callable[[], Command], interrupts: int, random_: random.Random) -> Counter[int]:
    """Interrupt a command again and again, and compare what comes of it with a run in peace.

    Args:
        make: makes the command anew.
        interrupts: how many.
        random_: says when.

    Returns:
        the exit codes.
    """
    peaceful = make()
    began = time.monotonic()
    peaceful.run()
    seconds = time.monotonic() - began
    expected = peaceful.result()
    codes: Counter[int] = Counter()
    command = make()
    for _ in range(interrupts):
        number = random_.choice(list(CODES))
        code = command.run(random_.uniform(0.2, seconds), number)
        codes[code] += 1
        if code == 0 or random_.random() < 0.2:  # go on, or see what became of it
            command.run()
            assert command.result() == expected
            command = make()
    command.run()
    assert command.result() == expected
    return codes


def main() -> None:
    """Interrupt all commands."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--interrupts", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    random_ = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as scratch:
        for name, make in commands(Path(scratch)).items():
            print(name, dict(interrupt(make, arguments.interrupts, random_)), flush=True)


def commands(folder: Path) -> dict[str, Callable[[], Command]]:
    """Return what makes each command, on a toy system."""
    sys.path.insert(0, str(TESTS))
    import numpy as np
    from helpers.candidates import random_candidates
    from helpers.toy import make_toy

    from mert.optimisers.moses_files import write_candidates

    make_toy(folder / "toy", neural=1, options=4)
    generator = np.random.default_rng(1)
    lines = [" ".join(generator.choice(list("abcd"), 9)) for _ in range(300)]
    (folder / "in").write_text("\n".join(lines) + "\n")
    (folder / "reference").write_text("\n".join(line.upper() for line in lines) + "\n")
    write_candidates(
        folder / "f.gz", folder / "s.gz", random_candidates(sentences=2000, features=9)
    )
    ini = str(folder / "toy" / "moses.ini")

    def decode() -> Command:
        return Command(folder, DECODE, [ini, "--pop-limit", "500"], "in", ["stdout"])

    def tune(*more: str) -> Command:
        work = "run"  # the ini names the command, so that it must be the same
        shutil.rmtree(folder / work, ignore_errors=True)
        texts = ["--dev", "in", "--dev-reference", "reference", "--work-dir", work]
        options = ["--max-iterations", "3", "--nbest-size", "20", *more]
        return Command(folder, TUNE, [ini, *texts, *options], None, [f"{work}/moses.ini"])

    def optimise() -> Command:
        options = ["--output", "weights", "--restarts", "10"]
        return Command(folder, OPTIMISE, ["f.gz", "s.gz", *options], None, ["weights"])

    return {
        **building_commands(folder, len(lines)),
        "decode": decode,
        "tune": tune,
        "tune in two processes": lambda: tune("--jobs", "2"),
        "optimise": optimise,
    }


def building_commands(folder: Path, lines: int) -> dict[str, Callable[[], Command]]:
    """Return what makes each command that builds or trains, of texts of so many lines."""
    links = " ".join(f"{n}-{n}" for n in range(9))
    (folder / "links").write_text(f"{links}\n" * lines)
    built = ["--alignment", "links", "--order", "2"]
    Command(folder, MAIN, ["system", "build", "in", "reference", "s", *built], None, []).run()
    table, texts = "s/phrase-table.gz", ["in", "reference"]
    budget = ["--updates", "60"]
    short = ["--batch-size", "16", "--evaluate-every", "20", *budget]
    of_phrases = ["--sizes", f"{SIZES} rank=8"]
    phrases = [*of_phrases, *short]
    small = ["--subwords", "0", *short]
    transformer = ["--architecture", "transformer", "--sizes", "units=8 heads=2 inner=16"]
    layers = ["--sizes", "projection=8 first=8 second=8 order=3"]
    ngrams = [*layers, *budget, "--evaluate-every", "20"]

    def trained(kind: str, *words: str) -> Callable[[], Command]:
        arguments = ["model", kind, *words]
        return _anew(folder, MAIN, arguments, ["m/model.safetensors"], "m/checkpoint.safetensors")

    Command(folder, MAIN, ["model", "train", table, "m0", *phrases], None, []).run()
    lists = ["s/moses.ini", "--with-segmentation", "--lists", "l.gz", "--nbest-size", "20"]
    Command(folder, DECODE, lists, "in", []).run()
    add = ["system", "add", "s/moses.ini", "a.ini", "--model", "c0"]
    Command(folder, MAIN, ["model", "train-cslm", "reference", "c0", *ngrams], None, []).run()
    augmented = [table, "o.gz", "--system", "s", *of_phrases, *budget]
    return {
        "build": _anew(
            folder,
            MAIN,
            ["system", "build", *texts, "b", *built],
            ["b/phrase-table.gz", "b/lm.arpa.gz"],
        ),
        "train": trained("train", table, "m", *phrases),
        "train RNNsearch": trained(
            "train-sentences", *texts, "m", "--sizes", f"{SIZES} alignment=8", *short
        ),
        "train a Transformer": trained("train-sentences", *texts, "m", *transformer, *small),
        "train a language model": trained("train-cslm", "reference", "m", *ngrams),
        "rescore": _anew(
            folder,
            MAIN,
            ["list", "rescore", "l.gz", "r.gz", "--model", "R=m0", "--source", "in"],
            ["r.gz"],
        ),
        "add a model": _anew(folder, MAIN, add, ["a.ini"]),
        "filter": _anew(
            folder,
            MAIN,
            ["table", "filter", table, "f.out.gz", "--source", "in", "--target", "reference"],
            ["f.out.gz"],
        ),
        "pack": _anew(folder, MAIN, ["system", "pack", "s", "p.tar"], ["p.tar"]),
        "augment with the text": _anew(folder, AUGMENT, augmented, ["o.gz"], "o.work/stages.json"),
    }


def _anew(
    folder: Path, program: str, arguments: list[str], output: list[str], begun: str | None = None
) -> Callable[[], Command]:
    """Return what removes all that a command has made, and makes the command."""
    made = {name.split("/")[0] for name in (*output, begun or output[0])}

    def make() -> Command:
        for name in made:
            for path in (folder / name, *folder.glob(f"{name.removesuffix('.gz')}.*")):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
        return Command(folder, program, arguments, None, output, begun)

    return make


if __name__ == "__main__":
    main()
