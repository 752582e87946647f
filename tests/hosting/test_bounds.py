"""What one visitor may take of a server: sessions, runs of pages, texts, files in memory, addresses, origins."""

from __future__ import annotations

import asyncio
import gzip
import logging
from dataclasses import replace
from types import SimpleNamespace

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from linearity_lab.jobs.profile import PROFILES
from linearity_lab.server import _sessions
from linearity_lab.server._compressed import CompressedScripts
from linearity_lab.server._connections import BoundedConnection
from linearity_lab.server._held_uploads import MAX_FILES, HeldUploads
from linearity_lab.server._hosts import CLOSED, AllowedHosts, ClosedPaths
from linearity_lab.server._lines import ForwardedAddress, trusted_hops
from linearity_lab.server._sessions import MAX_TEXT, OPENED_AT_ONCE, Allowance, BoundedSessions
from ntk_core.errors import InvalidInput
from tests.hosting.test_compressed import Files, answer

HOSTED = PROFILES["hosted"]
MIB = 2**20


def websocket(address: str = "192.0.2.7", **headers: str) -> dict:
    return {
        "type": "websocket",
        "path": "/_stcore/stream",
        "scheme": "ws",
        "client": (address, 1),
        "headers": [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()],
    }


class Pages:
    """An application whose sessions last until they are let go, and which notes what it is asked."""

    def __init__(self):
        self.scopes, self.messages, self.end = [], [], asyncio.Event()

    async def __call__(self, scope, receive, send):
        self.scopes.append(scope)
        assert (await receive())["type"] == "websocket.connect"
        while (message := await receive())["type"] == "websocket.receive":
            self.messages.append(message)
        await self.end.wait()


async def opened(app, scope, *messages, sent=None):
    """A task that keeps a session open and sends it messages."""
    queue = [{"type": "websocket.connect"}, *messages]
    said = [] if sent is None else sent

    async def receive():
        return queue.pop(0) if queue else {"type": "websocket.disconnect"}

    async def send(message):
        said.append(message)

    task = asyncio.create_task(app(scope, receive, send))
    await asyncio.sleep(0.01)
    return task, said


def rerun(text: str = "x", query: str = "") -> dict:
    asked = BackMsg()
    asked.rerun_script.query_string = query
    asked.rerun_script.widget_states.widgets.append(WidgetState(id="a", string_value=text))
    return {"type": "websocket.receive", "bytes": asked.SerializeToString()}


def test_sessions_of_an_address_and_of_all_are_bounded_and_places_become_free():
    limits = replace(HOSTED, max_sessions=5, max_sessions_per_address=2)

    async def story():
        pages = Pages()
        app = BoundedSessions(pages, lambda: limits)
        first = [await opened(app, websocket()) for _ in range(3)]
        assert [bool(said) for _, said in first] == [False, False, True]
        assert first[2][1] == [{"type": "websocket.close", "code": 1013}]
        others = [await opened(app, websocket(f"192.0.2.{10 + index}")) for index in range(4)]
        assert [bool(said) for _, said in others] == [False, False, False, True]
        pages.end.set()
        await asyncio.gather(*(task for task, _ in [*first, *others]))
        assert not (await opened(app, websocket()))[1]

    asyncio.run(story())


def test_an_ipv6_line_is_one_address_and_this_machine_is_none():
    limits = replace(HOSTED, max_sessions_per_address=2)

    async def story():
        app = BoundedSessions(Pages(), lambda: limits)
        line = [await opened(app, websocket(f"2001:db8::{index}")) for index in range(1, 4)]
        here = [await opened(app, websocket("127.0.0.1")) for _ in range(6)]
        assert [bool(said) for _, said in [*line, *here]] == [False, False, True] + [False] * 6
        for task, _ in [*line, *here]:
            task.cancel()

    asyncio.run(story())


