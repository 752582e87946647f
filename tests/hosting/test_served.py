"""The dashboard in the hosted profile, reached directly and through nginx as in compose.yaml."""

import asyncio
import gzip
import http.client
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from email.message import Message
from pathlib import Path

import pytest
import requests
import streamlit
from websockets.exceptions import InvalidStatus

from benchmarks.drills.browser_session import BrowserSession
from benchmarks.drills.report import own_data
from benchmarks.drills.served_app import ServedApp, answer_of, proxied, served_app
from hosting.start_nginx import find_nginx
from linearity_lab.dashboard.jobs.profile import PROFILES

SESSIONS, HOSTED = 5, PROFILES["hosted"]
TABLE = b"column413,allowed\n1,2\n3,4\n"
# The most points, seeds and steps within the bounds.
LARGEST = (
    "widths=10,11,12,13,14&richness=0,0.1,0.2,0.3&samples=10,20,30,40,50,60"
    "&num_seeds=100&training.max_steps=10000000"
)


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("served") / "log"


@pytest.fixture(scope="module")
def app(log) -> Iterator[ServedApp]:
    settings = {"PROFILE": "hosted", "HOSTS": "lab.example.org", "WORKERS": "1"}
    environment = {f"LINEARITY_LAB_{name}": value for name, value in settings.items()}
    environment["STREAMLIT_LOGGER_HIDE_WELCOME_MESSAGE"] = "true"
    with own_data(), log.open("w") as out, served_app(log=out, **environment) as served:
        deadline = time.monotonic() + 60
        while get(served.address, "/api/ready")[0] != 200:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield served


@pytest.fixture(scope="module")
def lab(app) -> Iterator[str]:
    """``host:port`` of nginx; clients state their address, as behind a TLS proxy."""
    if find_nginx() is None or os.name != "posix":
        pytest.skip("nginx is not installed (apt-get install nginx-light)")
    with proxied(app.address, sessions_per_client=SESSIONS) as address:
        yield address


def get(address: str, path: str, **headers: str) -> tuple[int, Message, bytes]:
    return answer_of(f"http://{address}{path}", **headers)


def session(
    address: str, client: str = "", page: str = "own_data", query: str = "", **options
) -> BrowserSession:
    return BrowserSession(f"ws://{address}", page, query, forwarded_for=client, **options)


def raw(address: str, request: str) -> socket.socket:
    host, port = address.split(":")
    opened = socket.create_connection((host, int(port)), timeout=30)
    opened.sendall(request.replace("\n", "\r\n").encode())
    return opened


def test_responses_carry_security_headers_and_refuse_other_hosts(app):
    for path in ("/_stcore/health", "/api/ready", "/kernel_change"):
        status, headers, body = get(app.address, path)
        assert status == 200, path
        assert (
            "script-src 'self' blob: 'wasm-unsafe-eval' 'sha256-"
            in headers["content-security-policy"]
        )
        assert headers["x-content-type-options"] == "nosniff"
        assert "strict-transport-security" not in headers
        if path == "/api/ready":  # one of the workers is a spare
            assert (
                json.loads(body).items()
                >= {"workers": 2, "max_waiting": HOSTED.max_waiting}.items()
            )
    assert "strict-transport-security" in get(app.address, "/", X_Forwarded_Proto="https")[1]
    status, headers, _ = get(app.address, "/", Host="evil.example")
    assert (status, headers["x-content-type-options"]) == (400, "nosniff")
    assert get(app.address, "/", Host="lab.example.org")[0] == 200


