"""nginx in front of the app, as in compose.yaml: slow and heavy clients do not reach the app."""

import asyncio
import gzip
import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from email.message import Message
from pathlib import Path

import pytest
import streamlit
from websockets.exceptions import InvalidStatus

from benchmarks.drills.browser_session import BrowserSession
from benchmarks.drills.report import own_data
from benchmarks.drills.served_app import answer_of, proxied, served_app
from hosting.start_nginx import find_nginx

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_nginx() is None, reason="nginx is not installed (apt-get install nginx-light)"),
    pytest.mark.skipif(os.name != "posix", reason="signals of POSIX"),
]
SESSIONS = 5
TABLE = b"column413,allowed\n1,2\n3,4\n"


@pytest.fixture(scope="module")
def app() -> Iterator[str]:
    with own_data(), served_app(LINEARITY_LAB_PROFILE="hosted") as served:
        yield served.address


@pytest.fixture(scope="module")
def lab(app) -> Iterator[str]:
    """``host:port`` of nginx; clients state their address, as behind a TLS proxy."""
    with proxied(app, sessions_per_client=SESSIONS) as address:
        yield address


def get(lab: str, path: str, client: str = "192.0.2.1", **headers: str) -> tuple[int, Message, bytes]:
    return answer_of(f"http://{lab}{path}", X_Forwarded_For=client, **headers)


def session(lab: str, client: str, page: str = "own_data", **options) -> BrowserSession:
    return BrowserSession(f"ws://{lab}", page, forwarded_for=client, **options)


def raw(lab: str, request: str) -> socket.socket:
    host, port = lab.split(":")
    opened = socket.create_connection((host, int(port)), timeout=30)
    opened.sendall(request.replace("\n", "\r\n").encode())
    return opened


def test_pages_pass_with_their_headers_and_metrics_do_not(lab):
    status, headers, _ = get(lab, "/kernel_change", Accept="text/html")
    assert (status, headers["server"]) == (200, "nginx")
    assert "script-src 'self'" in headers["content-security-policy"]
    assert get(lab, "/_stcore/metrics")[0] == 404


def test_scripts_are_compressed(lab):
    static = Path(streamlit.__file__).parent / "static"
    largest = max((static / "static" / "js").iterdir(), key=lambda path: path.stat().st_size)
    path = f"/{largest.relative_to(static).as_posix()}"
    for _ in range(2):  # from the app, from the cache
        status, headers, small = get(lab, path, Accept_Encoding="gzip")
        assert (status, headers["content-encoding"]) == (200, "gzip")
        assert gzip.decompress(small) == largest.read_bytes()
        assert len(small) < largest.stat().st_size / 3
    assert get(lab, path)[2] == largest.read_bytes()


def test_requests_of_one_client_are_limited(lab):
    def status(client: str) -> int:
        return get(lab, "/_stcore/health", client)[0]

    assert 429 in (status("198.51.100.1") for _ in range(600))
    assert status("198.51.100.2") == 200
    # Addresses of one IPv6 network count as one client.
    assert 429 in (status(f"2001:db8:1:2::{index:x}") for index in range(1, 600))
    assert status("2001:db8:1:3::1") == 200


def test_sessions_of_one_client_are_limited(lab):
    async def story() -> int:
        opened, refused = [], 0
        for _ in range(SESSIONS + 3):
            one = session(lab, "198.51.100.3", "glossary")
            try:
                opened.append(await one.__aenter__())
            except InvalidStatus as error:
                refused += error.response.status_code == 429
        async with session(lab, "198.51.100.4", "glossary") as other:
            await other.act()
        for one in opened:
            await one.__aexit__(None, None, None)
        return refused

    assert asyncio.run(story()) == 3


@pytest.mark.parametrize(("entrance", "status"), [("lab", b" 413 "), ("app", b" 40")], ids=["nginx", "the app alone"])
def test_a_claimed_length_costs_no_one_a_file(request, entrance, status):
    """A 3: one request with a large Content-Length removed every visitor's file."""
    lab = request.getfixturevalue(entrance)

    async def story() -> bool:
        seen: list[bytes] = []
        async with session(lab, "192.0.2.2", listen=seen.append) as visitor:
            await visitor.act()
            await visitor.upload("own_data.upload", "mine.csv", TABLE)
            length = "Content-Length: 0000000000999999999"
            asked = f"PUT /_stcore/upload_file/a/b HTTP/1.1\nHost: localhost\n{length}\n\n"
            with await asyncio.to_thread(raw, lab, asked) as attacker:
                assert status in await asyncio.to_thread(attacker.recv, 100)
            await asyncio.sleep(2.5)  # the app bounds uploads every second
            seen.clear()
            await visitor.act()
            return any(b"column413" in message for message in seen) and not visitor.errors

    assert asyncio.run(story())


def test_slow_senders_do_not_block_uploads(lab):
    """A 5: eight slow sockets of one address blocked all uploads."""

    async def story() -> float:
        with ExitStack() as stack:
            head = "PUT /_stcore/upload_file/a/b HTTP/1.1\nHost: localhost\nX-Forwarded-For: 198.51.100.5\n"
            for _ in range(16):
                stack.enter_context(await asyncio.to_thread(raw, lab, head + "Content-Length: 8000000\n\nx"))
            async with session(lab, "192.0.2.3") as visitor:
                await visitor.act()
                return await visitor.upload("own_data.upload", "mine.csv", TABLE)

    assert asyncio.run(story()) < 10


def test_silent_connections_are_closed(lab):
    with raw(lab, "GET / HTTP/1.1\nHost: localhost\n") as slow:
        began = time.monotonic()
        with suppress(ConnectionResetError):
            assert slow.recv(1000) == b""
        assert 5 < time.monotonic() - began < 25


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
