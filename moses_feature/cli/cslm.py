"""The commands `moses-feature cslm …`: the neural language model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import click
import numpy as np

from moses_feature.cli.command import Command, debug_option
from moses_feature.cli.option_types import WholeRange
from moses_feature.cli.options import DeviceOptions, device_options, warn_of_log_norms
from moses_feature.cli.paths import READ, READ_MODEL, WRITE, WRITE_DIRECTORY
from moses_feature.cli.training_options import NgramOptions, ngram_options
from moses_feature.cslm.nplm import load_neural_lm, write_nplm
from moses_feature.cslm.scorer import NeuralLM
from moses_feature.cslm.settings import LARGEST_ORDER, LM_PRESETS, LmData
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import tokens
from moses_feature.networks.vocabulary import UNKNOWN
from moses_feature.runtime.files import STANDARD_STREAM

SENTENCES_TOGETHER = 256


lm_options = ngram_options(
    LM_PRESETS,
    LmData,
    "Words",
    click.option(
        "--order",
        type=WholeRange(2, LARGEST_ORDER),
        help="Words of an n-gram, the predicted one counted; 7 by default, 10 of characters.",
    ),
)


@click.group("cslm")
def cslm_group() -> None:
    """The neural language model (CSLM) of the paper's section 4.1.2."""


@cslm_group.command("train", cls=Command, no_args_is_help=True)
@click.argument("text", type=READ)
@click.argument("model_directory", type=WRITE_DIRECTORY)
@click.option("--resume", is_flag=True, help="Go on from the checkpoint in MODEL_DIRECTORY.")
@lm_options
@device_options
@debug_option
def train_command(
    text: str,
    model_directory: str,
    resume: bool,
    training: NgramOptions,
    device: DeviceOptions,
) -> None:
    """Train a feed-forward n-gram model on a tokenised text, a sentence on each line.

    The best model, by the loss on held-out sentences, is kept in MODEL_DIRECTORY. Without a
    budget (--updates, --epochs, --minutes) the training ends after ten epochs without gain.

    \b
    Example:
      moses-feature cslm train train.fr french.cslm --dropout 0.2 --self-normalisation 0.1
    """
    from moses_feature.cli.training_run import train_and_show
    from moses_feature.cslm.training import train_language_model

    on = device.prepare()
    settings, directory = training.settings(on), Path(model_directory)
    data = LmData(text, training.shortlist, training.min_count)
    train_and_show(train_language_model, data, settings, directory, on, resume, "n-grams")


@cslm_group.command("score", cls=Command, no_args_is_help=True)
@click.argument("model", type=READ_MODEL)
@click.option("--per-word", is_flag=True, help="Also log p of every word and of the end.")
@click.option(
    "--normalised", is_flag=True, help="Subtract log Z, of a self-normalised model or of NPLM, too."
)
@debug_option
def score_command(model: str, per_word: bool, normalised: bool) -> None:
    """Score the sentences of the standard input: log p, the natural log, of each.

    Words outside the shortlist are scored as UNK, the end of a sentence is scored, too. Says the
    perplexity of the text, with all words and without those outside the shortlist. MODEL is a
    model directory or a file in NPLM's format (which Moses does not normalise).

    \b
    Example:
      moses-feature cslm score french.cslm --per-word < test.fr
    """
    network = load_neural_lm(model)
    network.normalised |= normalised
    perplexity = _Perplexity()
    with LineReader(STANDARD_STREAM) as reader:
        for sentences in _together(reader):
            scored = network.sentence_log_probs(sentences)
            for sentence, log_probs in zip(sentences, scored, strict=True):
                line = f"{log_probs.sum(dtype=np.float64):.6f}"
                if per_word:
                    line += "\t" + " ".join(f"{score:.6f}" for score in log_probs.tolist())
                click.echo(line)
                perplexity.add(network, sentence, log_probs)
    click.echo(perplexity.report(network), err=True)


def _together(lines: LineReader) -> Iterator[list[list[bytes]]]:
    """Yield some sentences at a time."""
    sentences = (tokens(line) for line in lines)
    while some := list(islice(sentences, SENTENCES_TOGETHER)):
        yield some


class _Perplexity:
    """The perplexity of a text, sentence by sentence."""

    def __init__(self) -> None:
        self._sentences = self._words = self._unknown = 0
        self._sum = self._sum_of_unknown = 0.0

    def add(self, network: NeuralLM, sentence: list[bytes], log_probs: np.ndarray) -> None:
        """Add a sentence and log p of its words and its end."""
        unknown = np.array([*network.ids(sentence), 0]) == UNKNOWN
        self._sentences += 1
        self._words += len(sentence)
        self._unknown += int(unknown.sum())
        self._sum += float(log_probs.sum(dtype=np.float64))
        self._sum_of_unknown += float(log_probs[unknown].sum(dtype=np.float64))

    def report(self, network: NeuralLM) -> str:
        """Return what is to be said at the end."""
        scored = self._words + self._sentences
        known = scored - self._unknown
        kind = "" if network.normalised else "; not --normalised, so this is no true perplexity"
        return (
            f"{self._sentences:,} sentences, {self._words:,} words, {self._unknown:,} unknown; "
            f"perplexity {_perplexity(self._sum, scored):.2f}, without unknown words "
            f"{_perplexity(self._sum - self._sum_of_unknown, known):.2f} (ends of sentences "
            f"counted){kind}"
        )


def _perplexity(log_prob: float, words: int) -> float:
    return math.exp(-log_prob / words) if words else math.nan


@cslm_group.command("export-nplm", cls=Command, no_args_is_help=True)
@click.argument("model_directory", type=READ_MODEL)
@click.argument("output", type=WRITE)
@debug_option
def export_command(model_directory: str, output: str) -> None:
    """Write a model in NPLM's text format, for a Moses that was built with NPLM.

    Moses does not subtract log Z, so that the model should be self-normalised.

    \b
    Example:
      moses-feature cslm export-nplm french.cslm french.nplm
      # moses.ini: NeuralLM name=CSLM0 factor=0 order=7 path=/absolute/french.nplm
    """
    model = NeuralLM.load(Path(model_directory))
    write_nplm(Path(output), model)
    if model.normalised:
        warn_of_log_norms(model.training)
    click.echo(f"NeuralLM name=CSLM0 factor=0 order={model.order} path={Path(output).absolute()}")
