"""Translators in several processes: which of them translate, and when."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from moses_feature.runtime.errors import MosesFeatureError
from moses_feature.translation.stream import TranslationStream
from moses_feature.translation.translated import Translated

SLOW = 120.0


class Echo:
    """Returns the line; all but the first one made take minutes to load, or cannot load."""

    def __init__(self, made: Path, fails: bool) -> None:
        others = len(list(made.iterdir()))
        (made / str(others)).touch()
        if others and fails:
            raise MosesFeatureError("the second one cannot be loaded")
        time.sleep(SLOW if others else 0)

    def translate(self, line: str, count: int = 1, as_tokens: bool = False) -> Translated:  # noqa: ARG002
        return Translated(line, (), {}, 0.0)


def stream(made: Path, fails: bool = False) -> TranslationStream:
    return TranslationStream(partial(Echo, made, fails), 2)


def test_the_first_process_translates_while_others_load(tmp_path):
    lines = [str(number) for number in range(40)]
    begun = time.monotonic()
    with closing(stream(tmp_path)) as translating:
        found = [translated.tokens for translated in translating.translated(iter(lines))]
    assert found == lines
    assert time.monotonic() - begun < SLOW


def test_a_single_line_starts_a_single_process(tmp_path):
    with closing(stream(tmp_path, fails=True)) as translating:
        assert [translated.tokens for translated in translating.translated(iter(["a"]))] == ["a"]
        assert len(translating._workers) == 1


def test_a_process_that_cannot_be_loaded_ends_the_stream(tmp_path):
    def lines() -> Iterator[str]:
        for _ in range(600):
            time.sleep(0.1)
            yield "line"

    with (
        closing(stream(tmp_path, fails=True)) as translating,
        pytest.raises(MosesFeatureError, match="the second one cannot be loaded"),
    ):
        list(translating.translated(lines()))


def test_who_asks_imports_no_compiled_code():
    """Of what `translate` imports, all but the translating process's own modules."""
    modules = (
        "moses_feature.cli.translate",
        "moses_feature.translation.stream",
        "moses_feature.doctor.model_files",
    )
    program = (
        f"import {', '.join(modules)}, sys; print(sorted({{'numba', 'torch'}} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"[]\n"
