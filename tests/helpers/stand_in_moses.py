#!/usr/bin/env python3
"""Stands in for the `moses` binary: replays n-best lists that the embedded decoder made before.

It takes the arguments that the tuner gives to Moses. `replay.json` beside it says what to do.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def value(option: str, offset: int = 1) -> str:
    return sys.argv[sys.argv.index(option) + offset]


def main() -> int:
    replay = json.loads((HERE / "replay.json").read_text())
    (HERE / "calls.log").open("a").write(json.dumps(sys.argv[1:]) + "\n")
    print("Defined parameters (per moses.ini or switch):", file=sys.stderr)
    if "-show-weights" in sys.argv:
        print(replay["weights"])
        return 0
    if replay.get("crash"):
        print("Exception: no such model", file=sys.stderr)
        return 3
    time.sleep(replay.get("sleep", 0))
    lines = Path(value("-input-file")).read_bytes().splitlines()
    texts = [line.decode() for line in lines]
    count = int(value("-n-best-list", 2))
    with Path(value("-n-best-list")).open("w") as output:
        for number, text in enumerate(texts):
            for line in replay["nbest"][text][:count]:
                output.write(f"{number} ||| {line}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
