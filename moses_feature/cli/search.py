"""The commands `moses-feature search …`: RNNsearch."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import click
import numpy as np
import torch

from moses_feature.cli.command import Command, debug_option
from moses_feature.cli.option_types import POSITIVE, Gathered, Given, WholeRange, taken
from moses_feature.cli.options import DeviceOptions, device_options
from moses_feature.cli.paths import READ, READ_MODEL, WRITE, WRITE_DIRECTORY
from moses_feature.cli.training_options import (
    SizeOptions,
    held_out_option,
    run_options,
    sample_option,
    self_normalisation_option,
    shortlist_options,
    size_options,
)
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import tokens
from moses_feature.networks.direction import Reading
from moses_feature.networks.known_words import KnownWords
from moses_feature.rnnsearch.scorer import SearchScorer
from moses_feature.rnnsearch.settings import SEARCH_PRESETS, SearchData, SearchSettings, SearchSizes
from moses_feature.rnnsearch.translate import BEAM, Translation, translate, words_of
from moses_feature.runtime.errors import UsageError
from moses_feature.runtime.files import STANDARD_STREAM, open_output
from moses_feature.training.settings import RunSettings

DEFAULTS = SearchSettings()
SENTENCES_TOGETHER = 16
LARGEST_BEAM = 1000


@dataclass(frozen=True)
class SearchOptions:
    """How the user wants RNNsearch to be trained, before device and texts are known."""

    size: SizeOptions
    run: RunSettings
    held_out: float
    self_normalisation: float
    sample: int | None
    shortlist: int
    min_count: int
    longest: int
    reading: Reading
    word_alignment: str | None

    @classmethod
    def from_options(cls, given: Given) -> SearchOptions:
        """Pick them from the options of a command."""
        size = SizeOptions.from_options(given, SearchSizes)
        reading = taken(Reading, given)
        return taken(cls, given, size=size, reading=reading, run=taken(RunSettings, given, "clip"))

    def settings(self, device: torch.device) -> SearchSettings:
        """Return how to train on a device."""
        sizes = self.size.on(device, SEARCH_PRESETS)
        return SearchSettings(
            **vars(self.run),
            sizes=sizes,
            held_out=self.held_out,
            self_normalisation=self.self_normalisation,
            sample=self.sample,
        )

    def data(self, source: str, target: str) -> SearchData:
        """Return what to train on."""
        limits = self.shortlist, self.min_count, self.longest
        return SearchData(source, target, *limits, self.reading, self.word_alignment)


search_options = Gathered(
    "Training",
    "training",
    SearchOptions.from_options,
    click.option(
        "--reverse",
        is_flag=True,
        help="Learn p(source | target): read TARGET and write SOURCE, which keep their places.",
    ),
    click.option("--right-to-left", is_flag=True, help="Write the last word first."),
    size_options(
        SEARCH_PRESETS,
        {
            "hidden": "hidden units of each recurrence",
            "embedding": "word embedding",
            "alignment": "units of the alignment model",
            "maxout": "maxout units",
        },
    ),
    shortlist_options(SearchData, "Words a side"),
    click.option(
        "--longest",
        type=POSITIVE,
        default=SearchData.longest,
        show_default=True,
        help="Words of a sentence at most; pairs with a longer one are left out.",
    ),
    click.option(
        "--word-alignment",
        type=READ,
        help="Links of each sentence pair, such as 0-0 1-2, as Moses' training leaves them in "
        "model/aligned.grow-diag-final-and: the network learns to align as they do, too.",
    ),
    held_out_option(DEFAULTS, "source sentences"),
    self_normalisation_option("to rescore with"),
    sample_option(),
    run_options(DEFAULTS, "sentence pairs", "an epoch, 5,000 at most,"),
)


@click.group("search")
def search_group() -> None:
    """RNNsearch, a network for whole sentences that aligns while it translates."""


@search_group.command("train", cls=Command, no_args_is_help=True)
@click.argument("source", type=READ)
@click.argument("target", type=READ)
@click.argument("model_directory", type=WRITE_DIRECTORY)
@click.option("--resume", is_flag=True, help="Go on from the checkpoint in MODEL_DIRECTORY.")
@search_options
@device_options
@debug_option
def train_command(
    source: str,
    target: str,
    model_directory: str,
    resume: bool,
    training: SearchOptions,
    device: DeviceOptions,
) -> None:
    """Train a network on two tokenised texts; line n of TARGET translates line n of SOURCE.

    The best model, by the loss on held-out sentence pairs, is kept in MODEL_DIRECTORY. The first
    of the budgets that is spent (--updates, --epochs, --minutes, --patience) ends the training.

    \b
    Example:
      moses-feature search train train.en train.fr en-fr.search --dropout 0.2 --minutes 60
    """
    from moses_feature.cli.training_run import train_and_show
    from moses_feature.rnnsearch.training import train_search

    texts = Path(source), Path(target)
    if all(text.exists() for text in texts) and texts[0].samefile(texts[1]):
        raise UsageError(f"{source} and {target}: expected two texts, found one")
    on = device.prepare()
    settings, directory = training.settings(on), Path(model_directory)
    train_and_show(
        train_search,
        training.data(source, target),
        settings,
        directory,
        on,
        resume,
        "sentence pairs",
    )


@search_group.command("translate", cls=Command, no_args_is_help=True)
@click.argument("model", type=READ_MODEL)
@click.option(
    "--beam",
    type=WholeRange(1, LARGEST_BEAM),
    default=BEAM,
    show_default=True,
    help="Hypotheses of a sentence.",
)
@click.option(
    "--alignments",
    type=WRITE,
    help="Also write what each target word is aligned to: a JSON object a line, with source, "
    "target and alignment, a row for each target word and the end, a probability for each source "
    "word and the end.",
)
@debug_option
def translate_command(model: str, beam: int, alignments: str | None) -> None:
    """Translate the sentences of the standard input with the network alone.

    The translation has the best mean of log p over its words and its end. An unknown word is the
    source word that it is aligned to most.

    \b
    Example:
      moses-feature search translate en-fr.search < test.en > test.out
    """
    if alignments == STANDARD_STREAM:
        raise UsageError("alignments are written to a file, found -")
    scorer = SearchScorer(Path(model))
    known = KnownWords(model, "the text to translate", scorer.source, scorer.target)
    with ExitStack() as stack:
        reader = stack.enter_context(LineReader(STANDARD_STREAM))
        file = stack.enter_context(open_output(Path(alignments))) if alignments else None
        sentences = (tokens(line) for line in reader)
        while some := list(islice(sentences, SENTENCES_TOGETHER)):
            for words in some:
                known.add(words)
            found = translate(scorer.network, [scorer.source.ids(words) for words in some], beam)
            for source, translations in zip(some, found, strict=True):
                words = words_of(scorer, translations[0], source) if source else []
                click.echo(b" ".join(words))
                if file is not None:
                    _write_alignment(file, source, words, translations[0], scorer)
        known.check()


def _write_alignment(
    file: BinaryIO,
    source: list[bytes],
    words: list[bytes],
    translation: Translation,
    scorer: SearchScorer,
) -> None:
    """Write a line; rows are in the order of the words."""
    rows = translation.alignment[: len(words) + 1]
    if scorer.reading.right_to_left:
        rows = np.concatenate([rows[-2::-1], rows[-1:]])
    content = {
        "source": [word.decode(errors="replace") for word in source],
        "target": [word.decode(errors="replace") for word in words],
        "alignment": np.round(rows.astype(float), 4).tolist(),
    }
    file.write(json.dumps(content, ensure_ascii=False).encode() + b"\n")
