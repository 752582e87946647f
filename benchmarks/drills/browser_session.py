"""A browser session without a browser: the protocol that Streamlit's page speaks with its server, over a web socket."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import urllib.request
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Self
from urllib.parse import parse_qs

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Common_pb2 import FileUploaderState, FileURLs, UploadedFileInfo
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
        listen: is given every message of the server, as its bytes.
        read: is given every text that the page shows.
        forwarded_for: the address that a proxy in front would say it comes from.

    Attributes:
        page: path of the page in the URL.
        query: the URL's query, as the page has set it.
        live: a part of the page waits for news, or the page is being run.
        errors: texts of exceptions that the page showed.
        options: of every choice, by its key.
        num_bytes: what the server has sent.
        alerts: texts of warnings, errors and notes that the last complete run of the page showed.
    """

    def __init__(
        self,
        url: str,
        page: str,
        query: str = "",
        listen: Callable[[bytes], None] | None = None,
        forwarded_for: str = "",
        read: Callable[[str], None] | None = None,
    ):
        self._url, self.page, self.query = url, page, query
        self._headers = {"X-Forwarded-For": forwarded_for} if forwarded_for else {}
        self._listen, self._read_text = listen, read
        self._page_hash = self._session_id = ""
        self._runs = False
        self._file_urls: asyncio.Queue[FileURLs] = asyncio.Queue()
        self._ids: dict[str, str] = {}
        self._fragments: dict[str, str] = {}  # of a widget, by its key: the part of the page that it belongs to
        self._values: dict[str, Any] = {}
        # Part of the page → what its component asks for: path, header, state that is drawn.
        self._watched: dict[str, tuple[str, tuple[str, str], str]] = {}
        self._finished = asyncio.Event()
        self.run_key = ""  # of the Run button shown last: a page may lead to another
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
            additional_headers=self._headers,
            ping_timeout=None,
            open_timeout=60,  # pages wait until the server has loaded their modules
        )
        self._reader = asyncio.create_task(self._read())
        self._asking = asyncio.create_task(self._ask_for_news())
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._reader.cancel()
        self._asking.cancel()
        await self._socket.close()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await self._reader

    @property
    def live(self) -> bool:
        return bool(self._watched) or self._runs

    async def act(self, changes: Mapping[str, object] | None = None, patience_s: float = 120.0) -> float:
        """Change widgets by their keys (:data:`CLICK` for a button); seconds until the page has been run to its end."""
        clicked = {key for key, value in (changes or {}).items() if value is CLICK}
        self._values |= {key: value for key, value in (changes or {}).items() if key not in clicked}
        began = time.perf_counter()
        self._finished.clear()
        await self.begin(*clicked)
        await asyncio.wait_for(self._finished.wait(), patience_s)
        return time.perf_counter() - began

    async def begin(self, *clicked: str, fragment_id: str = "") -> None:
        """Let the page, or a part of it, run with these buttons clicked, and wait for nothing."""
        await self._socket.send(self._rerun(set(clicked), fragment_id).SerializeToString())

    async def press(self, key: str) -> None:
        """Click a button and wait for nothing; where a part of the page has it, that part alone is run."""
        await self.begin(key, fragment_id=self._fragments.get(key, ""))

    async def visit(self, page: str, query: str = "") -> float:
        """Go to another page by its link; seconds until it has been run to its end."""
        self.page, self._page_hash, self.query = page, "", query
        self._values = {}
        return await self.act()

    async def run(self, page: str, query: str) -> str:
        """Go to a page with these settings and press Run; the id of the job, empty where there is none."""
        await self.visit(page, query)
        await self.act({f"{page}.run": CLICK})
        await self.act()  # a click's own run may end where another page begins
        return self.job_id

    async def upload(self, key: str, name: str, data: bytes) -> float:
        """Choose a file, as a browser does; seconds until the page has been run with it.

        Raises:
            urllib.error.HTTPError: the server does not take the file.
        """
        message = BackMsg()
        request = message.file_urls_request
        request.request_id, request.session_id = uuid.uuid4().hex, self._session_id
        request.file_names.append(name)
        await self._socket.send(message.SerializeToString())
        urls = await asyncio.wait_for(self._file_urls.get(), 60)
        http = self._url.replace("ws://", "http://")
        await asyncio.to_thread(put_file, http, urls.upload_url, name, data, self._headers)
        info = UploadedFileInfo(file_id=urls.file_id, name=name, size=len(data), file_urls=urls)
        return await self.act({key: FileUploaderState(uploaded_file_info=[info])})

    def _rerun(self, clicked: set[str], fragment_id: str = "") -> BackMsg:
        message = BackMsg()
        state = message.rerun_script
        state.query_string, state.page_script_hash = self.query, self._page_hash
        state.page_name = "" if self._page_hash else self.page
        state.fragment_id = fragment_id
        for key, value in self._values.items():
            state.widget_states.widgets.append(_widget_state(self._ids[key], value))
        for key in clicked:
            state.widget_states.widgets.append(WidgetState(id=self._ids[key], trigger_value=True))
        return message

    async def _read(self) -> None:
        async for raw in self._socket:
            assert isinstance(raw, bytes)
            self.num_bytes += len(raw)
            if self._listen is not None:
                self._listen(raw)
            message = ForwardMsg()
            message.ParseFromString(raw)
            self._take(message)

    def _take(self, message: ForwardMsg) -> None:
        kind = message.WhichOneof("type")
        if kind in ("new_session", "script_finished"):
            self._runs = kind == "new_session"
        if kind == "new_session" and not message.metadata.run.fragment_ids:
            self._session_id = message.new_session.initialize.session_id
            self._watched = {}
            self.alerts = []
        elif kind == "file_urls_response":
            self._file_urls.put_nowait(message.file_urls_response.file_urls[0])
        elif kind == "navigation":
            self._page_hash = message.navigation.page_script_hash
        elif kind == "page_info_changed":
            self.query = message.page_info_changed.query_string
        elif kind == "script_finished" and message.script_finished == FINISHED:
            self._finished.set()
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            self._take_element(message.delta.new_element, message.delta.fragment_id)

    def _take_element(self, element: Any, fragment_id: str) -> None:
        name = element.WhichOneof("type")
        shown = getattr(element, name)
        text = getattr(shown, "code_text" if name == "code" else "body", "")
        if self._read_text is not None and text and name in ("markdown", "alert", "heading", "code"):
            self._read_text(text)
        if name == "exception":
            self.errors.append(f"{shown.type}: {shown.message}")
        elif name == "alert":
            self.alerts.append(shown.body)
        elif name == "bidi_component" and shown.component_name in ("linearity_lab_jobs", "linearity_lab_news"):
            reported = json.loads(shown.json)
            if reported.get("kind") == "watch":
                drawn = reported["jobs"][0]["id"] + reported["jobs"][0]["seen"]
                self._watched[fragment_id] = reported["url"], ("X-Lab-Session", reported["session"]), drawn
            elif "watch" in reported:
                self._watched[fragment_id] = reported["url"], ("X-Lab-Watch", reported["watch"]), reported["seen"]
        elif "$$ID-" in getattr(shown, "id", ""):
            key = shown.id.removeprefix("$$ID-").split("-", 1)[1]
            self._ids[key] = shown.id
            self._fragments[key] = fragment_id
            if key.endswith(".run"):
                self.run_key = key
            if name == "selectbox":
                self.options[key] = tuple(shown.options)

    async def _ask_for_news(self) -> None:
        """Act as the page's components: poll states, and rerun their part when one has changed."""
        http, every_s = self._url.replace("ws://", "http://"), 0.3
        while True:
            await asyncio.sleep(every_s)
            for fragment_id, (path, header, drawn) in list(self._watched.items()):
                with contextlib.suppress(OSError):
                    headers = {**self._headers, header[0]: header[1]}
                    answer = await asyncio.to_thread(_get_json, f"{http}{path}", headers)
                    every_s = answer.get("every_s", 1.0)
                    states = {job["id"] + job["seen"] for job in answer.get("jobs", ())} | {answer.get("state")}
                    if drawn not in states and self._watched.get(fragment_id, ("", "", ""))[2] == drawn:
                        await self.begin(fragment_id=fragment_id)

    @property
    def job_id(self) -> str:
        """The job that the URL names."""
        return parse_qs(self.query).get("job", [""])[0]


