"""Admission of visitors, rates of requests per session, and memory of uploads."""

import asyncio
import gc
import inspect
import io
import threading
import time
import tomllib
import weakref
from copy import deepcopy
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from starlette.responses import PlainTextResponse
from streamlit import config
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import runtime_util
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.runtime import Runtime
from streamlit.runtime.uploaded_file_manager import UploadedFileRec
from streamlit.runtime.websocket_session_manager import WebsocketSessionManager

from linearity_lab.dashboard import session
from linearity_lab.dashboard.jobs.uploads import show_file
from linearity_lab.dashboard.server import _app, _visitors, garbage
from linearity_lab.dashboard.server._visitors import (
    LEFT_S,
    AllowedHosts,
    WebSockets,
    allowed_hosts,
    remove_left,
    shrink,
    shrink_on_arrival,
)
from linearity_lab.installation import TOP
from ntk_core.errors import InvalidInput
from tests.hosting.answer import Answer

READY = threading.Event()
READY.set()


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch):
    for name in ("LINEARITY_LAB_PROFILE", "LINEARITY_LAB_HOSTS"):
        monkeypatch.delenv(name, raising=False)


OTHERS = ("class.example.org", "lab.example.org.evil.example", "evilclass.example.org", "")


@pytest.mark.parametrize(
    "host",
    [
        "lab.example.org",
        "LAB.example.org:443",
        "a.class.example.org",
        "localhost:8501",
        "[::1]:8501",
        *OTHERS,
    ],
)
def test_only_allowed_hosts_are_answered(monkeypatch, host):
    monkeypatch.setenv("LINEARITY_LAB_HOSTS", "lab.example.org, *.class.example.org")
    app = AllowedHosts(PlainTextResponse("a page"))
    assert Answer(app, host=host).status == (400 if host in OTHERS else 200)


def test_a_local_server_answers_to_loopback_names_only(monkeypatch):
    def listening_at(address: str | None) -> tuple[str, ...]:
        monkeypatch.setattr(_visitors.st, "get_option", lambda _: address)
        return allowed_hosts()

    assert "localhost" in listening_at("localhost")
    assert listening_at("0.0.0.0") == listening_at(None) == ("*",)
    monkeypatch.setenv("LINEARITY_LAB_HOSTS", "*")
    assert listening_at("localhost") == ("*",)
    monkeypatch.setenv("LINEARITY_LAB_HOSTS", "lab.example.org,http://x")
    with pytest.raises(InvalidInput, match=r"LINEARITY_LAB_HOSTS: http://x"):
        allowed_hosts()


class Session:
    """An application behind the middleware that records messages."""

    def __init__(self, loaded: threading.Event = READY, **headers: str):
        self.messages: list[bytes] = []
        self.sent: list[dict] = []
        self.is_open = False
        self._app = WebSockets(self._note, loaded)
        self._headers = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def _note(self, scope, receive, send):
        self.is_open = True
        while (message := await receive())["type"] == "websocket.receive":
            self.messages.append(message["bytes"])

    async def open(self, *messages: bytes) -> None:
        queue = [{"type": "websocket.receive", "bytes": each} for each in messages]

        async def receive():
            return queue.pop(0) if queue else {"type": "websocket.disconnect"}

        async def send(message):
            self.sent.append(message)

        await self._app({"type": "websocket", "headers": self._headers}, receive, send)


OWN_ORIGINS = ("http://lab.example.org:8501", "https://LAB.example.org:8501", None)
OTHER_ORIGINS = (
    "http://localhost:1234",
    "http://lab.example.org",
    "http://lab.example.org.evil.example:8501",
    "null",
)


@pytest.mark.parametrize("origin", [*OWN_ORIGINS, *OTHER_ORIGINS])
def test_only_own_pages_open_web_sockets(origin):
    session = Session(host="lab.example.org:8501", **({"origin": origin} if origin else {}))
    asyncio.run(session.open())
    assert session.is_open == (origin in OWN_ORIGINS)
    assert session.sent == ([] if session.is_open else [{"type": "websocket.close", "code": 1008}])


def test_a_large_message_ends_its_session():
    session = Session()
    asyncio.run(session.open(b"x", b"x" * (_visitors.MAX_MESSAGE_BYTES + 1), b"y"))
    assert session.messages == [b"x"]
    assert session.sent == [{"type": "websocket.close", "code": 1009}]


def test_limits_of_received_messages_agree():
    """The web socket, Streamlit and the middleware refuse the same messages."""
    server = tomllib.loads((TOP / ".streamlit" / "config.toml").read_text())["server"]
    assert server["maxMessageSize"] * 1_000_000 == _visitors.MAX_MESSAGE_BYTES
    assert server["maxWidgetStateSize"] * 1_000_000 == _visitors.MAX_MESSAGE_BYTES


def test_large_figures_reach_browsers(monkeypatch):
    """The private cache would keep the limit of received messages.

    Another Streamlit may rename it.
    """
    monkeypatch.setattr(runtime_util, "_max_message_size_bytes", None)
    before = config.get_option("server.maxMessageSize")
    config.set_option("server.maxMessageSize", 1)
    figure = ForwardMsg()
    figure.delta.new_element.markdown.body = "x" * 2_000_000
    try:
        assert len(runtime_util.serialize_forward_msg(deepcopy(figure))) < 1_000_000
        _app.allow_large_figures()
        assert len(runtime_util.serialize_forward_msg(deepcopy(figure))) > 2_000_000
    finally:
        config.set_option("server.maxMessageSize", before)


