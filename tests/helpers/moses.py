"""A toy system, and a program that stands in for Moses."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from helpers.toy import Toy, make_toy
from moses_feature.decoder.decoder import EmbeddedDecoder
from moses_feature.decoder.limits import SearchLimits
from moses_feature.decoder.system import System
from moses_feature.moses.nbest_lists import format_nbest

SENTENCES = ["a b c", "d", "", "b x a", "c c"]
GIVEN = [
    'a <n translation="X A">b c</n> d',
    'a <n translation="A||E B" prob="0.25||0.5">b</n> c a',
    '<n translation="B">a b</n> <m translation="C C" prob="0">c</m>',
    'a <n translation="D" span="0-1"/> b c <m translation="A" span="1-2"></m>',
    'x <n translation="A">y</n> a',
    '<n translation="B">a</n> b <m translation="E">c</m>',
]
WALLS = [
    "a b <wall/> c d",
    "a <zone>b c</zone> d a",
    "a <zone> b <wall/> c d </zone> a",
    "<zone>a <zone>b c</zone></zone> d",
    "a <wall>b</wall> c <zone>d a</zone>",
    '<zone>a <n translation="E">b c</n></zone> d a',
    "<zone>a</zone> <zone>b</zone> <zone>c <wall/> d</zone> a",
]
N_BEST = 20
CUBE_PRUNING = ("-search-algorithm", "1", "-cube-pruning-pop-limit", "5000", "-s", "5000")


def tokens(sentences: list[str]) -> list[list[bytes]]:
    return [sentence.encode().split() for sentence in sentences]


@pytest.fixture
def toy(tmp_path) -> Toy:
    return make_toy(tmp_path / "toy", options=2)


@pytest.fixture
def embedded(toy) -> EmbeddedDecoder:
    return EmbeddedDecoder(System.of_ini(toy.ini), tokens(SENTENCES), SearchLimits(5000, 5000))


@pytest.fixture
def stand_in(tmp_path, embedded) -> Path:
    """Return a program that replays what the embedded decoder found."""
    folder = tmp_path / "moses"
    folder.mkdir()
    binary = folder / "moses"
    program = (Path(__file__).parent / "stand_in_moses.py").read_text()
    binary.write_text(program.replace("#!/usr/bin/env python3", f"#!{sys.executable}"))
    binary.chmod(0o755)
    nbest = {}
    for number, sentence in enumerate(SENTENCES):
        lines = format_nbest(number, embedded.translate(number, N_BEST), embedded.features)
        nbest[sentence] = [line.partition(" ||| ")[2] for line in lines.decode().splitlines()]
    shown = []
    for function in embedded.features.functions:
        if any(function.tuneable):
            shown.append(f"{function.name}= {' '.join(f'{w:.6f}' for w in function.weights)}")
        else:
            shown.append(f"{function.name} UNTUNEABLE")
    write_replay(binary, weights="\n".join(shown), nbest=nbest)
    return binary


def write_replay(binary: Path, **changes: object) -> None:
    path = binary.parent / "replay.json"
    before = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**before, **changes}))
