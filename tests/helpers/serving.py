"""A server of `moses-feature serve` in a process of its own."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import Any


@dataclass
class Served:
    """A server that runs."""

    process: subprocess.Popen[str]
    port: int
    reader: threading.Thread
    token: str | None = None

    def end(self, how: int = signal.SIGKILL) -> int:
        """End it; return its exit code."""
        self.process.send_signal(how)
        code = self.process.wait(60)
        self.reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code

    def ask(self, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Return the status and the content of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json"} | headers
        if self.token is not None:
            sent["Authorization"] = f"Bearer {self.token}"
        connection.request("GET" if body is None else "POST", path, content, sent)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        is_json = answer.headers["content-type"].startswith("application/json")
        return answer.status, json.loads(text) if is_json else text

    def translate(self, **content: Any) -> list[dict[str, Any]]:
        """Return the translations of a request that succeeds."""
        status, answer = self.ask("/translate", content)
        assert status == 200, answer
        translations: list[dict[str, Any]] = answer["translations"]
        return translations


def serve(*words: object) -> Served:
    command = [sys.executable, "-m", "moses_feature", "serve", *map(str, words)]
    process = subprocess.Popen(
        [*command, "--port", "0", "--tokens"], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"serving on http://\S+:(\d+)$", line):
            reader = threading.Thread(target=process.stderr.read, daemon=True)
            reader.start()
            return Served(process, int(found[1]), reader)
    raise AssertionError(process.wait())
