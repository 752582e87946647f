"""Pages wait for what they need to be loaded; everything else is answered meanwhile."""

import threading

from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send


class OnceLoaded:
    """Let web sockets in, which run the pages, only when ``loaded`` is set.

    Two threads that import the same modules for the first time can meet halfway and find them unfinished.
    """

    def __init__(self, app: ASGIApp, loaded: threading.Event):
        self.app, self._loaded = app, loaded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As an ASGI application."""
        if scope["type"] == "websocket" and not self._loaded.is_set():
            await run_in_threadpool(self._loaded.wait)
        await self.app(scope, receive, send)