def test_sessions_that_are_opened_and_closed_again_and_again_are_refused_after_a_while():
    async def story():
        pages = Pages()
        pages.end.set()
        app = BoundedSessions(pages, lambda: HOSTED)
        for _ in range(int(OPENED_AT_ONCE) + 20):
            task, _ = await opened(app, websocket())
            await task
        assert OPENED_AT_ONCE <= len(pages.scopes) < OPENED_AT_ONCE + 5
        before = len(pages.scopes)
        await opened(app, websocket("192.0.2.8"))
        assert len(pages.scopes) == before + 1

    asyncio.run(story())


@pytest.mark.parametrize("message", [rerun("x" * (MAX_TEXT + 1)), rerun(query="x" * (MAX_TEXT + 1))])
def test_a_text_that_is_too_long_ends_its_session_and_is_never_run(message):
    async def story():
        pages = Pages()
        pages.end.set()
        task, said = await opened(BoundedSessions(pages, lambda: HOSTED), websocket(), rerun("x" * 1000), message)
        await task
        assert said == [{"type": "websocket.close", "code": 1009}]
        assert len(pages.messages) == 1

    asyncio.run(story())


def test_who_asks_for_run_after_run_waits_and_nothing_is_dropped():
    clock = [0.0]
    allowance = Allowance(at_once=3, per_s=2, clock=lambda: clock[0])
    assert [allowance.wait_s() for _ in range(5)] == [0, 0, 0, 0.5, 1.0]
    clock[0] = 100.0
    assert [allowance.wait_s() for _ in range(4)] == [0, 0, 0, 0.5]

    async def story():
        pages = Pages()
        pages.end.set()
        app = BoundedSessions(pages, lambda: HOSTED)
        began = asyncio.get_running_loop().time()
        task, _ = await opened(app, websocket(), *(rerun() for _ in range(33)))
        await task
        assert len(pages.messages) == 33
        assert asyncio.get_running_loop().time() - began > 0.3  # the last ones at five a second

    asyncio.run(story())


def test_sessions_of_one_address_share_what_people_ask_for_but_not_their_refreshes(monkeypatch):
    monkeypatch.setattr(_sessions, "RUNS_OF_LINE_AT_ONCE", 4.0)

    async def waited(messages, sessions=3, address="192.0.2.7", limits=HOSTED):
        pages = Pages()
        pages.end.set()
        app, began = BoundedSessions(pages, lambda: limits), asyncio.get_running_loop().time()
        tasks = [(await opened(app, websocket(address), *messages))[0] for _ in range(sessions)]
        await asyncio.gather(*tasks)
        assert len(pages.messages) == sessions * len(messages)
        return asyncio.get_running_loop().time() - began

    refresh = BackMsg()
    refresh.rerun_script.is_auto_rerun, refresh.rerun_script.fragment_id = True, "a"
    refreshes = [{"type": "websocket.receive", "bytes": refresh.SerializeToString()}] * 3
    assert asyncio.run(waited([rerun()] * 3)) > 0.8  # nine runs: four at once, then five a second
    assert asyncio.run(waited(refreshes)) < 0.5
    assert asyncio.run(waited([rerun()] * 3, limits=PROFILES["classroom"])) < 0.5
    assert asyncio.run(waited([rerun()] * 3, address="127.0.0.1")) < 0.5


def test_requests_of_one_address_wait_and_then_are_refused_while_others_are_answered(monkeypatch):
    monkeypatch.setattr(_sessions, "REQUESTS_AT_ONCE", 3.0)
    monkeypatch.setattr(_sessions, "MAX_WAIT_S", 0.12)
    said = []

    async def page(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message):
        said.append(message.get("status"))

    async def story():
        app = BoundedSessions(page, lambda: HOSTED)
        began = asyncio.get_running_loop().time()
        ask = [app({"type": "http", "client": ("192.0.2.7", 1)}, None, send) for _ in range(7)]
        other = app({"type": "http", "client": ("192.0.2.8", 1)}, None, send)
        await asyncio.gather(*ask, other)
        return asyncio.get_running_loop().time() - began

    assert asyncio.run(story()) > 0.08
    assert (said.count(200), said.count(429)) == (3 + 2 + 1, 2)


