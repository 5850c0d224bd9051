"""The HTTP interface: JSON, XML-RPC, health, metrics, a page."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from moses_feature import __version__
from moses_feature.runtime.errors import LostProcessError, MosesFeatureError
from moses_feature.runtime.json_files import as_json
from moses_feature.serving.service import BusyError, Service, TooLongError
from moses_feature.serving.xml_rpc import (
    FAILED,
    PARSE_ERROR,
    RpcError,
    answer_of,
    fault,
    read_request,
)
from moses_feature.translation.translated import LINE_BREAKS, Translated

logger = logging.getLogger(__name__)

MOST_TRANSLATIONS = 1000
"""The most translations of a sentence in an answer."""
SECONDS_OF_A_BODY = 30.0
"""The longest time in which a client sends its request."""
SECONDS_UNTIL_RETRY = "1"
CLOSED = 499
"""The status, for `/metrics`, of a request whose client hung up before the answer."""
HOST = re.compile(r"\[?([A-Za-z0-9.:-]+?)\]?(?::[0-9]{1,5})?")
"""The header Host: a name or an address, and perhaps a port."""
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
PAGE = {
    "/": ("page.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
    "/openapi.json": ("openapi.json", "application/json"),
}
XML = "text/xml"


@dataclass(frozen=True)
class ServiceLimits:
    """What a request may be.

    Attributes:
        most_bytes: of its body.
        most_sentences: in it.
        hosts: the names by which it may call this machine; None for any.
        token: what it must bring to translate; None for nothing.
    """

    most_bytes: int
    most_sentences: int
    hosts: frozenset[str] | None
    token: str | None


class BadRequestError(MosesFeatureError):
    """A request that cannot be answered.

    Args:
        status: of the answer.
        message: what is wrong.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


Handler = Callable[[Request], Awaitable[Response]]


