"""The command `moses-feature system build`."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click

from moses_feature.building.settings import (
    LARGEST_ORDER,
    LONGEST_PHRASE,
    LONGEST_SENTENCE,
    SMALL,
    SMALLEST_ORDER,
    Aligner,
    BuildSettings,
    Case,
)
from moses_feature.cli.common.command import Command, command_line
from moses_feature.cli.common.groups import OptionGroup, taking, typed
from moses_feature.cli.common.paths import READ, WRITE_SYSTEM
from moses_feature.cli.common.progress import Progress
from moses_feature.cli.common.vocabulary import WholeRange, option
from moses_feature.cli.systems.add import say_how_to_tune
from moses_feature.cli.systems.choose import choose_system
from moses_feature.runtime.errors import UsageError

DEFAULTS = BuildSettings()


build_options = OptionGroup(
    "How",
    "settings",
    taking(BuildSettings),
    option(
        "max-length",
        "Words of a sentence at most; pairs with a longer one are left out.",
        to="longest",
        default=DEFAULTS.longest,
        within=WholeRange(1, LONGEST_SENTENCE),
    ),
    option(
        "aligner",
        "The alignment model; several: phrases of five alignments by both models are counted "
        f"together. By default several below {SMALL:,} sentence pairs, otherwise eflomal.",
        within=get_args(Aligner),
    ),
    option(
        "phrase-length",
        "Words of a phrase at most.",
        default=DEFAULTS.phrase_length,
        within=WholeRange(1, LONGEST_PHRASE),
    ),
    option(
        "reordering",
        "Type of the lexicalised reordering model, as train-model.perl names it, such as "
        "mslr-bidirectional-fe or phrase-msd-backward-f; none for no model.",
        default=DEFAULTS.reordering,
    ),
    option(
        "order",
        "Words of an n-gram of the language model at most.",
        default=DEFAULTS.order,
        within=WholeRange(SMALLEST_ORDER, LARGEST_ORDER),
    ),
    option(
        "osm",
        "Also estimate an operation sequence model, and name it in the ini: better translations, "
        "slower search.",
        default=DEFAULTS.osm,
    ),
    option(
        "distortion-limit",
        "Of the search; 0 translates in the order of the source.",
        default=DEFAULTS.distortion_limit,
    ),
    option("seed", "Of the alignment.", default=DEFAULTS.seed),
    option(
        "case",
        "Of raw text: kept, lower, or truecased by a model that is trained on it.",
        default=DEFAULTS.case,
        within=get_args(Case),
    ),
)


@click.command("build", cls=Command, no_args_is_help=True)
@click.argument("source", type=READ)
@click.argument("target", type=READ)
@click.argument("system", type=WRITE_SYSTEM)
@option("alignment", "Links of each sentence pair, such as 0-0 1-2, instead of aligning words.")
@option("lm", "A language model to use, ARPA or binary, instead of making one.", to="model")
@option(
    "lm-text",
    "More text of the target language, for the language model; raw with --raw. Repeatable.",
    to="model_texts",
    many=True,
)
@option(
    "documents",
    "The document of each line, a name a line: augment-phrase-table --system holds whole "
    "documents out.",
)
@option(
    "raw",
    "The texts are raw: normalise punctuation, tokenise and --case them, leave pairs of unequal "
    "lengths out; needs both languages.",
)
@option("source-language", "Code of the source language, such as en; for --raw.")
@option("target-language", "Code of the target language, such as fr; for --raw.")
@option(
    "minutes",
    "Also tune the system, on held-out sentences or --dev, try what may make it better in so many "
    "minutes (an operation sequence model, a sentence network), and keep what gains on others.",
)
@option("dev", "With --minutes: a text to tune on, raw with --raw.")
@option("dev-reference", "Its translation. Repeatable.", many=True)
@build_options
def build_command(
    source: str,
    target: str,
    system: str,
    alignment: str | None,
    model: str | None,
    model_texts: tuple[str, ...],
    documents: str | None,
    raw: bool,
    source_language: str | None,
    target_language: str | None,
    minutes: float | None,
    dev: str | None,
    dev_reference: tuple[str, ...],
    settings: BuildSettings,
) -> None:
    """Build a phrase-based system from two texts, tokenised or raw.

    Line n of TARGET translates line n of SOURCE. SYSTEM becomes a directory with a phrase table, a
    reordering table, a language model and a moses.ini with start weights, which Moses and mert-tune
    read as they are. Given the same alignment, the tables are those of Moses' own training, to the
    byte. A build that was killed continues if it is started again. With --minutes, SYSTEM is tuned,
    and a table says what was tried.

    \b
    Example:
      moses-feature system build train.en train.fr system
      mert-tune system/moses.ini --dev dev.en --dev-reference dev.fr --work-dir tuned
      moses-feature system build raw.en raw.fr system --raw --source-language en \\
          --target-language fr --minutes 60
    """
    from moses_feature.building.system import BuildData, build
    from moses_feature.moses.system_directory import INI

    if model and model_texts:
        raise UsageError("--lm is a finished model: not with --lm-text")
    languages = None
    if raw:
        if not (source_language and target_language):
            raise UsageError("--raw needs --source-language and --target-language, such as en, fr")
        languages = source_language, target_language
    elif source_language or target_language or typed(["case"]):
        raise UsageError("--source-language, --target-language and --case are for --raw")
    files = source, target, alignment, model, model_texts, documents, languages
    data = BuildData(*files)
    if bool(dev) != bool(dev_reference) or (dev and not minutes):
        raise UsageError("--dev and --dev-reference go together, with --minutes")
    if minutes:
        texts = (dev, dev_reference) if dev and dev_reference else None
        choose_system(data, settings, Path(system), minutes, texts)
        return
    with Progress(has_end=True) as progress:
        last = ""

        def show(what: str, share: float | None) -> None:
            nonlocal last
            if what.partition(":")[0] != last:
                last = what.partition(":")[0]
                progress.restart()
            progress.show(what, share)

        found = build(data, settings, Path(system), command_line(), show)
    left_out = " and ".join(f"{n:,} {why}" for why, n in found["left_out"].items() if n)
    words = " and ".join(f"{count:,}" for count in found["words"])
    click.echo(
        f"{system}: {found['sentences']:,} sentence pairs of {words} words"
        + (f" (left out: {left_out})" if left_out else ""),
        err=True,
    )
    for what, seconds in found["seconds"].items():
        click.echo(f"  {what}: {seconds} s", err=True)
    say_how_to_tune(f"{Path(system) / INI}")