def put_file(host: str, path: str, name: str, data: bytes, headers: Mapping[str, str] | None = None) -> None:
    """Send a file to where the server wants it, with its token against forged requests."""
    with urllib.request.urlopen(f"{host}/_stcore/health", timeout=60) as answer:
        cookie = str(answer.headers.get("Set-Cookie", "")).split(";")[0]
    boundary = uuid.uuid4().hex
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    request = urllib.request.Request(
        f"{host}/{path.removeprefix('/')}",
        data=head.encode() + data + f"\r\n--{boundary}--\r\n".encode(),
        method="PUT",
        headers={
            "Content-Type": f"multipart/form-data; boundary={boundary}",
            "Cookie": cookie,
            "X-Xsrftoken": cookie.partition("=")[2],
            **(headers or {}),
        },
    )
    with urllib.request.urlopen(request, timeout=60):
        pass


def _get_json(url: str, headers: Mapping[str, str]) -> Any:
    with urllib.request.urlopen(urllib.request.Request(url, headers=dict(headers)), timeout=60) as answer:
        return json.load(answer)


def _widget_state(widget_id: str, value: object) -> WidgetState:
    if isinstance(value, FileUploaderState):
        return WidgetState(id=widget_id, file_uploader_state_value=value)
    if isinstance(value, str):
        return WidgetState(id=widget_id, string_value=value)
    if isinstance(value, bool):
        return WidgetState(id=widget_id, bool_value=value)
    assert isinstance(value, int | float)
    return WidgetState(id=widget_id, double_value=float(value))
