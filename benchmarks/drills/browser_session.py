"""A browser session without a browser: the protocol that Streamlit's page speaks with its server, over a web socket."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import parse_qs

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

FINISHED = ForwardMsg.FINISHED_SUCCESSFULLY
CLICK = object()


class BrowserSession:
    """One tab on one page; an asynchronous context manager.

    Args:
        url: ``ws://host:port`` of the server.
        page: path of the page in the URL.

    Attributes:
        query: the URL's query, as the page has set it.
        live: a part of the page refreshes itself.
        errors: texts of exceptions that the page showed.
        options: of every choice, by its key.
        num_bytes: what the server has sent.
        alerts: texts of warnings, errors and notes that the last complete run of the page showed.
    """

    def __init__(self, url: str, page: str, query: str = ""):
        self._url, self._page, self.query = url, page, query
        self._page_hash = ""
        self._ids: dict[str, str] = {}
        self._values: dict[str, Any] = {}
        self._refreshing: dict[str, asyncio.Task[None]] = {}
        self._finished = asyncio.Event()
        self.errors: list[str] = []
        self.alerts: list[str] = []
        self.options: dict[str, tuple[str, ...]] = {}
        self.num_bytes = 0

    async def __aenter__(self) -> Self:
        self._socket: ClientConnection = await connect(
            f"{self._url}/_stcore/stream",
            subprotocols=[Subprotocol("streamlit")],
            max_size=None,
            compression=None,
            ping_timeout=None,
        )
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._stop_refreshing()
        self._reader.cancel()
        await self._socket.close()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await self._reader

    @property
    def live(self) -> bool:
        return bool(self._refreshing)

    async def act(self, changes: Mapping[str, object] | None = None, patience_s: float = 120.0) -> float:
        """Change widgets by their keys (:data:`CLICK` for a button); seconds until the page has been run to its end."""
        clicked = {key for key, value in (changes or {}).items() if value is CLICK}
        self._values |= {key: value for key, value in (changes or {}).items() if key not in clicked}
        began = time.perf_counter()
        self._finished.clear()
        await self._socket.send(self._rerun(clicked).SerializeToString())
        await asyncio.wait_for(self._finished.wait(), patience_s)
        return time.perf_counter() - began

    def _rerun(self, clicked: set[str], fragment_id: str = "") -> BackMsg:
        message = BackMsg()
        state = message.rerun_script
        state.query_string, state.page_script_hash = self.query, self._page_hash
        state.page_name = "" if self._page_hash else self._page
        state.fragment_id, state.is_auto_rerun = fragment_id, bool(fragment_id)
        for key, value in self._values.items():
            state.widget_states.widgets.append(_widget_state(self._ids[key], value))
        for key in clicked:
            state.widget_states.widgets.append(WidgetState(id=self._ids[key], trigger_value=True))
        return message

    async def _read(self) -> None:
        async for raw in self._socket:
            assert isinstance(raw, bytes)
            self.num_bytes += len(raw)
            message = ForwardMsg()
            message.ParseFromString(raw)
            self._take(message)

    def _take(self, message: ForwardMsg) -> None:
        kind = message.WhichOneof("type")
        if kind == "new_session" and not message.metadata.run.fragment_ids:
            self._stop_refreshing()
            self.alerts = []
        elif kind == "navigation":
            self._page_hash = message.navigation.page_script_hash
        elif kind == "page_info_changed":
            self.query = message.page_info_changed.query_string
        elif kind == "stop_auto_rerun":
            for fragment_id in message.stop_auto_rerun.fragment_ids:
                self._refreshing.pop(fragment_id).cancel()
        elif kind == "auto_rerun":
            self._refresh(message.auto_rerun.fragment_id, message.auto_rerun.interval)
        elif kind == "script_finished" and message.script_finished == FINISHED:
            self._finished.set()
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            self._take_element(message.delta.new_element)

    def _take_element(self, element: Any) -> None:
        name = element.WhichOneof("type")
        shown = getattr(element, name)
        if name == "exception":
            self.errors.append(f"{shown.type}: {shown.message}")
        elif name == "alert":
            self.alerts.append(shown.body)
        elif "$$ID-" in getattr(shown, "id", ""):
            key = shown.id.removeprefix("$$ID-").split("-", 1)[1]
            self._ids[key] = shown.id
            if name == "selectbox":
                self.options[key] = tuple(shown.options)

    def _refresh(self, fragment_id: str, interval_s: float) -> None:
        async def again() -> None:
            while True:
                await asyncio.sleep(interval_s)
                await self._socket.send(self._rerun(set(), fragment_id).SerializeToString())

        if fragment_id not in self._refreshing:
            self._refreshing[fragment_id] = asyncio.create_task(again())

    def _stop_refreshing(self) -> None:
        for task in self._refreshing.values():
            task.cancel()
        self._refreshing = {}

    @property
    def job_id(self) -> str:
        """The job that the URL names."""
        return parse_qs(self.query).get("job", [""])[0]


def _widget_state(widget_id: str, value: object) -> WidgetState:
    if isinstance(value, str):
        return WidgetState(id=widget_id, string_value=value)
    if isinstance(value, bool):
        return WidgetState(id=widget_id, bool_value=value)
    assert isinstance(value, int | float)
    return WidgetState(id=widget_id, double_value=float(value))
