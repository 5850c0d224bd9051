"""Commands and options of 0.2 that are gone, and what replaces them."""

from __future__ import annotations

from collections.abc import Mapping

COMMANDS: Mapping[str, str] = {
    "table binarise": "call Moses' own programs (docs/how-to/binary-tables.md)",
    "table check": "use moses-feature doctor TABLE",
    "table favourites": "use moses-feature table report",
    "table merge": "use cat: the lines are independent (docs/how-to/clusters.md)",
    "table propose": "its lines cost 0.2 to 0.4 BLEU",
    "model add-memory": "in n-best lists it was worth 0.2 BLEU",
    "model describe": "use moses-feature describe MODEL",
    "model export-ctranslate2": "use moses-feature model export --format ctranslate2",
    "model export-nplm": "use moses-feature model export --format nplm",
    "model train-joint": "it brought nothing beside a neural language model or rescored lists",
    "model refine": "use augment-phrase-table --model MODEL --system SYSTEM",
    "model train-rnnsearch": "use moses-feature model train-sentences",
    "system convert": "use convert-moses-ini-to-v2.perl of Moses",
    "system describe": "use moses-feature describe SYSTEM",
    "system doctor": "use moses-feature doctor SYSTEM",
    "system pack": "use tar",
    "system what-if": "it did not predict what a column brings: use mert-compare",
}
"""What to use, by the name of a command."""

OPTIONS: Mapping[str, str] = {
    **{
        name: f"use --sizes {name.removesuffix('-units').replace('-', '_')}=N"
        for name in (
            "alignment-units",
            "decoder-layers",
            "embedding",
            "encoder-layers",
            "first",
            "heads",
            "hidden",
            "inner",
            "maxout",
            "projection",
            "rank",
            "second",
            "units",
        )
    },
    **dict.fromkeys(
        (
            "annealing",
            "ask",
            "bound",
            "column-weight",
            "enough",
            "exports",
            "fixed",
            "held-out",
            "heuristic",
            "kind",
            "least",
            "length-ratio",
            "map-phrases",
            "map-words",
            "min-count",
            "most-bytes",
            "most-waiting",
            "pair-count",
            "perplexity",
            "positions",
            "random-directions",
            "ratio",
            "scoring-dtype",
            "settled",
        ),
        "its default stays",
    ),
    "binary-lm": "use build_binary of KenLM",
    "debug": "set MOSES_FEATURE_DEBUG=1",
    "estimate": "use --plan",
    **dict.fromkeys(
        ("folds", "leave-one-out", "unseen"),
        "augment-phrase-table --system holds a part of the text out",
    ),
    "bpe-dropout": "it gained nothing",
    "smoothing": "it gained nothing on small corpora",
    "list-size": "use --nbest-size",
    "longest": "use --max-length",
    "pops": "use --pop-limit",
    "sampled-words": "use --softmax-samples",
    "shard": "use --ray, or split, one job for each piece, and cat (docs/how-to/clusters.md)",
    "prune": "prune with lmplz, and give the model as --lm",
    "stack": "write [stack] into the moses.ini",
    "stack-size": "write [stack] into the moses.ini",
}
"""What to use, by the name of an option without its dashes; no command has it any more."""

_DEFAULT = "its default stays"
_TRAIN = "train with moses-feature model train, and give the network as --model"
_FACTORS = ("hierarchical", "source-factor", "target-factor")
OPTIONS_OF: Mapping[str, Mapping[str, str]] = {
    "augment-phrase-table": dict.fromkeys(
        (
            "batch-size",
            "cooldown",
            "dropout",
            "evaluate-every",
            "learning-rate",
            "optimizer",
            "patience",
            "self-normalisation",
            "softmax-samples",
            "source-text",
            "target-text",
            "unit",
        ),
        _TRAIN,
    ),
    "build": {
        "ray": "one machine builds",
        "significance": "use moses-feature table filter",
    },
    "mert-compare": {"restarts": _DEFAULT, "threads": "use --jobs", "time-limit": _DEFAULT},
    "mert-tune": {"restarts": _DEFAULT, "threads": "use --jobs", "time-limit": _DEFAULT},
    "rescore": {"threads": "all cores are used (taskset chooses some)"},
    "sample": dict.fromkeys(
        ("escaped", "hierarchical", "source-factor", "target-factor"), _DEFAULT
    ),
    "score": dict.fromkeys(
        ("batch-size", "hierarchical", "source-factor", "target-factor"), _DEFAULT
    ),
    "select": {"order": _DEFAULT},
    "train-cslm": dict.fromkeys(("batch-size", "dtype", "optimizer", "patience"), _DEFAULT),
    "train-sentences": dict.fromkeys(("optimizer", "self-normalisation"), _DEFAULT),
    "tune": dict.fromkeys(("restarts", "seed"), _DEFAULT),
}
"""What to use for options that other commands still have, by the name of a command."""
