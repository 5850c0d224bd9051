"""The command `moses-feature serve`."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import signal
import socket
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moses_feature.cli.common.command import Command
from moses_feature.cli.common.options import xml_option
from moses_feature.cli.common.paths import READ_SYSTEM_DIRECTORY
from moses_feature.cli.common.vocabulary import WholeRange, option
from moses_feature.cli.translate import warn_of_kept_phrases
from moses_feature.cli.tuning.options import SearchOptions, search_options
from moses_feature.runtime.errors import MosesFeatureError, UsageError, install
from moses_feature.runtime.processes import cores

if TYPE_CHECKING:
    from moses_feature.serving.app import ServiceLimits
    from moses_feature.serving.service import Service

logger = logging.getLogger(__name__)

LOOPBACK = ("localhost", "127.0.0.1", "::1")
MOST_SENTENCES, MOST_BYTES = 1000, 1 << 20
"""The most sentences and bytes of a request."""
MOST_WAITING = 1000
"""Sentences that wait at most; a request that would bring more is answered with 429."""
MOST_CONNECTIONS = 1000
"""Connections at a time; more are answered with 503."""


@click.command("serve", cls=Command, no_args_is_help=True)
@click.argument("system", type=READ_SYSTEM_DIRECTORY)
@option("host", "Where to listen.", default="127.0.0.1")
@option("port", "On which port; 0 for any free one.", default=8080, within=WholeRange(0, 65535))
@option("token", "A file with what clients must bring; needed beyond this machine.")
@option("tokens", "Texts are tokenised and cased as the system's texts are; so are answers.")
@option("time-limit", "Of a sentence, its waiting included.", default=60.0)
@xml_option
@search_options
def serve_command(
    system: str,
    host: str,
    port: int,
    token: str | None,
    tokens: bool,
    time_limit: float,
    xml_input: str | None,
    search: SearchOptions,
) -> None:
    """Translate for others by HTTP, XML-RPC and a page.

    POST /translate takes {"text": …} or {"texts": […]}, a sentence each, and may take list_size and
    tokens. POST /RPC2 is XML-RPC as mosesserver has it. GET / is a page, /openapi.json describes
    all, /health and /metrics are for those who watch. Nothing of a text is logged.

    SYSTEM is what `moses-feature translate` takes. A sentence is translated in one of --jobs
    processes. SIGTERM or Ctrl-C ends it when all that was asked is answered.

    \b
    Example:
      moses-feature serve tuned --port 8080
      curl localhost:8080/translate --json '{"text": "A man is walking."}'
    """
    if not _is_loopback(host) and token is None:
        raise UsageError(f"--host {host} is open to others: give a --token")
    _check_installed()
    from moses_feature.serving.app import ServiceLimits
    from moses_feature.serving.service import Service
    from moses_feature.translation.translated import make_translator

    warn_of_kept_phrases(system)
    jobs = search.jobs or cores()
    make = partial(make_translator, Path(system), tokens, search.limits, xml_input)
    service = Service(make, jobs, MOST_WAITING, time_limit)
    hosts = frozenset((*LOOPBACK, host)) if _is_loopback(host) else None
    limits = ServiceLimits(MOST_BYTES, MOST_SENTENCES, hosts, _secret(token))
    with _listening(host, port) as listener:
        try:
            asyncio.run(_serve(service, limits, listener))
        finally:
            service.close()


async def _serve(service: Service, limits: ServiceLimits, listener: socket.socket) -> None:
    from uvicorn import Config, Server

    from moses_feature.serving.app import Application

    await service.start()
    config = Config(
        Application(service, limits).starlette,
        lifespan="off",
        log_config=None,
        access_log=False,
        limit_concurrency=MOST_CONNECTIONS,
        server_header=False,
        ws="none",
    )
    name, port = listener.getsockname()[:2]
    logger.info("serving on http://%s:%d", f"[{name}]" if ":" in name else name, port)
    # uvicorn handles them, and raises them once more when all is answered
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    await Server(config).serve([listener])


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        MosesFeatureError: the port cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise MosesFeatureError(f"{host}, port {port}: {error.strerror}") from error
    # else small answers on a connection that stays open wait 40 ms for an acknowledgement
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _secret(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        secret = Path(path).read_text(errors="replace").strip()
    except OSError as error:
        raise MosesFeatureError(f"{path}: {error.strerror}") from error
    if not secret or not secret.isascii() or not secret.isprintable():
        found = "an empty file" if not secret else "others"
        raise MosesFeatureError(f"{path}: expected a token of ASCII characters, found {found}")
    return secret


def _check_installed() -> None:
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise UsageError(f"serving needs starlette and uvicorn: {install('serve')}") from None
