"""A session without a browser: Streamlit's protocol over a web socket."""

import asyncio
import contextlib
import json
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qs

import requests
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Common_pb2 import FileUploaderState, FileURLs, UploadedFileInfo
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

FINISHED = ForwardMsg.FINISHED_SUCCESSFULLY
SOON_S = 0.3  # until the first request for a newly watched object, as in browsers
CLICK = object()


class Watched(NamedTuple):
    """Request of a polling component, and its drawn state."""

    path: str
    header: tuple[str, str]
    drawn: str


class BrowserSession:
    """One tab on one page; an asynchronous context manager.

    Args:
        url: ``ws://host:port`` of the server.
        page: path of the page in the URL.
        listen: receives every message of the server, as bytes.
        read: receives every text of the page.
        forwarded_for: client address that a proxy in front would report.
        cookie: ``name=value`` of the visitor's cookie, see :func:`visitor_cookie`.
    """

    def __init__(
        self,
        url: str,
        page: str,
        query: str = "",
        listen: Callable[[bytes], None] | None = None,
        forwarded_for: str = "",
        read: Callable[[str], None] | None = None,
        cookie: str = "",
    ):
        self._url = url
        self.page = page
        self.query = query
        self._headers = {"X-Forwarded-For": forwarded_for} if forwarded_for else {}
        if cookie:
            self._headers["Cookie"] = cookie
        self._listen = listen
        self._read_text = read
        self._page_hash = self._session_id = ""
        self._runs = False
        self._file_urls: asyncio.Queue[FileURLs] = asyncio.Queue()
        self._ids: dict[str, str] = {}
        self._fragments: dict[str, str] = {}  # part of the page of each widget, by its key
        self._values: dict[str, object] = {}
        self._watched: dict[str, Watched] = {}  # by part of the page
        self._asked_for: set[str] = set()  # names of all objects watched so far
        self._has_new_watch = asyncio.Event()
        self._finished = asyncio.Event()
        self.run_key = ""  # of the last Run button; a page may lead to another
        self.errors: list[str] = []  # texts of exceptions on the page
        self.alerts: list[
            str
        ] = []  # warnings, errors and notes of the last complete run of the page
        self.options: dict[str, tuple[str, ...]] = {}  # of every choice, by its key

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
        """Whether a part of the page polls, or the page runs."""
        return bool(self._watched) or self._runs

    async def act(
        self, changes: Mapping[str, object] | None = None, patience_s: float = 120.0
    ) -> float:
        """Change widgets by key (:data:`CLICK`: buttons); return seconds of the run."""
        clicked = {key for key, value in (changes or {}).items() if value is CLICK}
        self._values |= {key: value for key, value in (changes or {}).items() if key not in clicked}
        began = time.perf_counter()
        self._finished.clear()
        await self.begin(*clicked)
        await asyncio.wait_for(self._finished.wait(), patience_s)
        return time.perf_counter() - began

    async def begin(self, *clicked: str, fragment_id: str = "") -> None:
        """Start the page, or a part of it, with these buttons clicked."""
        message = BackMsg()
        state = message.rerun_script
        state.query_string = self.query
        state.page_script_hash = self._page_hash
        state.page_name = "" if self._page_hash else self.page
        state.fragment_id = fragment_id
        state.widget_states.widgets.extend(
            _widget_state(self._ids[key], value) for key, value in self._values.items()
        )
        state.widget_states.widgets.extend(
            WidgetState(id=self._ids[key], trigger_value=True) for key in clicked
        )
        await self._socket.send(message.SerializeToString())

    async def press(self, key: str) -> None:
        """Click a button without waiting; only its part of the page runs."""
        await self.begin(key, fragment_id=self._fragments.get(key, ""))

    async def visit(self, page: str, query: str = "") -> float:
        """Follow a link to another page; return seconds of its run."""
        self.page = page
        self._page_hash = ""
        self.query = query
        self._values = {}
        return await self.act()

    async def run(self, page: str, query: str) -> str:
        """Press Run on a page with settings; return the job's id."""
        await self.visit(page, query)
        return await self.press_run(page)

    async def press_run(self, page: str) -> str:
        """Press Run on this page; return the job's id, if any."""
        await self.act({f"{page}.run": CLICK})
        await self.act()  # a click's own run may end where another page begins
        return self.job_id

    async def upload(self, key: str, name: str, data: bytes) -> float:
        """Choose a file as browsers do; return seconds of the run.

        Raises:
            requests.HTTPError: if the server refuses the file.
        """
        message = BackMsg()
        request = message.file_urls_request
        request.request_id = uuid.uuid4().hex
        request.session_id = self._session_id
        request.file_names.append(name)
        await self._socket.send(message.SerializeToString())
        urls = await asyncio.wait_for(self._file_urls.get(), 60)
        http = self._url.replace("ws://", "http://")
        await asyncio.to_thread(put_file, http, urls.upload_url, name, data, self._headers)
        info = UploadedFileInfo(file_id=urls.file_id, name=name, size=len(data), file_urls=urls)
        return await self.act({key: FileUploaderState(uploaded_file_info=[info])})

    async def _read(self) -> None:
        async for raw in self._socket:
            assert isinstance(raw, bytes)
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

    def _take_element(self, element: Element, fragment_id: str) -> None:
        name = element.WhichOneof("type") or ""
        shown = getattr(element, name)
        text = getattr(shown, "code_text" if name == "code" else "body", "")
        if (
            self._read_text is not None
            and text
            and name in ("markdown", "html", "alert", "heading", "code")
        ):
            self._read_text(text)
        if name == "exception":
            self.errors.append(f"{shown.type}: {shown.message}")
        elif name == "alert":
            self.alerts.append(shown.body)
        elif name == "bidi_component" and shown.component_name in (
            "linearity_lab_jobs",
            "linearity_lab_news",
        ):
            reported = json.loads(shown.json)
            if reported.get("kind") == "watch":
                header = ("X-Lab-Session", reported["session"])
                job = reported["jobs"][0]
                watched = Watched(reported["url"], header, job["id"] + job["seen"])
                self._watch(fragment_id, job["id"], watched)
            elif "watch" in reported:
                header = ("X-Lab-Watch", reported["watch"])
                watched = Watched(reported["url"], header, reported["seen"])
                self._watch(fragment_id, reported["watch"], watched)
        elif "$$ID-" in getattr(shown, "id", ""):
            key = shown.id.removeprefix("$$ID-").split("-", 1)[1]
            self._ids[key] = shown.id
            self._fragments[key] = fragment_id
            if key.endswith(".run"):
                self.run_key = key
            if name == "selectbox":
                self.options[key] = tuple(shown.options)

    def _watch(self, fragment_id: str, name: str, watched: Watched) -> None:
        """Watch an object for a part of the page; ask soon for one that is new."""
        self._watched[fragment_id] = watched
        if name not in self._asked_for:
            self._asked_for.add(name)
            self._has_new_watch.set()

    async def _ask_for_news(self) -> None:
        """Poll as the page's components do; rerun changed parts."""
        http = self._url.replace("ws://", "http://")
        every_s = SOON_S
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._has_new_watch.wait(), every_s)
                await asyncio.sleep(SOON_S)
            self._has_new_watch.clear()
            for fragment_id, watched in list(self._watched.items()):
                with contextlib.suppress(OSError):
                    headers = {**self._headers, **dict([watched.header])}
                    found = await asyncio.to_thread(
                        requests.get, f"{http}{watched.path}", headers=headers, timeout=60
                    )
                    found.raise_for_status()
                    answer = found.json()
                    every_s = answer.get("every_s", 1.0)
                    states = {job["id"] + job["seen"] for job in answer.get("jobs", ())} | {
                        answer.get("state")
                    }
                    if watched.drawn not in states and self._watched.get(fragment_id) == watched:
                        await self.begin(fragment_id=fragment_id)

    @property
    def job_id(self) -> str:
        """Job in the URL."""
        return parse_qs(self.query).get("job", [""])[0]


def visitor_cookie(host: str) -> str:
    """Open a page as a new visitor; return the cookie that the server sets, or an empty text."""
    answer = requests.get(f"http://{host}/", headers={"Accept": "text/html"}, timeout=60)
    return "; ".join(
        f"{each.name}={each.value}" for each in answer.cookies if "visitor" in each.name
    )


def put_file(
    host: str, path: str, name: str, data: bytes, headers: Mapping[str, str] | None = None
) -> None:
    """Upload a file with the server's token against forged requests."""
    with requests.Session() as session:
        token = session.get(f"{host}/_stcore/health", timeout=60).cookies.get("_streamlit_xsrf")
        session.headers.update({"X-Xsrftoken": str(token), **(headers or {})})
        session.put(
            f"{host}/{path.removeprefix('/')}", files={"file": (name, data)}, timeout=60
        ).raise_for_status()


def _widget_state(widget_id: str, value: object) -> WidgetState:
    fields = {
        FileUploaderState: "file_uploader_state_value",
        str: "string_value",
        bool: "bool_value",
    }
    given: dict[str, Any] = {fields[type(value)]: value}
    return WidgetState(id=widget_id, **given)
