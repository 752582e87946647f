"""Browser sessions and requests: how many there may be, how much they may send, how often pages are run for them."""

import asyncio
import collections
import logging
import time
from collections.abc import Callable

from google.protobuf.message import DecodeError
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg

from linearity_lab.jobs.profile import Profile
from linearity_lab.server._lines import line_of

MAX_TEXT = 200_000  # letters of one widget, or of a URL; a composition may have as many
# What somebody who drags a slider asks for, and then as fast as pages can be run for one.
RUNS_AT_ONCE, RUNS_PER_S = 30.0, 3.0
# Of one network address on a host: sessions, what people in them ask for, and all other requests (a first visit makes
# fifty), of which none waits for longer than this.
OPENED_AT_ONCE, OPENED_PER_S = 30.0, 0.25
RUNS_OF_LINE_AT_ONCE, RUNS_OF_LINE_PER_S = 60.0, 3.0
REQUESTS_AT_ONCE, REQUESTS_PER_S, MAX_WAIT_S = 400.0, 20.0, 5.0
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

    def wait_or_refuse(self, most_s: float = 0.0) -> float | None:
        """The same; None, and none is taken, where that is longer than this."""
        wait_s = self.wait_s()
        if wait_s > most_s:
            self._left += 1
            return None
        return wait_s


class AllowanceByLine:
    """An allowance for each network address, of those that have asked last."""

    def __init__(self, at_once: float, per_s: float, clock: Callable[[], float] = time.monotonic):
        self._at_once, self._per_s, self._clock = at_once, per_s, clock
        self._known: collections.OrderedDict[str, Allowance] = collections.OrderedDict()

    def of(self, line: str) -> Allowance:
        found = self._known.setdefault(line, Allowance(self._at_once, self._per_s, self._clock))
        self._known.move_to_end(line)
        if len(self._known) > MAX_LINES:
            self._known.popitem(last=False)
        return found


class BoundedSessions:
    """ASGI middleware that refuses a session too many, and lets whoever asks for more than his share wait.

    What is refused is said once in the log, never to whom.

    Args:
        chosen: the profile, asked at every new session.
    """

    def __init__(self, app: ASGIApp, chosen: Callable[[], Profile]):
        self._app, self._chosen = app, chosen
        self._open: collections.Counter[str] = collections.Counter()
        self._opened = AllowanceByLine(OPENED_AT_ONCE, OPENED_PER_S)
        self._runs = AllowanceByLine(RUNS_OF_LINE_AT_ONCE, RUNS_OF_LINE_PER_S)
        self._requests = AllowanceByLine(REQUESTS_AT_ONCE, REQUESTS_PER_S)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        line, limits = line_of(scope), self._chosen()
        # A room has one address and comes at once; whoever sits at the server has none.
        own_share = line if limits.name == "hosted" else ""
        if scope["type"] != "websocket":
            wait_s = self._requests.of(line).wait_or_refuse(MAX_WAIT_S) if own_share else 0.0
            if wait_s is None:
                await PlainTextResponse("Too many requests\n", status_code=429)(scope, receive, send)
                return
            if wait_s:
                await asyncio.sleep(wait_s)
            await self._app(scope, receive, send)
            return
        if why := self._refusal(line, own_share, limits):
            _LOG.warning("a session was refused", extra={"facts": {"why": why, "sessions": self._open.total()}})
            await receive()  # the connection
            await send({"type": "websocket.close", "code": _TRY_LATER})
            return
        runs = [Allowance(RUNS_AT_ONCE, RUNS_PER_S)] if limits.is_shared else []
        runs += [self._runs.of(line)] if own_share else []
        self._open[line] += 1
        try:
            await self._app(scope, _bounded(receive, send, runs), send)
        finally:
            self._open[line] -= 1
            if not self._open[line]:
                del self._open[line]

    def _refusal(self, line: str, own_share: str, limits: Profile) -> str:
        if self._open.total() >= limits.max_sessions:
            return "too many sessions"
        if line and self._open[line] >= limits.max_sessions_per_address:
            return "too many sessions of one address"
        if own_share and self._opened.of(line).wait_or_refuse() is None:
            return "too many new sessions of one address"
        return ""


def _bounded(receive: Receive, send: Send, runs: list[Allowance]) -> Receive:
    """Messages of a session: a text that is too long ends it, a run that is too much waits.

    Args:
        runs: of the session, then of its network address, which counts no refreshes: those come by the clock.
    """

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
        by_itself = asked.rerun_script.is_auto_rerun and asked.rerun_script.fragment_id
        if wait_s := max((each.wait_s() for each in (runs[:1] if by_itself else runs)), default=0.0):
            await asyncio.sleep(wait_s)  # nothing more is read from it meanwhile, so nothing piles up here
        return message

    return bounded


def _longest_text(asked: BackMsg) -> int:
    states = asked.rerun_script.widget_states.widgets
    texts = [len(state.string_value) + len(state.json_value) for state in states]
    texts += [sum(map(len, state.string_array_value.data)) for state in states]
    return max([len(asked.rerun_script.query_string), *texts])
