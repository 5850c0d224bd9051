"""Lines read in compiled code against the functions that read them one by one."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.models import SOURCE_WORDS, TARGET_WORDS

from moses_feature.moses.phrase_table import SOURCE, TARGET, append_scores, checked_fields, tokens
from moses_feature.moses.words import WordOptions
from moses_feature.networks.direction import Direction
from moses_feature.networks.vocabulary import Vocabulary
from moses_feature.phrases.packing import Packer
from moses_feature.runtime.errors import DataError
from moses_feature.runtime.strings import added, new_strings
from moses_feature.tables.columns import ColumnsOfModel, NewColumns, ids_of
from moses_feature.tables.parts import PartOfTable
from moses_feature.tables.scan import scan
from moses_feature.tables.settings import (
    PROBABILITY_COLUMN,
    UNKNOWN_SOURCE_COLUMN,
    UNKNOWN_TARGET_COLUMN,
)

USUAL = [
    b"a ||| b c ||| 0.1 2e-5 ||| 0-0 ||| 1 2 3 ||| |||\n",
    b" a  b |||  ||| 1 .5\n",
    b"|||||| 1. -2E+3 |||\n",
    b"a |b||c ||| d||| 1 2 |||||||||\n",
    b"\xe9t\xe9 \xff ||| ]x [X][X] |||  0   00 \n",
    b"a ||| b ||| 1 +2 ||| | || ||| |||| |||\n",
]
RARE = [
    b"[X] ||| b ||| 1 2\n",
    b"a\tb ||| c ||| 1 2\n",
    b"a ||| c ||| 1\t2\n",
    b"a ||| c ||| 1 2\r\n",
    b"a" + b" a" * 1000 + b" ||| b ||| 1 2\n",
]
WRONG = [
    b"\n",
    b"a ||| b\n",
    b"a ||| b |||\n",
    b"a ||| b ||| 1\n",
    b"a ||| b ||| 1 2 3\n",
    b"a ||| b ||| 1 nan\n",
    b"a ||| b ||| 1 2e\n",
    b"a ||| b ||| 1 .\n",
    b"a ||| b ||| 1 0x2\n",
    b"a ||| b ||| 1 2 ||| ||| ||| ||| ||| \n",
]


def read_plainly(line: bytes) -> tuple[list[bytes], list[bytes], bytes]:
    """Return the words of both sides, and the line with a score more."""
    fields = checked_fields(line, "table", 1, 2)
    words = WordOptions().pair(fields[SOURCE], fields[TARGET])
    return *words, append_scores(fields, b"0.5")


def words_of(found, side: str, line: int) -> list[bytes]:
    places, offsets = getattr(found, side), getattr(found, f"{side}_offsets")
    return [found.content[b:e] for b, e in places[offsets[line] : offsets[line + 1]].tolist()]


def test_usual_lines():
    content = b"".join(USUAL)
    for whole in (content, content.removesuffix(b"\n")):
        found = scan(whole, len(USUAL), 2)
        grown = b"".join(found.grown([b"0.5"] * len(USUAL)))
        assert grown == b"".join(read_plainly(line)[2] for line in whole.splitlines(keepends=True))
        for number, line in enumerate(USUAL):
            words = tuple(words_of(found, side, number) for side in ("source", "target"))
            assert words == read_plainly(line)[:2]
    assert scan(b"", 0, 2).grown([]) is not None


@pytest.mark.parametrize("line", [*RARE, *WRONG])
def test_other_lines_are_left_to_others(line):
    assert scan(line, 1, 2) is None
    assert scan(USUAL[0] + line + USUAL[1], 3, 2) is None


@pytest.mark.parametrize("line", WRONG)
def test_wrong_lines_are_wrong(line):
    with pytest.raises(DataError):
        read_plainly(line)


def test_any_bytes():
    """What is read is read as one by one; what that refuses is not read."""
    random = np.random.default_rng(1)
    pieces = [b"a", b"|||", b" ", b"|", b"]", b"\t", b"\r", b"\xff", b"1", b".", b"e", b"-", b"+"]
    read = 0
    for _ in range(20_000):
        end = random.integers(0, 4, 3).cumsum()
        middle = b"".join(pieces[k] for k in random.integers(0, len(pieces), end[-1]).tolist())
        line = random.choice([b"a ||| b ||| 1 2", b"a |||||| 1", b""]) + middle + b"\n"
        found = scan(line, 1, 2)
        if found is None:
            continue
        read += 1
        source, target, grown = read_plainly(line)
        assert words_of(found, "source", 0) == source
        assert words_of(found, "target", 0) == target
        assert b"".join(found.grown([b"0.5"])) == grown
    assert read > 500


def test_ids_are_those_of_the_vocabulary():
    vocabulary = Vocabulary(tuple(SOURCE_WORDS))
    text = b" ".join([*SOURCE_WORDS, b"</s>", b"<unk>", b"dogs", b"do", b"the"])
    words = tokens(text)
    ends = np.cumsum([len(word) + 1 for word in words]) - 1
    places = np.stack([ends - [len(word) for word in words], ends], axis=1)
    strings, _ = added(new_strings(), list(vocabulary.shortlist))
    ids = ids_of(strings, np.frombuffer(text, dtype=np.uint8), places)
    assert ids.tolist() == vocabulary.ids(words)


@pytest.mark.parametrize(
    "direction",
    [Direction(), Direction(reverse=True), Direction(right_to_left=True), Direction(True, True)],
)
def test_packed_alike(direction, monkeypatch):
    sides = Vocabulary(tuple(SOURCE_WORDS)), Vocabulary(tuple(TARGET_WORDS))
    packer = Packer(*(sides[::-1] if direction.reverse else sides), direction)
    lines = [b"the dog x ||| le chien ||| 1 2\n", b"a ||| A zz B ||| 1 2\n", b"a b ||| D C ||| 1 2"]
    part = PartOfTable(0, b"".join(lines), range(1, 4), 2, 3, "", None)
    of_model = ColumnsOfModel(
        (PROBABILITY_COLUMN, UNKNOWN_TARGET_COLUMN, UNKNOWN_SOURCE_COLUMN), packer, WordOptions()
    )

    def columns() -> tuple:
        new = NewColumns([of_model], "table", "out")
        (packed,) = new.pack(part)
        arrays = [packed.unknown_source, packed.unknown_target]
        trees = packed.pairs
        levels = [*trees.source_levels, *trees.target_levels]
        arrays += [trees.offsets, *(array for of in levels for array in vars(of).values())]
        content = new.append(0, [np.full(3, -0.5)]).content
        return [array.tolist() for array in arrays], content

    compiled = columns()
    monkeypatch.setattr("moses_feature.tables.columns.scan", lambda *_: None)
    assert columns() == compiled
    assert compiled[0][:2] == [[1, 0, 0], [0, 1, 0]]