class Application:
    """Answers requests by a service.

    Args:
        service: translates.
        limits: of a request.

    Attributes:
        starlette: the application as a server runs it.
    """

    def __init__(self, service: Service, limits: ServiceLimits) -> None:
        self._service = service
        self._limits = limits
        routes = [
            self._route("/translate", self._translate, "POST"),
            self._route("/RPC2", self._rpc, "POST"),
            self._route("/health", self._health, "GET"),
            self._route("/metrics", self._metrics, "GET"),
        ]
        routes += [self._route(path, _page(*of), "GET") for path, of in PAGE.items()]
        self.starlette = Starlette(routes=routes)
        self.starlette.router.redirect_slashes = False  # to whatever host a client names

    def _route(self, path: str, handler: Handler, method: str) -> Route:
        async def answer(request: Request) -> Response:
            try:
                self._check_host(request)
                response = await handler(request)
            except BadRequestError as error:
                response = _error(error.status, f"{error}")
            except BusyError as error:
                response = _error(429, f"{error}")
                response.headers["Retry-After"] = SECONDS_UNTIL_RETRY
            except Exception:  # it is logged, and the client gets an answer all the same
                logger.exception("a request to %s failed", path)
                response = _error(500, "an error of this program; its log says more")
            response.headers.update(HEADERS)
            self._service.counts.answered(path, response.status_code)
            return response

        return Route(path, answer, methods=[method])

    def _check_host(self, request: Request) -> None:
        """Refuse names of this machine that pages of other servers could have given it."""
        hosts, named = self._limits.hosts, request.headers.getlist("host")
        found = [HOST.fullmatch(name) for name in named]
        if hosts is not None and not (len(found) == 1 and found[0] and found[0][1] in hosts):
            raise BadRequestError(400, f"expected a request for {' or '.join(sorted(hosts))}")

    def _check_token(self, request: Request) -> None:
        if self._limits.token is None:
            return
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), self._limits.token.encode()):
            raise BadRequestError(401, "expected the header Authorization: Bearer and the token")

    async def _body(self, request: Request) -> bytes:
        """Read the body of a request that may translate."""
        self._check_token(request)
        most, body = self._limits.most_bytes, bytearray()
        try:
            async with asyncio.timeout(SECONDS_OF_A_BODY):
                async for part in request.stream():
                    body += part
                    if len(body) > most:
                        raise BadRequestError(413, f"expected {most:,} bytes at most")
        except TimeoutError:
            raise BadRequestError(408, "expected a body within 30 seconds") from None
        except ClientDisconnect:
            raise BadRequestError(400, "expected a whole body") from None
        return bytes(body)

    async def _translate(self, request: Request) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip()
        if kind != "application/json":
            raise BadRequestError(415, "expected the content type application/json")
        texts, count, as_tokens = self._read(await self._body(request))
        answers = await self._translated(request, texts, count, as_tokens)
        return _json({"translations": [_content(answer) for answer in answers]})

    def _read(self, body: bytes) -> tuple[list[str], int, bool]:
        """Return the texts of a request, how many translations, and whether they are tokens."""
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            raise BadRequestError(400, "expected JSON") from None
        if not isinstance(content, dict):
            raise BadRequestError(400, "expected an object")
        count, as_tokens = content.get("list_size", 1), content.get("tokens", False)
        if unknown := sorted(content.keys() - {"text", "texts", "list_size", "tokens"}):
            raise BadRequestError(400, f"expected text, texts, list_size, tokens; found {unknown}")
        if type(count) is not int or not 1 <= count <= MOST_TRANSLATIONS:
            raise BadRequestError(400, f"list_size: expected 1 to {MOST_TRANSLATIONS}")
        if type(as_tokens) is not bool:
            raise BadRequestError(400, "tokens: expected true or false")
        return self._texts(content), count, as_tokens

    def _texts(self, content: dict[str, Any]) -> list[str]:
        """Return the texts of a request."""
        if {"text", "texts"} <= content.keys():
            raise BadRequestError(400, "expected text or texts, found both")
        texts = content.get("texts", [content.get("text")])
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise BadRequestError(400, "expected text, a string, or texts, a list of strings")
        if len(texts) > self._limits.most_sentences:
            most = self._limits.most_sentences
            raise BadRequestError(413, f"expected {most} texts at most, found {len(texts)}")
        texts = [text.rstrip("\r\n") for text in texts]
        if any(LINE_BREAKS.intersection(text) for text in texts):
            raise BadRequestError(400, "expected one sentence a text, found a line break")
        try:
            "".join(texts).encode()
        except UnicodeEncodeError:
            raise BadRequestError(400, "expected Unicode, found half of a character") from None
        return texts

    async def _translated(
        self, request: Request, texts: list[str], count: int, as_tokens: bool
    ) -> list[Translated | MosesFeatureError]:
        """Translate texts; when the client hangs up, what has not begun is dropped.

        Raises:
            BadRequestError: nobody is there any more.
        """
        self._service.admit(len(texts))
        each = (self._service.translate(text, count, as_tokens) for text in texts)
        work: asyncio.Future[list[Any]] = asyncio.gather(*each, return_exceptions=True)
        gone: asyncio.Future[Any] = asyncio.ensure_future(_hung_up(request))
        await asyncio.wait([work, gone], return_when=asyncio.FIRST_COMPLETED)
        gone.cancel()
        if not work.done():
            work.cancel()
            with suppress(asyncio.CancelledError):
                await work
            raise BadRequestError(CLOSED, "the client has hung up")
        answers: list[Translated | MosesFeatureError] = []
        for answer in work.result():
            if not isinstance(answer, Translated | MosesFeatureError):
                raise answer
            answers.append(answer)
        return answers

    async def _rpc(self, request: Request) -> Response:
        try:
            asked = read_request(await self._body(request), MOST_TRANSLATIONS)
        except RpcError as error:
            return Response(fault(PARSE_ERROR, f"{error}"), media_type=XML)
        (answer,) = await self._translated(request, [asked.text], max(1, asked.list_size), True)
        if isinstance(answer, MosesFeatureError):
            return Response(fault(FAILED, f"{answer}"), media_type=XML)
        return Response(answer_of(asked, answer), media_type=XML)

    async def _health(self, _: Request) -> Response:
        counts = self._service.counts
        content = {
            "status": "ok" if counts.workers else "no process",
            "version": __version__,
            "processes": counts.workers,
            "waiting": counts.waiting,
        }
        return _json(content, 200 if counts.workers else 503)

    async def _metrics(self, _: Request) -> Response:
        return Response(self._service.counts.text(), media_type="text/plain; version=0.0.4")


async def _hung_up(request: Request) -> None:
    """Return when the client of a request whose body was read has hung up."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _content(answer: Translated | MosesFeatureError) -> dict[str, Any]:
    if isinstance(answer, Translated):
        best = answer.translations[0]
        return {"text": best.text, **asdict(answer)}
    kind = {TooLongError: "too long", LostProcessError: "lost"}.get(type(answer), "bad sentence")
    return {"error": f"{answer}", "kind": kind}


def _error(status: int, message: str) -> Response:
    return _json({"error": message}, status)


def _json(content: dict[str, Any], status: int = 200) -> Response:
    return Response(as_json(content), status, media_type="application/json")


def _page(name: str, kind: str) -> Handler:
    content = (files(__package__) / "page" / name).read_bytes()

    async def answer(_: Request) -> Response:
        return Response(content, media_type=kind)

    return answer
