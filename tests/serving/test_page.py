"""The page of `moses-feature serve` in a browser: typing, phrases, keys, a phone, the dark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest
from helpers.webdriver import DRIVER, Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(DRIVER is None, reason="needs Chromium and its driver"),
]

TAB, ENTER = "\ue004", "\ue007"
SHOWN = "[...document.querySelectorAll('#target button')].map((of) => of.textContent)"
IS_MARKED = "[...document.querySelectorAll('.marked')].map((of) => of.dataset.phrase)"

Open = Callable[..., Page]


@pytest.fixture
def page(served) -> Iterator[Open]:
    """Open the page of the server."""
    with ExitStack() as pages:

        def open_(**how: Any) -> Page:
            address = f"http://127.0.0.1:{served.port}/"
            opened = pages.enter_context(closing(Page(address, **how)))
            opened.until("document.activeElement.id === 'source'")
            return opened

        yield open_


def test_a_text_is_translated_as_it_is_typed(page, served):
    texts = ["a b c", "d"]
    expected = [of["text"] for of in served.translate(texts=texts)]
    opened = page()
    opened.keys("a b c")
    opened.until(f"{SHOWN}.join() === {expected[0]!r}")
    opened.keys(f"{ENTER}d")
    opened.until(f"{SHOWN}.join('+') === {'+'.join(expected)!r}")
    opened.keys(f"{ENTER}<img src=x>")
    assert "<img" in opened.until(f"({SHOWN}[2] ?? '').includes('<img') && {SHOWN}[2]")
    assert opened.script("document.images.length") == 0
    own = "performance.getEntriesByType('resource').filter((of) => !of.name.startsWith(origin))"
    assert opened.script(f"{own}.length") == 0
    opened.keys(f"{ENTER}{'a ' * 1500}")
    opened.until(f"({SHOWN}[3] ?? '').startsWith('expected')")


def test_phrases_and_other_translations(page, served):
    best = served.translate(text="a b c", list_size=10)[0]["translations"]
    opened = page()
    opened.keys("a b c")
    opened.until(f"{SHOWN}.join() === {best[0]['text']!r}")
    opened.point("#target button", press=True)
    opened.until("!document.getElementById('details').hidden")
    parts = len(best[0]["phrases"].split())
    assert opened.script("document.querySelectorAll('#phrases-source span').length") == parts
    target = "[...document.querySelectorAll('#phrases-target span')].map((of) => of.textContent)"
    assert opened.script(f"{target}.join(' ')") == best[0]["tokens"]
    opened.point("#phrases-source span")
    number = opened.script("document.querySelector('#phrases-source span').dataset.phrase")
    assert opened.script(IS_MARKED) == [number, number]
    rows = "[...document.querySelectorAll('#others td:first-child')].map((of) => of.textContent)"
    assert opened.script(rows) == [of["text"] for of in best]
    heads = "[...document.querySelectorAll('#others th')].map((of) => of.textContent)"
    assert opened.script(heads) == ["translation", "score", *best[0]["features"]]
    cells = "[...of.cells].map((cell) => +cell.textContent)"
    cells = f"[...document.querySelectorAll('#others tr')].map((of) => {cells})"
    for _, score, *added in opened.script(cells)[1:]:
        assert sum(added) == pytest.approx(score, abs=0.05)  # shown with two digits


def test_keys_alone(page):
    opened = page()
    opened.keys("a b c")
    opened.until(f"({SHOWN}[0] ?? '').length")
    opened.keys(f"{TAB}{ENTER}")
    opened.until("!document.getElementById('details').hidden")
    assert opened.script("document.activeElement.getAttribute('aria-current')") == "true"
    opened.keys(TAB)
    number = opened.until("document.activeElement.dataset.phrase")
    assert opened.script(IS_MARKED) == [number, number]


def test_a_phone(page):
    opened = page(phone=360)
    opened.keys("a b c")
    opened.until(f"({SHOWN}[0] ?? '').length")
    opened.point("#target button", press=True)
    opened.until("!document.getElementById('details').hidden")
    assert opened.script("document.documentElement.scrollWidth") <= 360
    boxes = "[...document.querySelectorAll('.boxes section')].map((of) => of.offsetTop)"
    first, second = opened.script(boxes)
    assert second > first


def test_the_dark(page):
    canvas = "getComputedStyle(document.body).color"
    light, dark = (page(dark=dark).script(canvas) for dark in (False, True))
    assert light == "rgb(0, 0, 0)"
    assert dark == "rgb(255, 255, 255)"
