"""Decimal numbers read by compiled code, against Python's own."""

from __future__ import annotations

import numpy as np
import pytest

from moses_feature.moses.scanning import MOST_EXACT, read_number
from moses_feature.runtime.compiled import compiled


@compiled
def _read(text: np.ndarray) -> tuple[float, int]:
    found, place = read_number(text, 0, len(text))
    return found, place


def read(text: str) -> float:
    found, place = _read(np.frombuffer(text.encode(), dtype=np.uint8))
    assert found < 0 or place == len(text)
    return float(found)


def test_numbers_are_the_nearest_doubles():
    """None of up to 15 digits is left to Python."""
    generator = np.random.default_rng(1)
    for _ in range(20_000):
        digits = int(generator.integers(1, 17))
        mantissa = int(generator.integers(10 ** (digits - 1), 10**digits))
        exponent = int(generator.integers(-230, 23 - digits))
        written = str(mantissa)
        text = f"{written[0]}.{written[1:]}e{exponent + digits - 1:+d}" if digits > 1 else written
        assert read(text) == (float(text) if mantissa < MOST_EXACT else -1.0)


@pytest.mark.parametrize("exponent", [22, 23, 24, 44, 100, 249])
def test_numbers_near_the_middle_of_two_doubles(exponent):
    """The decimal numbers of 15 digits that are closest to it, of many."""
    generator = np.random.default_rng(exponent)
    for value in generator.random(500) * 10.0 ** (14 - exponent):
        middle = (float(value) + float(np.nextafter(value, np.inf))) / 2
        text = f"{middle:.15e}"
        assert read(text) in (float(text), -1.0)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-18", 1e-18), ("0", 0.0), ("0e-99", 0.0), ("1.", 1.0), (".5", 0.5), ("3.72008e-44", None)],
)
def test_single_numbers(text, value):
    assert read(text) == (float(text) if value is None else value)


@pytest.mark.parametrize("text", ["-1", "x", "", ".", "1e", "1e400", "1e-251", "nan", "1e23"])
def test_what_is_left_to_python(text):
    assert read(text) == -1.0
