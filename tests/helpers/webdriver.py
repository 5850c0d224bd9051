"""A page of a server in a headless Chromium, with real keys and a real pointer (W3C WebDriver)."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import subprocess
import time
from typing import Any

DRIVER = shutil.which("chromedriver")
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
]
SECONDS = 120


class Page:
    """A page in a browser.

    Args:
        address: of the page.
        phone: the width of the screen of a phone, in pixels; None for a desk.
        dark: whether its reader prefers dark pages.
    """

    def __init__(self, address: str, phone: int | None = None, dark: bool = False) -> None:
        self._driver = subprocess.Popen(
            [str(DRIVER), "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            self._open(address, phone, dark)
        except BaseException:
            self._driver.terminate()
            self._driver.communicate()
            raise

    def _open(self, address: str, phone: int | None, dark: bool) -> None:
        assert self._driver.stdout is not None
        port = next(
            found[1]
            for line in self._driver.stdout
            if (found := re.search(r"started successfully on port (\d+)", line))
        )
        self._connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=SECONDS)
        self._session = ""
        colours = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
        options: dict[str, Any] = {"args": [*FLAGS, colours]}
        if phone is not None:
            screen = {"width": phone, "height": 800, "pixelRatio": 1}
            options["mobileEmulation"] = {"deviceMetrics": screen}
        wanted = {"alwaysMatch": {"goog:chromeOptions": options}}
        self._session = f"/session/{self._ask('/session', capabilities=wanted)['sessionId']}"
        self._ask("/url", url=address)

    def _ask(self, path: str, method: str = "POST", **content: Any) -> Any:
        self._connection.request(method, self._session + path, json.dumps(content))
        answer = self._connection.getresponse()
        value = json.load(answer)["value"]
        assert answer.status == 200, value
        return value

    def script(self, code: str) -> Any:
        """Return the value of an expression."""
        return self._ask("/execute/sync", script=f"return {code}", args=[])

    def until(self, code: str) -> Any:
        """Wait until an expression is true; return its value."""
        end = time.monotonic() + SECONDS
        while not (value := self.script(code)):
            assert time.monotonic() < end, code
            time.sleep(0.05)
        return value

    def keys(self, text: str) -> None:
        """Press keys where the focus is."""
        keys = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        self._ask("/actions", actions=[{"type": "key", "id": "keyboard", "actions": keys}])

    def point(self, selector: str, press: bool = False) -> None:
        """Move the pointer over an element; press its button there, if wanted."""
        element = self._ask("/element", using="css selector", value=selector)
        moves: list[dict[str, Any]] = [{"type": "pointerMove", "origin": element, "x": 0, "y": 0}]
        if press:
            moves += [{"type": kind, "button": 0} for kind in ("pointerDown", "pointerUp")]
        mouse = {"type": "pointer", "id": "mouse", "actions": moves}
        self._ask("/actions", actions=[mouse])

    def close(self) -> None:
        """End the browser."""
        self._ask("", "DELETE")
        self._connection.close()
        self._driver.terminate()
        self._driver.communicate()
