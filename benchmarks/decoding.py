"""The embedded decoder's speed, and that of Moses' cube pruning, on the same text in one run.

    python benchmarks/decoding.py INI INPUT REFERENCE [--moses PATH] [--pop-limit 200 1000]

One core each; the time to load the models is taken off (for Moses: that of a run on one empty
line). The embedded decoder is timed twice, since it keeps what the language model said: cold, as
in the first iteration of tuning, and warm, as in the later ones. Run it where relative paths in
the ini hold. Without Moses only ours is timed.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from mert.decoders.decoder import Decoder
from mert.decoders.moses import MosesDecoder
from mert.settings import MosesSettings
from mert.tuning.corpus import Corpus
from moses_feature.decoder.decoder import EmbeddedDecoder
from moses_feature.decoder.limits import SearchLimits
from moses_feature.decoder.system import System
from moses_feature.metrics.bleu import BLEU, References
from moses_feature.moses.ini import MosesIni
from moses_feature.moses.nbest_lists import read_nbest
from moses_feature.runtime.errors import UsageError


def timed(decoder: Decoder, corpus: Corpus, path: Path) -> tuple[float, float]:
    """Return the seconds that decoding takes, and BLEU, 0 to 100."""
    start = time.perf_counter()
    decoder.write_nbest(decoder.features, 1, path)
    seconds = time.perf_counter() - start
    total = np.zeros(9, dtype=np.int64)
    lists = read_nbest(path, decoder.features, len(corpus))
    for hypotheses, references in zip(lists, corpus.references, strict=True):
        total += References(references).statistics([hypotheses[0].words])[0]
    return seconds, 100 * BLEU.quality(total)


def time_moses(
    ini: MosesIni, corpus: Corpus, binary: str | None, pops: int, path: Path
) -> tuple[float, float]:
    """Return seconds without loading, and BLEU, of Moses' cube pruning."""
    options = ("-search-algorithm", "1", "-cube-pruning-pop-limit", str(pops), "-s", str(pops))
    settings = MosesSettings(binary, options=options, filter=True)
    nothing = MosesDecoder(ini, [()], settings)
    everything = MosesDecoder(ini, corpus.sentences, settings)
    start = time.perf_counter()
    nothing.write_nbest(nothing.features, 1, path)
    loading = time.perf_counter() - start
    seconds, bleu = timed(everything, corpus, path)
    nothing.close()
    everything.close()
    return seconds - loading, bleu


def main() -> None:
    """Time both and print sentences a second."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ini")
    parser.add_argument("input")
    parser.add_argument("reference")
    parser.add_argument("--moses")
    parser.add_argument("--pop-limit", type=int, nargs="+", default=[200, 1000])
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    ini = MosesIni.read(arguments.ini)
    corpus = Corpus.read(arguments.input, [arguments.reference])
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "nbest.gz"
        EmbeddedDecoder(System.of_ini(ini), corpus.sentences[:1]).write_nbest(
            System.of_ini(ini).features, 1, path
        )  # compiles
        for pops in arguments.pop_limit:
            start = time.perf_counter()
            limits = SearchLimits(pops, pops)
            decoder = EmbeddedDecoder(System.of_ini(ini), corpus.sentences, limits)
            print(f"pop limit and stack {pops}: models read in {time.perf_counter() - start:.1f} s")
            for state in ("cold", "warm"):
                seconds, bleu = timed(decoder, corpus, path)
                print(f"  ours, {state}: {len(corpus) / seconds:6.1f} sentences/s, BLEU {bleu:.2f}")
            try:
                seconds, bleu = time_moses(ini, corpus, arguments.moses, pops, path)
            except UsageError as error:
                print(f"  {error}")
            else:
                print(f"  Moses:      {len(corpus) / seconds:6.1f} sentences/s, BLEU {bleu:.2f}")


if __name__ == "__main__":
    main()
