"""The phrase pairs whose scores moved most when a network was refined, with a sentence for each."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import torch
from markupsafe import Markup

from moses_feature.moses.lines import Text, digest_of, read_text
from moses_feature.moses.nbest_formats.reader import NbestReader
from moses_feature.moses.nbest_lists import nbest_lines
from moses_feature.networks.files import CONFIG
from moses_feature.phrases.model import PhraseModel, load_model
from moses_feature.phrases.scorer import scorer_of
from moses_feature.phrases.table_words import TableWords
from moses_feature.report.page import Section, rendered, shown_text, table
from moses_feature.runtime.errors import DataError, MosesFeatureError
from moses_feature.runtime.files import Json
from moses_feature.runtime.json_files import member

BEST = 10
"""Translations of each sentence that are looked at."""
MOVED = 25
"""Pairs that are shown on either side."""
TITLE = "What refining changed"

Words = tuple[bytes, ...]
Pair = tuple[Words, Words]


@dataclass
class Offers:
    """The translations that offer a phrase pair.

    Attributes:
        sentence: the first sentence with one.
        sentences: the number of sentences with one.
        right: the number of them whose reference has the target of the pair.
    """

    sentence: int
    sentences: int = 0
    right: int = 0


@dataclass(frozen=True)
class MovedPair:
    """A phrase pair, with its natural log p before and after refining."""

    pair: Pair
    before: float
    after: float
    offers: Offers


def refining(model: PhraseModel, words: TableWords) -> Iterator[Section]:
    """Yield the section on a network that was refined; nothing for others."""
    training = model.training
    if "refined_from" not in training:
        return
    try:
        before, (lists, source, reference) = _before(training), _inputs(training)
        sentences, references = read_text(source)[0], read_text(reference)[0]
        if len(sentences) != len(references):
            raise DataError(f"{source} and {reference} have different numbers of lines")
        offered = offered_pairs(lists, sentences, references)
    except MosesFeatureError as error:
        yield Section(TITLE, f"Not known, since what it was refined from cannot be read: {error}.")
        return
    moved = moved_pairs(before, model, words, offered)
    yield Section(
        TITLE,
        f"The {len(offered):,} phrase pairs of the {BEST} best translations of each of "
        f"{len(sentences):,} sentences that it was refined on: those whose log p rose most, those "
        "where it fell most. Of the sentences whose translations have the pair, the reference of "
        "so many has its target; the first is shown. Words that the network does not know are "
        "left out.",
        rendered(
            "refining.html",
            risen=_rows(heapq.nlargest(MOVED, moved, _change), sentences, references, words),
            fallen=_rows(heapq.nsmallest(MOVED, moved, _change), sentences, references, words),
        ),
    )


def offered_pairs(lists: str, sentences: Text, references: Text) -> dict[Pair, Offers]:
    """Return the phrase pairs of the best translations of a text.

    Args:
        lists: n-best lists with segmentation.
        sentences: the source text.
        references: its translation.
    """
    found: dict[Pair, Offers] = {}
    with NbestReader(lists) as reader:
        lines = nbest_lines(reader, len(sentences))
        for number, of_sentence in groupby(lines, key=lambda line: line.sentence):
            source, reference = sentences[number], b" %b " % b" ".join(references[number])
            pairs = {
                (
                    source[place.source : place.source_end],
                    tuple(line.words[place.target : place.target_end]),
                )
                for line in islice(of_sentence, BEST)
                for place in line.phrases(len(source))
            }
            for pair in pairs:
                offers = found.setdefault(pair, Offers(number))
                offers.sentences += 1
                offers.right += b" %b " % b" ".join(pair[1]) in reference
    return found


def moved_pairs(
    before: PhraseModel, after: PhraseModel, words: TableWords, offered: dict[Pair, Offers]
) -> list[MovedPair]:
    """Return the pairs with known words, with their scores by two networks of one vocabulary."""
    of_network = words.words(after)
    pairs = [of_network.pair(b" ".join(s), b" ".join(t)) for s, t in offered]
    old, new = (scorer_of(model, torch.device("cpu")).score(pairs) for model in (before, after))
    known = (new.unknown_source == 0) & (new.unknown_target == 0)
    return [
        MovedPair(pair, was, now, offers)
        for (pair, offers), was, now, is_known in zip(
            offered.items(), old.log_probs.tolist(), new.log_probs.tolist(), known, strict=True
        )
        if is_known
    ]


def _before(training: Json) -> PhraseModel:
    directory = _fact(training, "refined_from", str)
    model = load_model(Path(directory))
    _check(directory, model.digest, _fact(training, "refined_model", str))
    return model


def _inputs(training: Json) -> list[str]:
    """Return the paths of lists, source, and the first reference."""
    every = _fact(training, "inputs", list[dict[str, str | int]])
    inputs = {str(of.get("role")): of for of in reversed(every)}
    paths = []
    for role in ("n-best lists", "source text", "reference"):
        of = _fact(inputs, role, dict[str, str | int])
        path = _fact(of, "path", str)
        _check(path, digest_of(path), _fact(of, "sha256", str))
        paths.append(path)
    return paths


def _fact(content: Json, name: str, kind: Any) -> Any:
    return member(content, name, kind, Path(CONFIG), "what a network was trained on")


def _check(path: str, found: str, expected: str) -> None:
    if found != expected:
        raise MosesFeatureError(f"{path} has changed since then")


def _change(moved: MovedPair) -> float:
    return moved.after - moved.before


def _rows(
    pairs: Sequence[MovedPair], sentences: Text, references: Text, words: TableWords
) -> Markup:
    def shown(of: Words) -> str:
        return shown_text(b" ".join(of), words.escaped != "no")

    head = ("source", "target", "log p before", "after", "right", "a sentence", "its reference")
    return table(
        [
            head,
            *(
                (
                    *map(shown, of.pair),
                    f"{of.before:.2f}",
                    f"{of.after:.2f}",
                    f"{of.offers.right} of {of.offers.sentences}",
                    shown(sentences[of.offers.sentence]),
                    shown(references[of.offers.sentence]),
                )
                for of in pairs
            ),
        ],
        "text",
    )