class Uploads:
    """What Streamlit holds, and an application that takes files."""

    def __init__(self, limits=HOSTED):
        self.held: dict[tuple[str, str], int] = {}
        self.app = HeldUploads(self._take, lambda: limits, drop=self._drop, is_held=lambda *key: key in self.held)

    def _drop(self, session, file):
        self.held.pop((session, file), None)

    async def _take(self, scope, receive, send):
        session, file = scope["path"].rsplit("/", 2)[1:]
        self.held[session, file] = int(dict(scope["headers"])[b"content-length"])
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def put(self, session: str, file: str, size: int | None, address: str = "192.0.2.7") -> int:
        headers = [] if size is None else [(b"content-length", str(size).encode())]
        path, said = f"/_stcore/upload_file/{session}/{file}", []
        scope = {"type": "http", "method": "PUT", "path": path, "headers": headers, "client": (address, 1)}

        async def send(message):
            said.append(message)

        asyncio.run(self.app(scope, None, send))
        return said[0]["status"]

    def of(self, session: str) -> list[str]:
        return [file for each, file in self.held if each == session]


def test_a_session_holds_a_few_files_and_loses_its_own_oldest_ones():
    uploads = Uploads()
    uploads.put("other", "mine", MIB)
    for index in range(60):
        assert uploads.put("s", f"{index}", 8 * MIB) == 204
    assert uploads.of("s") == ["58", "59"]  # twice the largest file
    for index in range(20):
        uploads.put("t", f"{index}", 10)
    assert len(uploads.of("t")) == MAX_FILES
    assert uploads.of("other") == ["mine"]


def test_many_sessions_of_one_address_share_what_an_address_may_hold_and_the_heaviest_makes_room():
    uploads = Uploads()
    uploads.put("visitor", "mine", MIB, "192.0.2.1")
    for index in range(40):
        uploads.put(f"s{index}", "f", 8 * MIB)
    assert sum(uploads.held.values()) <= 3 * HOSTED.max_upload_bytes + MIB
    for index in range(200):
        uploads.put(f"z{index}", "f", 8 * MIB, f"198.51.100.{index}")
    assert sum(uploads.held.values()) <= HOSTED.max_held_bytes
    assert uploads.of("visitor") == ["mine"]


@pytest.mark.parametrize("size", [None, HOSTED.max_upload_bytes + 2 * MIB])
def test_a_file_that_is_too_large_or_does_not_say_its_size_is_not_let_in(size):
    uploads = Uploads()
    assert uploads.put("s", "f", size) == 413
    assert uploads.held == {}


@pytest.mark.parametrize(
    ("hops", "written", "client"),
    [
        (0, "198.51.100.9", "10.0.0.1"),
        (1, "198.51.100.9", "198.51.100.9"),
        (1, "6.6.6.6, 198.51.100.9", "198.51.100.9"),
        (2, "6.6.6.6, 198.51.100.9, 10.0.0.2", "198.51.100.9"),
        (2, "198.51.100.9", "10.0.0.1"),
        (1, "nobody", "10.0.0.1"),
        (1, None, "10.0.0.1"),
    ],
)
def test_the_address_is_what_the_outermost_trusted_proxy_wrote(hops, written, client):
    async def story():
        pages = Pages()
        pages.end.set()
        scope = websocket("10.0.0.1", **({"x_forwarded_for": written} if written else {}), x_forwarded_proto="https")
        task, _ = await opened(ForwardedAddress(pages, lambda: hops), scope)
        await task
        (seen,) = pages.scopes
        assert seen["client"][0] == client
        assert seen["scheme"] == ("wss" if hops else "ws")

    asyncio.run(story())


