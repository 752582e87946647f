"""Connections below HTTP: how many there may be, how long headers may take, how large a message may be."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from linearity_lab.jobs.profile import PROFILES, profile
from ntk_core.errors import InvalidInput

HEADER_S = 10.0
MAX_MESSAGE_BYTES = 2_500_000  # of what a browser sends at once; a drawn graph has some kilobytes
_LOG = logging.getLogger(__name__)
_Base: Any = AutoHTTPProtocol
_silent: dict[Any, None] = {}  # connections from which no request has come whole, the oldest first


class BoundedConnection(_Base):
    """One connection of uvicorn's, closed where no request comes whole in time; where there are too many, sooner."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Take it; one too many costs the one that has been silent longest, which may be this one."""
        super().connection_made(transport)
        self.config.ws_max_size = min(self.config.ws_max_size, MAX_MESSAGE_BYTES)
        self._wait()
        if len(self.connections) > _max_connections():
            _LOG.warning("too many connections", extra={"facts": {"connections": len(self.connections)}})
            # Whoever has waited longest without having asked for anything goes: who asks is answered.
            silent = next(iter(_silent))
            silent._wait_no_longer()
            silent.transport.abort()

    def data_received(self, data: bytes) -> None:
        """More of a request, which may be its beginning or its whole."""
        if self._waiting is None and not self._is_answering():
            self._wait()
        super().data_received(data)
        if self._is_answering():
            self._wait_no_longer()

    def handle_websocket_upgrade(self, *arguments: Any) -> None:
        """From now on it is a web socket."""
        self._wait_no_longer()
        super().handle_websocket_upgrade(*arguments)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed."""
        self._wait_no_longer()
        super().connection_lost(exc)

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(HEADER_S, self._give_up)
        _silent[self] = None

    def _wait_no_longer(self) -> None:
        _silent.pop(self, None)
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        _silent.pop(self, None)
        if not self._is_answering():
            self.transport.abort()


def bound_connections() -> None:
    """Let uvicorn, which Streamlit has started, take connections so.

    By the time ``app.py`` is imported uvicorn has chosen its class of connections and offers no way to name another
    one; so each connection becomes one of ours when it is made.
    """
    made = _Base.connection_made

    def bounded(connection: Any, transport: Any) -> None:
        if type(connection) is _Base:
            connection.__class__ = BoundedConnection
            connection.connection_made(transport)
        else:
            made(connection, transport)

    _Base.connection_made = bounded


def _max_connections() -> int:
    try:
        return profile().max_connections
    except InvalidInput:  # of which lifespan has told
        return PROFILES["hosted"].max_connections