@pytest.mark.parametrize(
    ("profile", "waits"), [("local", False), ("classroom", True), ("hosted", True)]
)
def test_messages_of_a_session_wait_on_a_shared_server(monkeypatch, profile, waits):
    monkeypatch.setenv("LINEARITY_LAB_PROFILE", profile)
    monkeypatch.setattr(_visitors, "BURST", 3.0)
    session, slept = Session(), []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(_visitors.asyncio, "sleep", sleep)
    asyncio.run(session.open(*[b"x"] * 5))
    assert len(session.messages) == 5, "delayed, not dropped"
    # The sixth is the disconnection; without real waits the delays add up at three
    # messages a second.
    assert slept == (pytest.approx([0, 0, 0, 1 / 3, 2 / 3, 1], abs=0.1) if waits else [])


@pytest.mark.parametrize(
    ("seen", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        (None, ""),
        ("unix:", ""),
    ],
)
def test_clients_count_by_address_or_network(monkeypatch, seen, counted):
    monkeypatch.setattr(session.st, "context", SimpleNamespace(ip_address=seen))
    assert session.network_address() == counted


def test_pages_wait_until_modules_are_loaded():
    async def story() -> list[bool]:
        loaded = threading.Event()
        session = Session(loaded)
        opening = asyncio.create_task(session.open())
        await asyncio.sleep(0.05)
        before = session.is_open
        loaded.set()
        await opening
        return [before, session.is_open]

    assert asyncio.run(story()) == [False, True]


def test_uploads_shrink_at_the_cost_of_the_heaviest_session():
    held = MemoryUploadedFileManager("")
    held.add_file("visitor", UploadedFileRec("mine", "a.csv", "", b"x" * 10))
    for index in range(9):
        held.add_file("heavy", UploadedFileRec(str(index), "b.csv", "", b"x" * 20))
    shrink(held, 100)
    assert list(held.file_storage["heavy"]) == ["5", "6", "7", "8"]
    assert list(held.file_storage["visitor"]) == ["mine"]


def test_uploads_are_bounded_when_they_arrive():
    held = MemoryUploadedFileManager("")
    shrink_on_arrival(held, 100)
    shown = io.BytesIO(b"x" * 60)
    read = show_file("0", shown, 60)
    for index in range(4):
        held.add_file(f"session {index % 2}", UploadedFileRec(str(index), "a.csv", "", b"x" * 60))
        assert sum(len(each.data) for each in held.file_storage["session 0"].values()) <= 100
        num_files = sum(len(files) for files in held.file_storage.values())
        assert num_files == 1
    assert shown.getvalue() == b""  # the session's own copy is freed, too
    with pytest.raises(InvalidInput, match="this busy server has dropped"):
        read()


def test_uploads_of_visitors_who_left_are_removed_by_time():
    uploads = MemoryUploadedFileManager("/upload")
    for name in ("here", "left", "reloads"):
        uploads.add_file(name, UploadedFileRec("1", "a.csv", "text/csv", b"1"))
    connected = {"here"}
    left_s: dict[str, float] = {}
    remove_left(uploads, connected.__contains__, left_s, 0.0)
    remove_left(uploads, connected.__contains__, left_s, LEFT_S - 1)
    assert set(uploads.file_storage) == {"here", "left", "reloads"}
    connected.add("reloads")
    remove_left(uploads, connected.__contains__, left_s, LEFT_S)
    connected.remove("reloads")
    remove_left(uploads, connected.__contains__, left_s, LEFT_S + 1)
    assert set(uploads.file_storage) == {"here", "reloads"}
    remove_left(uploads, connected.__contains__, left_s, LEFT_S + 2)
    assert set(left_s) == {"reloads"}


def test_failing_background_work_is_logged_and_repeated(caplog):
    outcomes: list[type[Exception] | None] = [None, ValueError, ValueError, None, KeyError, None]
    seen: list[type[Exception] | None] = []

    async def work() -> None:
        seen.append(outcomes[len(seen)])
        if len(seen) == len(outcomes):
            raise asyncio.CancelledError
        if seen[-1] is not None:
            raise seen[-1]

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(_visitors.repeat(work, 0.0))
    assert seen == outcomes
    assert [record.exc_info[0] for record in caplog.records] == [ValueError, KeyError]


def test_live_sessions_are_not_frozen():
    """Their reference cycles would never be collected."""
    before = gc.get_freeze_count()
    for _ in range(2):
        garbage.collect_garbage("a page that no test opens")
    assert gc.get_freeze_count() == before


def test_closed_sessions_are_dropped_after_their_time():
    storage = MemorySessionStorage(ttl_seconds=0.05)
    closed = Mock()
    closed.session.id = "closed"
    storage.save(closed)
    manager = SimpleNamespace(_session_storage=storage, list_sessions=storage.list)
    left = weakref.ref(closed)
    del closed
    time.sleep(0.1)
    assert left() is not None
    assert _visitors.expire_sessions(SimpleNamespace(_session_mgr=manager)) == []
    gc.collect()
    assert left() is None
    assert _visitors.expire_sessions(SimpleNamespace()) == []


def test_streamlit_keeps_closed_sessions_where_we_expire_them():
    """The attributes are private.

    A version that renames them would leave closed sessions in memory.
    """
    storage = MemorySessionStorage(ttl_seconds=0.05)
    server = SimpleNamespace(_session_mgr=WebsocketSessionManager(storage, *[Mock()] * 3))
    closed = Mock()
    closed.session.id = "closed"
    storage.save(closed)
    assert _visitors.expire_sessions(server) == [closed]
    time.sleep(0.1)
    assert _visitors.expire_sessions(server) == []
    assert "self._session_mgr = " in inspect.getsource(Runtime.__init__)
