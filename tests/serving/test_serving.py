"""`moses-feature serve`: as a client, as a client of Moses, and as somebody who means harm."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import xmlrpc.client
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from helpers.serving import Served, serve

LINES = ["a b c", "d", "b x a", "c c", "a b c d a"]
TOKEN = "a-secret"  # noqa: S105


@pytest.fixture(scope="module")
def expected(ini) -> list[dict[str, Any]]:
    text = "".join(f"{line}\n" for line in LINES)
    command = [sys.executable, "-m", "moses_feature", "translate", ini, "--tokens", "--json"]
    done = subprocess.run(
        [*command, "--nbest-size", "3"], input=text, capture_output=True, text=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_answers_of_translate(served, expected):
    found = served.translate(texts=LINES, list_size=3)
    for answer, of in zip(found, expected, strict=True):
        assert answer["translations"] == of["translations"]
        assert answer["tokens"] == of["tokens"]
        assert answer["text"] == of["translations"][0]["text"]
    assert served.translate(text="")[0]["text"] == ""
    assert served.translate(texts=[]) == []


def test_many_clients_at_once(served, expected):
    def ask(number: int) -> bool:
        place = number % len(LINES)
        found = served.translate(texts=[LINES[place]] * (1 + number % 3))
        return all(of["text"] == expected[place]["translations"][0]["text"] for of in found)

    with ThreadPoolExecutor(8) as clients:
        assert all(clients.map(ask, range(40)))


def test_a_client_of_moses(served, expected):
    with xmlrpc.client.ServerProxy(f"http://127.0.0.1:{served.port}/RPC2") as moses:
        asked: Any = {"text": "a b c", "align": "true", "report-all-factors": "true", "nbest": 3}
        found: Any = moses.translate(asked)
        best = expected[0]["translations"]
        assert found["text"] == best[0]["tokens"] + " "
        assert [of["hyp"] for of in found["nbest"]] == [of["tokens"] + " " for of in best]
        assert [of["totalScore"] for of in found["nbest"]] == [of["score"] for of in best]
        places = [part.split("=")[0] for part in best[0]["phrases"].split()]
        starts = [int(place.split("-")[0]) for place in places]
        assert [phrase["src-start"] for phrase in found["align"]] == starts
        assert found["align"][0].keys() == {"tgt-start", "tgt-end", "src-start", "src-end"}
        plain: Any = moses.translate({"text": "d"})
        assert plain.keys() == {"text"}
        for end in ("\n", "\r\n"):  # as Moses' own clients send it
            assert moses.translate({"text": f"d{end}"}) == plain
            assert served.translate(text=f"d{end}")[0]["tokens"] == "d"
        spaces: Any = moses.translate({"text": "a\u00a0b\u3000c", "align": "true"})
        assert spaces["text"] == "a\u00a0b\u3000c "
        assert [of["src-end"] for of in spaces["align"]] == [0]
        for bad, message in (
            ({"text": "a", "sg": "true"}, "not supported: sg"),
            ({"align": "true"}, "Missing source text"),
            ({"text": "a", "nbest": -1}, "nbest: expected 0 to 1000, found -1"),
            ({"text": "a", "nbest": "9" * 5000}, "nbest: expected 0 to 1000, found 9{80}'>$"),
            ({"text": "a", "nbest": "\u0663"}, "nbest: expected 0 to 1000"),
            ({"text": "a\rb"}, "found a line break"),
            ({"text": "a|b"}, r"expected words without \|"),
        ):
            given: Any = bad
            with pytest.raises(xmlrpc.client.Fault, match=message):
                moses.translate(given)
        with pytest.raises(xmlrpc.client.Fault, match="the method translate, found updater"):
            moses.updater({})


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"{", 400, "expected JSON"),
        (b"[" * 15_000, 400, "expected JSON"),
        ([], 400, "an object"),
        ({}, 400, "expected text, a string"),
        ({"text": 1}, 400, "expected text, a string"),
        ({"texts": "a"}, 400, "a list of strings"),
        ({"text": "a", "path": "/etc/passwd"}, 400, "found ['path']"),
        ({"text": "a", "list_size": 0}, 400, "list_size: expected 1 to 1000"),
        ({"text": "a", "list_size": True}, 400, "list_size"),
        ({"text": "a", "tokens": 1}, 400, "true or false"),
        ({"text": "a\nb"}, 400, "one sentence a text"),
        ({"text": "a\u2028b\x85 c\v"}, 200, None),
        ({"text": "a", "texts": ["b"]}, 400, "found both"),
        (b'{"text": "\\ud800"}', 400, "half of a character"),
        ({"texts": ["a"] * 1001}, 413, "1000 texts at most"),
        (b'"' + b"a" * (1 << 20) + b'"', 413, "1,048,576 bytes at most"),
        ({"texts": ["a"] * 60, "list_size": 1}, 200, None),
    ],
)
def test_bad_requests(served, body, status, message):
    found, content = served.ask("/translate", body)
    assert found == status
    if message is not None:
        assert message in content["error"]


@pytest.mark.parametrize("text", ["a\0b", "a|b", " ".join(["a"] * 1500)])
def test_one_bad_sentence_is_an_answer_of_its_own(served, text):
    first, bad, last = served.translate(texts=["a b c", text, "d"])
    assert bad["kind"] == "bad sentence"
    assert bad["error"].startswith("expected")
    assert first["text"]
    assert last["text"]


def test_other_ways_to_ask(served):
    assert served.ask("/translate")[0] == 405
    assert served.ask("/nothing")[0] == 404
    assert served.ask("/../../etc/passwd")[0] == 404
    plain = {"Content-Type": "text/plain"}
    assert served.ask("/translate", {"text": "a"}, **plain)[0] == 415
    for host in ("evil.example", "evil.com:8080x", "localhost/x", "a@localhost", "[::1", ""):
        status, answer = served.ask("/translate", {"text": "a"}, Host=host)
        assert (status, answer["error"][:24]) == (400, "expected a request for 1")
    for host in ("localhost", "localhost:80", "127.0.0.1:1", "[::1]:8080"):
        assert served.ask("/health", Host=host)[0] == 200
    bomb = b'<!DOCTYPE x [<!ENTITY a "b">]><methodCall/>'
    assert "without a document type" in served.ask("/RPC2", bomb)[1]
    assert "without a document type" in served.ask("/RPC2", bomb.decode().encode("utf-16"))[1]
    assert "expected an XML-RPC call" in served.ask("/RPC2", b"\xff<")[1]
    assert served.ask("/translate/", {"text": "a"})[0] == 404


def test_page_health_metrics(served):
    status, page = served.ask("/")
    assert status == 200
    assert "http" not in page  # no outside sources
    for path in re.findall(r'(?:src|href)="([^"]+)"', page):
        assert served.ask(path)[0] == 200
    described = served.ask("/openapi.json")[1]
    assert {"/translate", "/RPC2", "/health", "/metrics"} == described["paths"].keys()
    status, health = served.ask("/health")
    assert (status, health["status"], health["processes"]) == (200, "ok", 2)
    before = _metric(served, "sentences_total")
    served.translate(texts=["a", "b"])
    assert _metric(served, "sentences_total") == before + 2
    assert _metric(served, "waiting_sentences") == 0


def _metric(served: Served, name: str) -> float:
    found = re.search(rf"^moses_feature_{name} (\S+)$", served.ask("/metrics")[1], re.MULTILINE)
    assert found is not None
    return float(found[1])


def test_clients_that_hang_up_or_dawdle(served):
    for content in (
        b"",
        b"POST /trans",
        b"POST /translate HTTP/1.1\r\nContent-Length: 99\r\n\r\n{",
    ):
        with socket.create_connection(("127.0.0.1", served.port)) as client:
            client.sendall(content)
    assert served.translate(text="a b c")[0]["text"]


def test_what_has_not_begun_is_dropped_when_a_client_hangs_up(served):
    body = json.dumps({"texts": LINES * 60}).encode()
    head = f"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    failed, lost = (_metric(served, f"{of}_total") for of in ("failed_sentences", "lost_processes"))
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        client.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
        while not _metric(served, "waiting_sentences"):
            pass
    while _metric(served, "waiting_sentences"):
        pass
    assert _metric(served, "failed_sentences_total") > failed
    assert _metric(served, "lost_processes_total") == lost
    assert 'path="/translate",status="499"} 1' in served.ask("/metrics")[1]
    assert served.translate(text="a b c")[0]["text"]


@pytest.mark.slow
def test_a_lost_process_is_replaced_and_its_sentence_translated(served, expected):
    lost = _metric(served, "lost_processes_total")
    children = f"/proc/{served.process.pid}/task/{served.process.pid}/children"
    if not Path(children).exists():
        pytest.skip("children of a process are not listed here")
    with ThreadPoolExecutor(4) as clients:
        answers = [clients.submit(served.translate, texts=LINES * 8) for _ in range(1)]
        time.sleep(0.02)
        os.kill(int(Path(children).read_text().split()[0]), signal.SIGKILL)
        for answer in answers:
            texts = [of["text"] for of in answer.result()]
            assert texts == [of["translations"][0]["text"] for of in expected] * 8
    served.translate(texts=LINES)
    for _ in range(600):
        if served.ask("/health")[1]["processes"] == 2:
            break
        time.sleep(0.1)
    assert _metric(served, "lost_processes_total") == lost + 1


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_when_all_is_answered(ini, how):
    served = serve(ini, "--jobs", 1)
    with ThreadPoolExecutor(1) as client:
        answer = client.submit(served.translate, texts=LINES * 10)
        while not (_metric(served, "waiting_sentences") or answer.done()):
            time.sleep(0.01)
        assert served.end(how) == 0
        assert len(answer.result()) == 50


@pytest.mark.slow
def test_too_much_and_too_long(ini):
    served = serve(ini, "--jobs", 1, "--time-limit", 0.001)
    late = served.translate(text="a b c d a")
    assert late[0]["kind"] == "too long"
    assert "within 0.001 seconds" in late[0]["error"]
    served.end()


@pytest.mark.slow
def test_a_token(ini, tmp_path):
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    served = serve(ini, "--jobs", 1, "--token", tmp_path / "token")
    assert served.ask("/translate", {"text": "a"})[0] == 401
    assert served.ask("/RPC2", b"<x/>")[0] == 401
    served.token = TOKEN
    assert served.translate(text="a")
    served.token = TOKEN + "x"
    assert served.ask("/translate", {"text": "a"})[0] == 401
    served.end()


def test_bad_starts(run, ini, tmp_path, served):
    (tmp_path / "empty").write_text("\n")
    for code, words, message in (
        (2, ("--host", "0.0.0.0"), "is open to others: give a --token"),  # noqa: S104
        (
            1,
            ("--token", tmp_path / "empty"),
            "expected a token of ASCII characters, found an empty file",
        ),
        (1, ("--token", tmp_path / "none"), "none: No such file or directory"),
        (1, ("--port", served.port), f"port {served.port}: Address already in use"),
    ):
        assert message in run("serve", ini, "--tokens", *words, exit_code=code).stderr
