#!/usr/bin/env python3
"""Stands in for Moses' programs that make binary tables, and for a moses that reads them.

Which one it is, its name says. A "binary table" is the text, with what `habits.json` beside the
program says that goes wrong.
"""

from __future__ import annotations

import gzip
import json
import math
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def value(option: str) -> str:
    return sys.argv[sys.argv.index(option) + 1]


def text_of(path: str) -> str:
    content = Path(path).read_bytes()
    return (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode()


def write(table: str, output: str, scores: int, habits: dict) -> None:
    lines = []
    for line in text_of(table).splitlines():
        fields = line.split(" ||| ")
        kept = fields[2].split()[: habits.get("keeps", scores)]
        fields[2] = " ".join([*kept, *["1"] * (scores - len(kept))])
        if habits.get("loses") != fields[0]:
            lines.append(" ||| ".join(fields))
    path = Path(output)
    if habits.get("folder"):
        path.mkdir()
        path = path / "content"
    path.write_text("\n".join(lines) + "\n")


def answer(habits: dict) -> None:
    ini = Path(value("-config")).read_text()
    line = next(line for line in ini.splitlines() if "num-features" in line)
    arguments = dict(word.split("=") for word in line.split()[1:])
    if line.split()[0] in habits.get("unknown", []):
        print(f"Feature name {line.split()[0]} is not registered.", file=sys.stderr)
        sys.exit(1)
    path = Path(arguments["path"])
    table = (path / "content" if path.is_dir() else path).read_text().splitlines()
    with Path(value("-n-best-list")).open("w") as lists:
        for number, source in enumerate(Path(value("-input-file")).read_text().splitlines()):
            for entry in table:
                fields = entry.split(" ||| ")
                if fields[0] == source:
                    logs = [max(math.log(float(s) or 1e-60), -100) for s in fields[2].split()]
                    shown = " ".join(f"{log:.6g}" for log in logs)
                    features = f"PhrasePenalty0= 1 {arguments['name']}= {shown}"
                    lists.write(f"{number} ||| {fields[1]}  ||| {features} ||| -1000\n")
            lists.write(f"{number} ||| two phrases  ||| PhrasePenalty0= 2 T= 0 ||| -2000\n")


def main() -> None:
    habits = json.loads((HERE / "habits.json").read_text())
    name = Path(sys.argv[0]).name
    with (HERE / "calls.log").open("a") as log:
        log.write(json.dumps([name, *sys.argv[1:]]) + "\n")
    if habits.get("fails") == name:
        print("out of memory", file=sys.stderr)
        sys.exit(9)
    if name == "moses":
        answer(habits)
    elif name == "CreateProbingPT":
        scores = int(value("--num-scores")) if "--num-scores" in sys.argv else 4
        write(value("--input-pt"), value("--output-dir"), scores, {**habits, "folder": True})
    elif name == "processPhraseTableMin":
        write(value("-in"), value("-out"), int(value("-nscores")), habits)
    elif name == "CreateOnDiskPt":
        write(sys.argv[6], sys.argv[7], int(sys.argv[3]), {**habits, "folder": True})


main()
