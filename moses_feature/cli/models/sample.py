"""The command `moses-feature model sample`."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import click

from moses_feature.cli.common.command import Command
from moses_feature.cli.common.groups import typed
from moses_feature.cli.common.paths import READ_MODEL
from moses_feature.cli.common.vocabulary import FiniteRange, WholeRange, option
from moses_feature.moses.lines import LineReader
from moses_feature.moses.phrase_table import tokens
from moses_feature.moses.words import WordError, WordOptions
from moses_feature.phrases.table_words import TableWords
from moses_feature.runtime.errors import FormatError, UsageError, shown
from moses_feature.runtime.files import STANDARD_STREAM

PHRASES_TOGETHER = 1024
MOST = 10_000
"""The most samples of a phrase, or prefixes of a beam."""


@click.command("sample", cls=Command, no_args_is_help=True)
@click.argument("model", type=READ_MODEL)
@option(
    "samples", "How many are drawn for each source phrase.", default=50, within=WholeRange(1, MOST)
)
@option(
    "temperature",
    "Log probabilities are divided by it before a word is drawn: below 1 for likelier words, "
    "above 1 for others.",
    default=1.0,
    within=FiniteRange(0.01, 100),
)
@option("seed", default=1)
@option(
    "beam",
    "Search for the likeliest targets instead of drawing some, with so many prefixes.",
    within=WholeRange(1, MOST),
)
@option("best", "Targets of a phrase to write.", default=5)
def sample_command(
    model: str,
    samples: int,
    temperature: float,
    seed: int,
    beam: int | None,
    best: int,
) -> None:
    """Write the targets that a network generates for source phrases.

    (The paper's Table 3.)

    Reads a source phrase, or for RNNsearch a sentence, from each line of the standard input.
    Writes the targets that were drawn, likeliest first, in columns separated by tabs: source,
    target, log p(target | source) (the natural log, as `model score` gives it), and, but for
    --beam, how often the target was drawn. What is drawn for a phrase depends on the phrase and the
    seed alone.

    \b
    Example:
      echo 'the black dog' | moses-feature model sample my.model --samples 50
    """
    from moses_feature.phrases.generation.generator import generator_of

    if beam is not None:
        for option in typed(("samples", "temperature", "seed")):
            raise UsageError(f"--{option} is of drawing, --beam of searching: give one of them")
    generator = generator_of(Path(model))
    source_words = TableWords().words(generator.model)
    with LineReader(STANDARD_STREAM) as reader:
        lines = iter(reader)
        while some := list(islice(lines, PHRASES_TOGETHER)):
            first = reader.line_number - len(some) + 1
            phrases = [_source(line, source_words, n) for n, line in enumerate(some, first)]
            ids = [generator.model.source.ids(phrase) for phrase in phrases]
            if beam is None:
                found = generator.samples(ids, samples, temperature, seed)
            else:
                found = generator.likeliest(ids, beam)
            for line, targets in zip(some, found, strict=True):
                source = b" ".join(tokens(line))
                for target in targets[:best]:
                    text = b" ".join(generator.words(target))
                    columns = [source, text, b"%.6f" % target.log_prob]
                    click.echo(b"\t".join(columns + [b"%d" % target.count] * (beam is None)))


def _source(line: bytes, words: WordOptions, line_number: int) -> list[bytes]:
    if b"\t" in line or b"|||" in line:
        raise FormatError("standard input", "a source phrase alone", shown(line), line_number)
    try:
        return words.pair(line, b"")[0]
    except WordError as error:
        raise WordError(f"standard input at line {line_number}: {error}") from None
