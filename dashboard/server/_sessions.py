"""Browser sessions: how many there may be, how much text they may send, how often they may have a page run."""

import asyncio
import collections
import logging
import time
from collections.abc import Callable

from google.protobuf.message import DecodeError
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg

from dashboard.jobs.profile import Profile
from dashboard.server._lines import line_of

MAX_TEXT = 200_000  # letters of one widget, or of a URL; a composition may have as many
# What somebody who drags a slider asks for, and then as fast as pages can be run for one.
RUNS_AT_ONCE, RUNS_PER_S = 30.0, 5.0
OPENED_AT_ONCE, OPENED_PER_S = 30.0, 0.5
MAX_LINES = 10_000
_TOO_MUCH, _TRY_LATER = 1009, 1013
_LOG = logging.getLogger(__name__)


class Allowance:
    """So many at once, and then so many a second.

    Args:
        clock: seconds.
    """

    def __init__(self, at_once: float, per_s: float, clock: Callable[[], float] = time.monotonic):
        self._at_once, self._per_s, self._clock = at_once, per_s, clock
        self._left, self._since = at_once, clock()

    def wait_s(self) -> float:
        """Take one; how long it should be waited before."""
        now = self._clock()
        self._left = min(self._at_once, self._left + (now - self._since) * self._per_s) - 1
        self._since = now
        return max(0.0, -self._left / self._per_s)

    def refuse(self) -> bool:
        """Take one, unless there is none."""
        if self.wait_s() > 0:
            self._left += 1
            return True
        return False


class BoundedSessions:
    """ASGI middleware that refuses a session too many, and lets one that asks for more than its share wait.

    What is refused is said once in the log, never to whom.

    Args:
        chosen: the profile, asked at every new session.
    """

    def __init__(self, app: ASGIApp, chosen: Callable[[], Profile]):
        self._app, self._chosen = app, chosen
        self._open: collections.Counter[str] = collections.Counter()
        self._opened: collections.OrderedDict[str, Allowance] = collections.OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        line, limits = line_of(scope), self._chosen()
        why = self._refusal(line, limits)
        if why:
            _LOG.warning("a session was refused", extra={"facts": {"why": why, "sessions": self._open.total()}})
            await receive()  # the connection
            await send({"type": "websocket.close", "code": _TRY_LATER})
            return
        self._open[line] += 1
        try:
            await self._app(scope, _bounded(receive, send, limits.is_shared), send)
        finally:
            self._open[line] -= 1
            if not self._open[line]:
                del self._open[line]

    def _refusal(self, line: str, limits: Profile) -> str:
        if self._open.total() >= limits.max_sessions:
            return "too many sessions"
        if not line:
            return ""
        if self._open[line] >= limits.max_sessions_per_address:
            return "too many sessions of one address"
        if limits.name != "hosted":  # a room has one address and comes at once
            return ""
        allowance = self._opened.setdefault(line, Allowance(OPENED_AT_ONCE, OPENED_PER_S))
        self._opened.move_to_end(line)
        if len(self._opened) > MAX_LINES:
            self._opened.popitem(last=False)
        return "too many new sessions of one address" if allowance.refuse() else ""


def _bounded(receive: Receive, send: Send, is_shared: bool) -> Receive:
    runs = Allowance(RUNS_AT_ONCE, RUNS_PER_S)

    async def bounded() -> Message:
        message = await receive()
        asked = BackMsg()
        try:
            asked.ParseFromString(message.get("bytes") or b"")
        except DecodeError:
            return message  # Streamlit's to complain about
        if asked.WhichOneof("type") != "rerun_script":
            return message
        if _longest_text(asked) > MAX_TEXT:
            _LOG.warning("a text of a widget was too long")
            await send({"type": "websocket.close", "code": _TOO_MUCH})
            return {"type": "websocket.disconnect", "code": _TOO_MUCH}
        if is_shared and (wait_s := runs.wait_s()):
            await asyncio.sleep(wait_s)  # nothing more is read from it meanwhile, so nothing piles up here
        return message

    return bounded


def _longest_text(asked: BackMsg) -> int:
    states = asked.rerun_script.widget_states.widgets
    texts = [len(state.string_value) + len(state.json_value) for state in states]
    texts += [sum(map(len, state.string_array_value.data)) for state in states]
    return max([len(asked.rerun_script.query_string), *texts])
