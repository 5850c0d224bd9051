"""The command `moses-feature text select`: data selection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import click
import numpy as np

from moses_feature.cli.common.command import Command
from moses_feature.cli.common.groups import OptionGroup, taking
from moses_feature.cli.common.paths import READ
from moses_feature.cli.common.progress import Progress
from moses_feature.cli.common.vocabulary import NOT_NEGATIVE, option
from moses_feature.runtime.errors import MosesFeatureError, UsageError
from moses_feature.runtime.files import STANDARD_STREAM, locked_directory, open_output
from moses_feature.selection.selector import (
    EMPTY,
    UNEQUAL,
    CorpusSide,
    Ranking,
    SelectionSettings,
    Selector,
    raw_lines,
)

SCORES = "scores.gz"
WORDS_OF_KINDS = {EMPTY: b"empty", UNEQUAL: b"ratio"}


@click.command("select", cls=Command, no_args_is_help=True)
@click.argument("texts", nargs=-1, required=True, metavar="TEXT [TEXT]", type=READ)
@option(
    "in-domain",
    "What the domain is like, for each side: a KenLM model (ARPA or binary), or a text.",
    many=True,
    required=True,
)
@option(
    "general",
    "What the corpus is like, for each side; sentences drawn from it by default, as many as "
    "the domain's text has.",
    many=True,
)
@option(
    "held-out-text",
    "Keep the share, of a grid from 1/64 to all, whose models predict these texts of the "
    "domain best, one for each side …",
    many=True,
)
@OptionGroup(
    "What is kept",
    "settings",
    taking(SelectionSettings),
    option("lines", "… or the best so many lines …"),
    option("words", "… or words of the last side."),
    option(
        "seed",
        "Of the sentences that are drawn.",
        default=SelectionSettings.seed,
        within=NOT_NEGATIVE,
    ),
)
@option("output-dir", "A new directory.", required=True)
def select_command(
    texts: tuple[str, ...],
    in_domain: tuple[str, ...],
    general: tuple[str, ...],
    held_out_text: tuple[str, ...],
    settings: SelectionSettings,
    output_dir: str,
) -> None:
    """Select the lines of a text that are like a domain.

    Of one text, or of the two sides of a bitext. Lines are ranked by cross-entropy difference:
    Moore and Lewis (2010) for one text, Axelrod et al. (2011) for two. Writes them in their old
    order, under their old names, into a directory, and scores.gz with the score of every line of
    the corpus (nats per word; lower is more like the domain). Models are estimated from texts
    with the words that the in-domain text has twice or more.

    \b
    Example:
      moses-feature text select big.en big.fr --in-domain news.en --in-domain news.fr \\
          --lines 500000 --output-dir selected
    """
    _check(texts, in_domain, general, held_out_text, settings)
    directory = Path(output_dir)
    sides = [
        CorpusSide(*names)
        for names in zip(
            texts,
            in_domain,
            general or (None,) * len(texts),
            held_out_text or (None,) * len(texts),
            strict=True,
        )
    ]
    with locked_directory(directory, "selecting"):
        if any(directory.iterdir()):
            raise UsageError(f"{directory}: expected a new or empty directory")
        selector = Selector(sides, settings)
        with Progress(has_end=False) as progress:
            ranking = selector.rank(lambda lines: progress.show(f"{lines:,} lines scored", None))
        if not len(ranking.order):
            raise MosesFeatureError(f"{texts[0]}: expected lines to select from, found none")
        count = _chosen_by_dev(selector, ranking) if held_out_text else None
        if count is None:
            count = ranking.best(settings.lines, settings.words)
        chosen = np.zeros(len(ranking.scores), dtype=np.bool_)
        chosen[ranking.order[:count]] = True
        _write(directory, texts, ranking, chosen)
    _report(directory, ranking, chosen, count)


def _check(
    texts: Sequence[str],
    in_domain: Sequence[str],
    general: Sequence[str],
    dev: Sequence[str],
    settings: SelectionSettings,
) -> None:
    if len(texts) > 2:
        raise UsageError(f"expected one text or two, found {len(texts)}")
    for word, given in (("in-domain", in_domain), ("general", general), ("held-out-text", dev)):
        if len(given) != len(texts) and (given or word == "in-domain"):
            raise UsageError(
                f"--{word}: expected {len(texts)}, one for each text, found {len(given)}"
            )
    budgets = [settings.lines is not None, settings.words is not None, bool(dev)]
    if sum(budgets) != 1:
        raise UsageError("expected one of --lines, --words and --held-out-text")
    if STANDARD_STREAM in (*texts, *in_domain, *general, *dev):
        raise UsageError("texts are read more than once: expected file names, found -")
    names = [Path(text).name for text in texts]
    if len({*names, SCORES}) != len(names) + 1:
        raise UsageError(f"expected texts of different names, none {SCORES}, found {names}")


def _chosen_by_dev(selector: Selector, ranking: Ranking) -> int:
    tried = selector.tried(ranking)
    for count, entropies in tried:
        perplexities = " and ".join(f"{math.exp(entropy):.2f}" for entropy in entropies)
        click.echo(f"{count:,} lines: perplexity of the development texts {perplexities}", err=True)
    return min(tried, key=lambda pair: sum(pair[1]))[0]


def _write(directory: Path, texts: Sequence[str], ranking: Ranking, chosen: np.ndarray) -> None:
    """Write the chosen lines of each text, and the scores of all."""
    with ExitStack() as stack:
        outputs = [directory / Path(text).name for text in texts]
        files = [stack.enter_context(open_output(output)) for output in outputs]
        for lines, flag in zip(raw_lines(texts), chosen.tolist(), strict=True):
            if flag:
                for file, line in zip(files, lines, strict=True):
                    file.write(line if line.endswith(b"\n") else line + b"\n")
    with open_output(directory / SCORES) as file:
        for score, kind in zip(ranking.scores.tolist(), ranking.kinds.tolist(), strict=True):
            file.write((WORDS_OF_KINDS.get(kind) or b"%.6g" % score) + b"\n")


def _report(directory: Path, ranking: Ranking, chosen: np.ndarray, count: int) -> None:
    worst = f", scores up to {ranking.scores[ranking.order[count - 1]]:.4f}" if count else ""
    click.echo(
        f"{directory}: {count:,} of {len(ranking.scores):,} lines, "
        f"{int(ranking.lengths[chosen].sum()):,} words of the last text{worst}; bad: "
        f"{ranking.count(EMPTY):,} with an empty side, {ranking.count(UNEQUAL):,} of unequal "
        "lengths",
        err=True,
    )
