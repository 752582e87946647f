"""Pages wait until what they need is loaded; what a browser needs besides does not."""

from __future__ import annotations

import asyncio
import threading

import pytest

from linearity_lab.server._loading import OnceLoaded


async def reached(kind: str, loaded: threading.Event) -> list[str]:
    """What has been let in after a moment, and then, once everything is loaded."""
    seen: list[str] = []

    async def app(scope, receive, send):
        seen.append("before" if not loaded.is_set() else "after")

    async def nothing(*_):
        return {}

    asking = asyncio.create_task(OnceLoaded(app, loaded)({"type": kind}, nothing, nothing))
    await asyncio.sleep(0.05)
    loaded.set()
    await asking
    return seen


@pytest.mark.parametrize(("kind", "when"), [("websocket", "after"), ("http", "before"), ("lifespan", "before")])
def test_only_web_sockets_wait_for_what_pages_need(kind, when):
    assert asyncio.run(reached(kind, threading.Event())) == [when]