def test_to_believe_every_proxy_is_to_believe_the_nearest_one(monkeypatch):
    monkeypatch.delenv("LINEARITY_LAB_TRUSTED_HOPS", raising=False)
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    assert trusted_hops() == 1
    monkeypatch.setenv("LINEARITY_LAB_TRUSTED_HOPS", "2")
    assert trusted_hops() == 2
    for wrong in ("-1", "many", "11", "1.5"):
        monkeypatch.setenv("LINEARITY_LAB_TRUSTED_HOPS", wrong)
        with pytest.raises(InvalidInput, match="LINEARITY_LAB_TRUSTED_HOPS"):
            trusted_hops()


@pytest.mark.parametrize(
    ("origin", "is_let_in"),
    [
        ("http://lab.example.org:8501", True),
        ("https://LAB.example.org:8501", True),
        (None, True),
        ("http://localhost:1234", False),
        ("http://127.0.0.1", False),
        ("http://lab.example.org", False),
        ("http://lab.example.org.evil.example:8501", False),
        ("null", False),
    ],
)
def test_only_pages_of_this_very_host_and_port_open_web_sockets(origin, is_let_in):
    async def story():
        pages = Pages()
        pages.end.set()
        asked = {"host": "lab.example.org:8501", **({"origin": origin} if origin else {})}
        task, said = await opened(AllowedHosts(pages, lambda: ("lab.example.org",)), websocket(**asked))
        await task
        assert bool(pages.scopes) == is_let_in
        assert said == ([] if is_let_in else [{"type": "websocket.close", "code": 1008}])

    asyncio.run(story())


def test_closed_paths_look_as_if_there_were_nothing():
    async def story():
        app = ClosedPaths(Files(), lambda: CLOSED)
        for path in (*CLOSED, "/lab/_stcore/metrics", "/_stcore/metrics/"):
            assert (await answer(app, path))[0] == 404
        assert (await answer(app, "/_stcore/health"))[0] == 200
        assert (await answer(ClosedPaths(Files(), tuple), CLOSED[0]))[0] == 200

    asyncio.run(story())


def test_a_file_is_kept_once_however_its_path_is_written():
    async def story():
        files = Files()
        app = CompressedScripts(files)
        for index in range(300):
            path = "/static/" + "./" * index + "js/" + "x/../" * 1000 + "a.js"
            assert gzip.decompress((await answer(app, path))[2]) == files.body
        assert (len(app._files), len(app._kept)) == (1, 0)
        await answer(app, "/static/js/a.js")
        assert (len(app._files), list(app._kept)) == (1, ["/static/js/a.js"])

    asyncio.run(story())


def test_a_connection_too_many_costs_the_one_that_has_been_silent_longest(monkeypatch):
    """Whoever asks for something is answered, however many connections say nothing."""
    monkeypatch.setattr("linearity_lab.server._connections._max_connections", lambda: 5)
    aborted: list[int] = []
    everybody: set[object] = set()

    def connect(number: int, loop: asyncio.AbstractEventLoop, *, asks: bool) -> BoundedConnection:
        made = BoundedConnection.__new__(BoundedConnection)
        made.connections, made.loop, made.config = everybody, loop, SimpleNamespace(ws_max_size=10**9)
        made.logger, made.cycle = logging.getLogger("quiet"), None

        def abort() -> None:
            aborted.append(number)
            everybody.discard(made)

        transport = SimpleNamespace(get_extra_info=lambda name: None, abort=abort)
        made.connection_made(transport)
        if asks:
            made._wait_no_longer()
        return made

    async def story():
        loop = asyncio.get_running_loop()
        made = [connect(number, loop, asks=number < 3) for number in range(9)]
        assert aborted == [3, 4, 5, 6]
        assert made[0].config.ws_max_size == 2_500_000
        for each in made:
            each._wait_no_longer()

    asyncio.run(story())
