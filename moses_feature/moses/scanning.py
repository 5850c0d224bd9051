"""Fields and numbers in blocks of table lines, found by compiled code."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from moses_feature.runtime.arrays import Bytes
from moses_feature.runtime.compiled import INT_0, helper

SPACE, TAB, NEW_LINE, CARRIAGE_RETURN, BAR = b" \t\n\r|"
MINUS, PLUS, POINT, ZERO, NINE, SMALL_E, LARGE_E = b"-+.09eE"
MOST_EXACT = 1 << 53
"""Whole numbers up to this one are exact as doubles; `read_digits` stops counting there."""


@helper
def field_end(text: Bytes, place: int, end: int) -> int:
    """Return where the field that begins at a place ends: at the next `|||`, or at `end`."""
    while place < end:
        if (
            text[place] == BAR
            and place + 2 < end
            and text[place + 1] == BAR
            and text[place + 2] == BAR
        ):
            return place
        place += 1
    return end


@helper
def line_end(text: Bytes, place: int) -> int:
    """Return where the line feed of a line is; the end of the text if it has none."""
    while place < len(text) and text[place] != NEW_LINE:
        place += 1
    return place


@helper
def stripped(text: Bytes, first: int, last: int) -> tuple[int, int]:
    """Return the begin and end of a field without spaces and tabs around it."""
    while first < last and (text[first] == SPACE or text[first] == TAB):
        first += 1
    while last > first and (text[last - 1] == SPACE or text[last - 1] == TAB):
        last -= 1
    return first, last


@helper
def read_digits(text: Bytes, place: int, end: int, number: int) -> tuple[int, int, int]:
    """Read more digits of a number; return the number, how many they are, and where they end."""
    first = place
    while place < end and ZERO <= text[place] <= NINE:
        number = min(10 * number + text[place] - ZERO, MOST_EXACT)
        place += 1
    return number, place - first, place


POWERS = 10.0 ** np.arange(23)
"""The powers of ten that are exact; an exact integer times or over one of them is rounded once."""
MOST_NEGATIVE = 250
"""Numbers with smaller powers of ten are left to Python: their products might lose bits."""
SPLIT = float((1 << 27) + 1)
UNCERTAIN = 2.0**-100
"""More than the relative error of a product with a power of ten that has two parts."""


def _two_parts(exponent: int) -> tuple[float, float]:
    """Return the double nearest to 10 to the power of -exponent, and what it lacks, rounded."""
    exact = Fraction(1, 10**exponent)
    high = float(exact)
    return high, float(exact - Fraction(high))


HIGH, LOW = np.array([_two_parts(exponent) for exponent in range(MOST_NEGATIVE + 1)]).T.copy()


@helper
def read_number(block: Bytes, place: int, end: int) -> tuple[float, int]:
    """Return the number at a place, -1 if it is not an ordinary one, and where it ends.

    The result is the double nearest to the number, as `float` reads it. With a small exponent, an
    exact integer times or over an exact power of ten is rounded once (Clinger 1990).
    """
    mantissa, digits, place = read_digits(block, place, end, INT_0)
    exponent = 0
    if place < end and block[place] == POINT:
        before = place + 1
        mantissa, behind, place = read_digits(block, before, end, mantissa)
        exponent -= behind
        digits += behind
    if place + 1 < end and block[place] in (SMALL_E, LARGE_E):
        negative = block[place + 1] == MINUS
        place += 2 if negative or block[place + 1] == PLUS else 1
        written, of_exponent, place = read_digits(block, place, end, INT_0)
        digits = digits if of_exponent > 0 else 0
        exponent += -written if negative else written
    ends = place == end or block[place] in (SPACE, TAB, CARRIAGE_RETURN, NEW_LINE)
    if digits == 0 or not ends or mantissa >= MOST_EXACT:
        return -1.0, place
    if -len(POWERS) < exponent < len(POWERS):
        power = POWERS[abs(exponent)]
        return (mantissa / power if exponent < 0 else mantissa * power), place
    if -MOST_NEGATIVE <= exponent < 0:
        return _scaled(float(mantissa), HIGH[-exponent], LOW[-exponent]), place
    return -1.0, place


@helper
def _scaled(number: float, high: float, low: float) -> float:
    """Return the double nearest to a number times high + low, -1 if it is not certain.

    The product with `high` is computed without error, in two parts (Dekker 1971).
    """
    product = number * high
    of_number = SPLIT * number
    of_high = SPLIT * high
    number_1 = of_number - (of_number - number)
    high_1 = of_high - (of_high - high)
    number_2, high_2 = number - number_1, high - high_1
    rest = (number_1 * high_1 - product) + number_1 * high_2 + number_2 * high_1
    rest = (rest + number_2 * high_2) + number * low
    least = product + (rest - UNCERTAIN * product)
    most = product + (rest + UNCERTAIN * product)
    return least if least == most else -1.0
