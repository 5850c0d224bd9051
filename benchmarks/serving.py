"""Many clients of `moses-feature serve` at once, each answer compared with that of the command.

    python benchmarks/serving.py SYSTEM TEXT [--clients 64] [--minutes 10] [--jobs 2]

TEXT is tokenised. Clients ask for 1 to 50 sentences in a request, again and again. After a third
and after two thirds of the time a translating process is killed. Printed are requests, sentences,
times, and the memory of the server and its processes after a quarter and at the end. A wrong or
lost answer ends it with an error.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

LONGEST = 50
PAUSE = 0.5


def command(*words: str) -> list[str]:
    """Return a command line of moses-feature."""
    return [sys.executable, "-m", "moses_feature", *words]


class Load:
    """Clients, and what they have seen.

    Args:
        port: of the server.
        lines: sentences.
        expected: their translations.
    """

    def __init__(self, port: int, lines: list[str], expected: list[str]) -> None:
        self._port, self._lines, self._expected = port, lines, expected
        self._lock = threading.Lock()
        self.seconds: list[float] = []
        self.sentences = self.busy = 0
        self.wrong: list[str] = []

    def client(self, seed: int, until: float) -> None:
        """Ask until a point in time."""
        rng = random.Random(seed)  # noqa: S311
        while time.monotonic() < until and not self.wrong:
            places = rng.choices(range(len(self._lines)), k=rng.randint(1, LONGEST))
            begun = time.monotonic()
            status, content = self._ask([self._lines[place] for place in places])
            if status == 429:
                with self._lock:
                    self.busy += 1
                time.sleep(PAUSE)
                continue
            found = [of.get("text") for of in content.get("translations", [])]
            with self._lock:
                if found != [self._expected[place] for place in places]:
                    self.wrong.append(f"status {status}: {content}"[:2000])
                self.seconds.append(time.monotonic() - begun)
                self.sentences += len(places)

    def _ask(self, texts: list[str]) -> tuple[int, dict[str, list[dict[str, str]]]]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=600)
        body = json.dumps({"texts": texts})
        connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = json.loads(answer.read())
        connection.close()
        return answer.status, content


def children_of(process: int) -> list[int]:
    """Return the processes that a process has started."""
    return [
        int(line.split()[0])
        for line in subprocess.run(
            ["ps", "-e", "-o", "pid=,ppid="],  # noqa: S607
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        if int(line.split()[1]) == process
    ]


def memory_of(processes: list[int]) -> int:
    """Return the resident memory of processes, in MiB."""
    texts = [Path(f"/proc/{process}/status").read_text() for process in processes]
    found = [re.search(r"VmRSS:\s+(\d+)", text) for text in texts]
    return sum(int(of[1]) for of in found if of) >> 10


def main() -> None:
    """Run the clients and print what they saw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("system")
    parser.add_argument("text")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    lines = Path(given.text).read_text().splitlines()
    translate = command("translate", given.system, "--tokens")
    text = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(translate, input=text, capture_output=True, text=True, check=True)  # noqa: S603
    options = ["--tokens", "--port", "0", "--jobs", f"{given.jobs}", "--time-limit", "600"]
    server = subprocess.Popen(  # noqa: S603
        command("serve", given.system, *options),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stderr is not None
    port = next(int(f[1]) for line in server.stderr if (f := re.search(r":(\d+)$", line)))
    threading.Thread(target=server.stderr.read, daemon=True).start()
    load = Load(port, lines, done.stdout.splitlines())
    begun, seconds = time.monotonic(), 60 * given.minutes
    clients = [
        threading.Thread(target=load.client, args=(number, begun + seconds))
        for number in range(given.clients)
    ]
    for client in clients:
        client.start()
    time.sleep(seconds / 4)
    before = memory_of([server.pid, *children_of(server.pid)])
    for third in (1, 2):
        time.sleep(max(0.0, begun + seconds * third / 3 - time.monotonic()))
        os.kill(children_of(server.pid)[0], signal.SIGKILL)
    for client in clients:
        client.join()
    took = time.monotonic() - begun
    after = memory_of([server.pid, *children_of(server.pid)])
    server.terminate()
    code = server.wait()
    if load.wrong:
        sys.exit(f"a wrong answer: {load.wrong[0]}")
    p50, p99 = np.percentile(load.seconds, [50, 99])
    print(f"{len(load.seconds):,} requests, {load.sentences:,} sentences, all right")
    print(f"{load.sentences / took:.1f} sentences/s; a request: p50 {p50:.2f} s, p99 {p99:.2f} s")
    print(f"answered with 429 and asked again: {load.busy:,}; exit code {code}")
    print(f"memory {before:,} MiB after a quarter, {after:,} MiB at the end")


if __name__ == "__main__":
    main()
