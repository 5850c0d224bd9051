"""The embedded decoder beside Moses2, on the same text in one run.

    python benchmarks/moses2.py INI PROBING_INI INPUT --moses2 PATH [--threads 1 2]
        [--pop-limit 1000]

INI has text tables; PROBING_INI has the same models and weights for Moses2, with a ProbingPT that
holds the reordering scores, too (`property-index=0`). Each decodes with as many threads (processes
of ours) as are asked for, with equal limits, and says how long that took without loading. Both
translations are scored by the same model: the best derivation of each under the embedded decoder.
Run it where relative paths in the inis hold.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from moses_feature.decoder.decoder import EmbeddedDecoder
from moses_feature.decoder.limits import SearchLimits
from moses_feature.decoder.system import System
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.lines import read_text

Lines = list[list[bytes]]

OURS, THEIRS = r"sentences in ([0-9.]+) s", r"Decoding took ([0-9.]+)"


def measure(name: str, command: Sequence[str], took: str, sentences: Lines) -> Lines:
    """Print sentences a second, by what a program says that decoding took; return translations."""
    text = b"".join(b" ".join(sentence) + b"\n" for sentence in sentences)
    made = subprocess.run(list(command), input=text, capture_output=True, check=True)  # noqa: S603
    [seconds] = re.findall(took.encode(), made.stderr)
    print(f"  {name:8} {len(sentences) / float(seconds):6.1f} sentences/s")
    return [line.split() for line in made.stdout.splitlines()]


def total(decoder: EmbeddedDecoder, translations: Lines) -> tuple[float, set[int]]:
    """Return the sum of the model scores of translations, and which ones have none."""
    found = [decoder.force(n, words) for n, words in enumerate(translations)]
    missing = {n for n, of in enumerate(found) if not of}
    return sum(of[0].score for of in found if of), missing


def main() -> None:
    """Measure both, and compare what they find."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ini")
    parser.add_argument("probing_ini")
    parser.add_argument("input")
    parser.add_argument("--moses2", required=True)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--pop-limit", type=int, default=1000)
    parser.add_argument("--sentences", type=int)
    arguments = parser.parse_args()
    sentences = read_text(arguments.input)[0][: arguments.sentences]
    limits = SearchLimits(arguments.pop_limit)
    system = System.of_ini(MosesIni.read(arguments.ini))
    decoder = EmbeddedDecoder(system, sentences, limits)
    decoder.translate(0)  # compiles
    of_search = "--pop-limit", str(limits.pops)
    ours = [str(Path(sys.executable).with_name("mert-decode")), arguments.ini, *of_search]
    theirs = [arguments.moses2, "-f", arguments.probing_ini, "-search-algorithm", "1"]
    theirs += ["-cube-pruning-pop-limit", str(limits.pops)]
    for threads in arguments.threads:
        print(f"{threads} threads, {len(sentences)} sentences")
        found = [
            measure("ours", [*ours, "--jobs", str(threads)], OURS, sentences),
            measure("Moses2", [*theirs, "-threads", str(threads)], THEIRS, sentences),
        ]
    (one, lost), (other, lost_too) = (total(decoder, of) for of in found)
    same = sum(a == b for a, b in zip(*found, strict=True))
    print(
        f"the same translations: {same}; sums of model scores: ours {one:.2f}, Moses2 {other:.2f}"
    )
    if lost | lost_too:
        print(f"not derived: {len(lost)} of ours, {len(lost_too)} of Moses2's")


if __name__ == "__main__":
    main()
