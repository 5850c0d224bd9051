"""A part of a text that is held out: whole documents, nothing twice, nothing lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from moses_feature.building.held_out import AlignedText, TextPart, hold_out
from moses_feature.runtime.errors import FormatError, MosesFeatureError

LINES = 40
EMPTY, LONG = 7, 11


@pytest.fixture
def text(tmp_path) -> AlignedText:
    source = [f"s{n} the" for n in range(LINES)]
    source[EMPTY], source[LONG] = "", "x " * 101
    files = {
        "source": source,
        "target": [f"t{n} le" for n in range(LINES)],
        "alignment": [""] * EMPTY + ["0-0"] * (LINES - EMPTY),
        "documents": [f"d{n // 4}" for n in range(LINES)],
    }
    for name, lines in files.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    return AlignedText(*(str(tmp_path / name) for name in files))


def split(text: AlignedText, tmp_path: Path, **changed) -> list[dict[str, list[str]]]:
    parts = [TextPart.within(tmp_path, name) for name in ("rest", "part")]
    given = {"longest": 100, "share": 0.2, "most": 100, "seed": 1, **changed}
    hold_out(text, *parts, **given)
    return [
        {name: path.read_text().splitlines() for name, path in vars(part).items() if path.exists()}
        for part in parts
    ]


def test_whole_documents(text, tmp_path):
    rest, part = split(text, tmp_path)
    assert set(rest["documents"]) | set(part["documents"]) == {f"d{n}" for n in range(10)}
    assert not set(rest["documents"]) & set(part["documents"])
    numbers = [int(line[1:].split()[0]) for of in (rest, part) for line in of["source"]]
    assert sorted(numbers) == [n for n in range(LINES) if n not in (EMPTY, LONG)]
    for of in (rest, part):
        for source, target, document in zip(
            of["source"], of["target"], of["documents"], strict=True
        ):
            number = int(source[1:].split()[0])
            assert target == f"t{number} le"
            assert document == f"d{number // 4}"
        assert len(of["alignment"]) == len(of["source"])
    assert 8 <= len(part["source"]) <= 11  # a fifth of 38, and the last document is whole
    assert part["documents"] == sorted(part["documents"], key=part["documents"].index)


def test_pairs_of_unequal_lengths(text, tmp_path):
    """Those of raw texts, as `system build` leaves them out."""
    lines = Path(text.target).read_text().splitlines()
    lines[3] = " ".join(["le"] * 30)
    Path(text.target).write_text("".join(f"{line}\n" for line in lines))
    counts = [
        sum(len(of["source"]) for of in split(text, tmp_path, ratio=ratio)) for ratio in (None, 9)
    ]
    assert counts == [LINES - 2, LINES - 3]


def test_single_lines_and_the_most_of_them(text, tmp_path):
    text = AlignedText(text.source, text.target)
    rest, part = split(text, tmp_path)
    assert len(part["source"]) == 8
    assert "alignment" not in part
    assert "documents" not in rest
    _, part = split(text, tmp_path, most=3)
    assert len(part["source"]) == 3
    _, other = split(text, tmp_path, most=3, seed=2)
    assert other != part


def test_texts_that_do_not_fit(text, tmp_path):
    Path(text.documents or "").write_text("one\n" * LINES)
    with pytest.raises(MosesFeatureError, match="expected several documents, found one"):
        split(text, tmp_path)
    Path(text.documents or "").write_text("one\n" * (LINES - 1))
    with pytest.raises(FormatError, match="expected 40 lines, as the text has, found 39"):
        split(text, tmp_path)
    text = AlignedText(text.source, text.target, text.alignment)
    Path(text.alignment or "").write_text("5-0\n" * LINES)
    with pytest.raises(FormatError, match="alignment at line 1"):
        split(text, tmp_path)