def test_pages_of_other_ports_open_no_web_socket(app):
    ask = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    ask |= {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    for origin, status in ((f"http://{app.address}", 101), ("http://localhost:1", 403)):
        connection = http.client.HTTPConnection(app.address, timeout=20)
        connection.request("GET", "/_stcore/stream", headers={**ask, "Origin": origin})
        assert connection.getresponse().status == status
        connection.close()


@pytest.mark.parametrize("num_bytes", [1_100_000, 20_000_000])
def test_web_socket_ends_before_it_reads_a_large_message(app, num_bytes):
    """The first bytes of a frame state its length; the rest of this one never arrives."""
    ask = "GET /_stcore/stream HTTP/1.1\nHost: localhost\nConnection: Upgrade\nUpgrade: websocket\n"
    ask += "Sec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n\n"
    header = b"\x82\xff" + num_bytes.to_bytes(8, "big") + bytes(4)
    with raw(app.address, ask) as opened:
        assert b" 101 " in opened.recv(20)
        opened.sendall(header + b"x" * 1000)
        answer = b""
        while received := opened.recv(10_000):
            answer += received
    frame = answer.partition(b"\r\n\r\n")[2]
    # A close frame: two bytes of header, the code, and from newer servers a reason.
    assert frame[0] == 0x88
    assert int.from_bytes(frame[2:4], "big") == 1009


def test_server_refuses_uploads_beyond_the_limit(app):
    most, start = HOSTED.max_upload_bytes, b"%PDF-"  # quickly refused by its kind
    largest = start + b" " * (most - len(start))

    async def story() -> None:
        async with session(app.address) as visitor:
            await visitor.act()
            # 413, or the server hangs up while more is sent.
            with pytest.raises(requests.RequestException):
                await visitor.upload(
                    "own_data.upload", "much-larger.csv", largest + largest[: most // 4]
                )
            await visitor.upload("own_data.upload", "larger.csv", largest + b" ")
            assert any(f"{most + 1:,} bytes" in alert for alert in visitor.alerts)
            await visitor.upload("own_data.upload", "largest.csv", largest)
            assert any("a PDF" in alert for alert in visitor.alerts), "accepted by its size"
            assert visitor.errors == []

    asyncio.run(story())


@pytest.mark.slow
def test_checks_end_when_their_session_is_gone(app):
    """A 2: estimates of a page load continued for minutes after the visitor had left."""

    async def come_and_go() -> None:
        for seed in range(5):
            async with session(app.address, "", "generalization", f"{LARGEST}&seed={seed}") as left:
                await left.begin()

    asyncio.run(come_and_go())
    time.sleep(1.0)
    before = app.server_s()
    time.sleep(2.0)
    assert app.server_s() - before < 0.5


@pytest.mark.slow
def test_nginx_compresses_scripts_and_serves_no_metrics(lab):
    status, headers, _ = get(lab, "/kernel_change", Accept="text/html")
    assert (status, headers["server"]) == (200, "nginx")
    assert "script-src 'self'" in headers["content-security-policy"]
    assert get(lab, "/_stcore/metrics")[0] == 404
    static = Path(streamlit.__file__).parent / "static"
    largest = max((static / "static" / "js").iterdir(), key=lambda path: path.stat().st_size)
    path = f"/{largest.relative_to(static).as_posix()}"
    for _ in range(2):  # from the app, from the cache
        status, headers, small = get(lab, path, Accept_Encoding="gzip")
        assert (status, headers["content-encoding"]) == (200, "gzip")
        assert gzip.decompress(small) == largest.read_bytes()
        assert len(small) < largest.stat().st_size / 3


@pytest.mark.slow
def test_requests_of_one_client_are_limited(lab):
    def status(client: str) -> int:
        return get(lab, "/_stcore/health", X_Forwarded_For=client)[0]

    assert 429 in (status("198.51.100.1") for _ in range(600))
    assert status("198.51.100.2") == 200
    # Addresses of one IPv6 network count as one client.
    assert 429 in (status(f"2001:db8:1:2::{index:x}") for index in range(1, 600))
    assert status("2001:db8:1:3::1") == 200


@pytest.mark.slow
def test_sessions_of_one_client_are_limited(lab):
    async def story() -> int:
        opened, refused = [], 0
        for _ in range(SESSIONS + 3):
            try:
                opened.append(await session(lab, "198.51.100.3", "glossary").__aenter__())
            except InvalidStatus as error:
                refused += error.response.status_code == 429
        async with session(lab, "198.51.100.4", "glossary") as other:
            await other.act()
        for one in opened:
            await one.__aexit__(None, None, None)
        return refused

    assert asyncio.run(story()) == 3


@pytest.mark.slow
def test_a_claimed_length_costs_no_one_a_file(app, lab):
    """A 3: one request with a large Content-Length removed every visitor's file."""

    async def story() -> bool:
        seen: list[bytes] = []
        async with session(lab, "192.0.2.2", listen=seen.append) as visitor:
            await visitor.act()
            await visitor.upload("own_data.upload", "mine.csv", TABLE)
            length = "Content-Length: 0000000000999999999"
            asked = f"PUT /_stcore/upload_file/a/b HTTP/1.1\nHost: localhost\n{length}\n\n"
            for entrance, status in ((lab, b" 413 "), (app.address, b" 40")):
                with await asyncio.to_thread(raw, entrance, asked) as attacker:
                    assert status in await asyncio.to_thread(attacker.recv, 100)
            await asyncio.sleep(2.5)  # the app bounds uploads every second
            seen.clear()
            await visitor.act()
            return any(b"column413" in message for message in seen) and not visitor.errors

    assert asyncio.run(story())


@pytest.mark.long
def test_slow_senders_do_not_block_uploads_and_are_closed(lab):
    """A 5: eight slow sockets of one address blocked all uploads."""

    async def story() -> float:
        with ExitStack() as stack:
            head = (
                "PUT /_stcore/upload_file/a/b HTTP/1.1\nHost: localhost\nX-Forwarded-For: "
                "198.51.100.5\n"
            )
            for _ in range(16):
                stack.enter_context(
                    await asyncio.to_thread(raw, lab, head + "Content-Length: 8000000\n\nx")
                )
            async with session(lab, "192.0.2.3") as visitor:
                await visitor.act()
                return await visitor.upload("own_data.upload", "mine.csv", TABLE)

    with raw(lab, "GET / HTTP/1.1\nHost: localhost\n") as silent:
        assert asyncio.run(story()) < 10
        silent.settimeout(25)
        with suppress(ConnectionResetError):
            assert silent.recv(1000) == b""


@pytest.mark.slow
def test_large_files_of_one_client_leave_the_reader_to_others(lab):
    """A 6: slow 8 MiB files of one address delayed a small file by 98 s."""
    rows = b"\n".join(b",".join([b"1.5"] * 2000) for _ in range(900))
    slow = b",".join(b"c%d" % index for index in range(2000)) + b"\n" + rows

    async def story() -> float:
        async def attack(number: int) -> None:
            async with session(lab, "198.51.100.6") as attacker:
                await attacker.act()
                for each in range(3):
                    own = slow + b"\n" * (1 + 3 * number + each)
                    await attacker.upload("own_data.upload", f"{number}-{each}.csv", own)

        attackers = [asyncio.create_task(attack(number)) for number in range(4)]
        await asyncio.sleep(3)
        async with session(lab, "192.0.2.4") as visitor:
            await visitor.act()
            took = await visitor.upload("own_data.upload", "mine.csv", TABLE)
        for task in attackers:
            task.cancel()
        await asyncio.gather(*attackers, return_exceptions=True)
        return took

    # Small files have a separate process.
    assert asyncio.run(story()) < 45


def test_the_server_ends_gracefully_and_logs_no_user_data(app, log):
    """The last test of this server, because it ends the server."""
    headers = {"X_Forwarded_For": "192.0.2.7", "User_Agent": "secret", "Host": "secret.example"}
    get(app.address, "/kernel_change?widths=secret", **headers)
    get(app.address, "/secret.csv")
    app.process.send_signal(signal.SIGTERM)
    # After closing, Uvicorn raises the same signal again.
    assert app.process.wait(timeout=20) in (0, -signal.SIGTERM, None)
    lines = [
        json.loads(line) for line in log.read_text().splitlines() if "resource_tracker" not in line
    ]
    events = [
        line["event"]
        for line in lines
        if line["logger"].startswith("linearity_lab.dashboard.server")
    ]
    assert events == ["started", "stopping", "stopped"]
    assert lines[0]["profile"] == "hosted"
    for hidden in ("secret", "192.0.2.7", "evil.example", "column413", "larger.csv"):
        assert hidden not in log.read_text()
