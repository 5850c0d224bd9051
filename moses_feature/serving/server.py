"""A server that ends in order."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from uvicorn import Server


class EndingServer(Server):
    """Answers what was asked, and returns, on Ctrl-C or SIGTERM; a second one ends it at once.

    uvicorn's own would raise the signal again when all is answered.
    """

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle the signals while the server runs."""
        loop, ending = asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM)
        for number in ending:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in ending:
                loop.remove_signal_handler(number)
