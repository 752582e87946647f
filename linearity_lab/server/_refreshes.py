"""A page that refreshes itself asks again only when it has been answered."""

import time

from google.protobuf.message import DecodeError
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

PATIENCE_S = 10.0  # what has not been answered for so long keeps nobody waiting any more
SHORT = 4096  # bytes; that a run has ended is said in far fewer


class OneRefreshAtATime:
    """ASGI middleware that drops a page's refresh of itself while a run of that page is under way.

    A browser asks by the clock, whether it has been answered or not, so the questions pile up where the server is slow.
    Worse, Streamlit throws away what a run has still to say when a refresh arrives just after its end: the page stays
    half drawn and never refreshes itself again. What people do is never dropped. Every page has at most one part that
    refreshes itself, so nobody else waits for a dropped turn.
    """

    def __init__(self, app: ASGIApp, patience_s: float = PATIENCE_S):
        self._app, self._patience_s = app, patience_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        busy_until = 0.0

        async def receive_in_turn() -> Message:
            nonlocal busy_until
            while True:
                message = await receive()
                by_itself = _asks_by_itself(message)
                if by_itself is None:
                    return message
                now = time.monotonic()
                if now >= busy_until or not by_itself:
                    busy_until = now + self._patience_s
                    return message

        async def send_and_look(message: Message) -> None:
            nonlocal busy_until
            await send(message)
            if _ends_a_run(message):
                busy_until = 0.0

        await self._app(scope, receive_in_turn, send_and_look)


def _asks_by_itself(message: Message) -> bool | None:
    """Whether the page asks for a run by the clock; None where it asks for none."""
    asked = BackMsg()
    try:
        asked.ParseFromString(message.get("bytes") or b"")
    except DecodeError:
        return None  # Streamlit's to complain about
    return asked.rerun_script.is_auto_rerun if asked.WhichOneof("type") == "rerun_script" else None


def _ends_a_run(message: Message) -> bool:
    """A run has ended, and no other one follows by itself."""
    raw = message.get("bytes") or b""
    if len(raw) >= SHORT:
        return False
    said = ForwardMsg()
    said.ParseFromString(raw)
    return said.WhichOneof("type") == "script_finished" and said.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN
