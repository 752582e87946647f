"""Uploaded files in memory, where Streamlit holds them: bounded for each session, network address and in all."""

import asyncio
import collections
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import runtime

from linearity_lab.jobs.profile import Profile
from linearity_lab.server._lines import line_of

MAX_FILES = 4  # of one session; a page shows one of them
MAX_SENDING = 8  # files that are on their way at once
SENDING_S = 120.0
_PATH = re.compile(r"/_stcore/upload_file/([^/]+)/([^/]+)\Z")
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Held:
    session: str
    file: str
    line: str
    num_bytes: int


class HeldUploads:
    """ASGI middleware that makes room for a file before it comes, at the cost of whoever holds most.

    A session loses its own older files first, then an address its own, then the address that holds most of all.

    Args:
        chosen: the profile, asked at every file.
        drop: lets go of a file of a session; by default Streamlit's.
        is_held: whether a file of a session is still there.
    """

    def __init__(
        self,
        app: ASGIApp,
        chosen: Callable[[], Profile],
        drop: Callable[[str, str], None] | None = None,
        is_held: Callable[[str, str], bool] | None = None,
    ):
        self._app, self._chosen = app, chosen
        self._drop, self._is_held = drop or _drop, is_held or _is_held
        self._held: list[_Held] = []  # in order of arrival
        self._sending = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = _PATH.search(scope["path"]) if scope["type"] == "http" and scope["method"] == "PUT" else None
        if found is None:
            await self._app(scope, receive, send)
            return
        limits = self._chosen()
        length = Headers(scope=scope).get("content-length", "")
        if not (length.isascii() and length.isdigit() and int(length[:12]) <= limits.max_upload_bytes + 2**20):
            await PlainTextResponse("The file is too large, or its size was not said.\n", 413)(scope, receive, send)
            return
        if self._sending >= MAX_SENDING:
            _LOG.warning("too many uploads at once")
            await PlainTextResponse("Many files are being sent; try again in a moment.\n", 503)(scope, receive, send)
            return
        coming = _Held(found[1], found[2], line_of(scope), int(length))
        self._make_room(coming, limits)
        self._held.append(coming)
        self._sending += 1
        status = 0

        async def note(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            async with asyncio.timeout(SENDING_S):
                await self._app(scope, receive, note)
        except TimeoutError:
            if not status:
                await PlainTextResponse("The file took too long.\n", 408)(scope, receive, send)
        finally:
            self._sending -= 1
            if not 200 <= status < 300 and coming in self._held:
                self._held.remove(coming)

    def _make_room(self, coming: _Held, limits: Profile) -> None:
        self._held = [each for each in self._held if self._is_held(each.session, each.file)]
        of_session = [each for each in self._held if each.session == coming.session]
        for each in of_session[: max(0, len(of_session) - MAX_FILES + 1)]:
            self._let_go(each)
        self._shrink(coming.num_bytes, 2 * limits.max_upload_bytes, lambda each: each.session == coming.session)
        # More than one session may hold, so that another one of the address keeps something.
        share = max(int(limits.address_share * limits.max_held_bytes), 3 * limits.max_upload_bytes)
        self._shrink(coming.num_bytes, share, lambda each: each.line == coming.line)
        while self._held and sum(each.num_bytes for each in self._held) + coming.num_bytes > limits.max_held_bytes:
            lines: collections.Counter[str] = collections.Counter()
            for each in self._held:
                lines[each.line] += each.num_bytes
            ((heaviest, _),) = lines.most_common(1)
            self._let_go(next(each for each in self._held if each.line == heaviest))

    def _shrink(self, coming: int, most: int, concerns: Callable[[_Held], bool]) -> None:
        own = [each for each in self._held if concerns(each)]
        while own and sum(each.num_bytes for each in own) + coming > most:
            self._let_go(own.pop(0))

    def _let_go(self, each: _Held) -> None:
        self._drop(each.session, each.file)
        self._held.remove(each)


def _drop(session: str, file: str) -> None:
    if runtime.exists():
        held: Any = runtime.get_instance().uploaded_file_mgr  # that of Streamlit's server, which has more than its type
        held.remove_file(session, file)


def _is_held(session: str, file: str) -> bool:
    return runtime.exists() and bool(runtime.get_instance().uploaded_file_mgr.get_files(session, [file]))
