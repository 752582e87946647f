"""The dashboard in the hosted profile: requests from outside to one server."""

import asyncio
import http.client
import json
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from benchmarks.drills.browser_session import BrowserSession
from benchmarks.drills.report import own_data
from benchmarks.drills.served_app import ServedApp, answer_of, served_app

# The most points, seeds and steps within the bounds.
LARGEST = (
    "widths=10,11,12,13,14&richness=0,0.1,0.2,0.3&samples=10,20,30,40,50,60&num_seeds=100&training.max_steps=10000000"
)


@dataclass(frozen=True)
class Served:
    app: ServedApp
    log: Path

    def get(self, path: str, **headers: str) -> tuple[int, str, dict[str, str]]:
        status, found, body = answer_of(f"http://{self.app.address}{path}", **headers)
        return status, body.decode(), {name.lower(): value for name, value in found.items()}


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    settings = {"PROFILE": "hosted", "HOSTS": "lab.example.org", "WORKERS": "1", "MAX_UPLOAD_MIB": "1"}
    environment = {f"LINEARITY_LAB_{name}": value for name, value in settings.items()}
    environment["STREAMLIT_LOGGER_HIDE_WELCOME_MESSAGE"] = "true"
    with own_data() as folder, (folder / "log").open("w") as log, served_app(log=log, **environment) as app:
        served = Served(app, folder / "log")
        deadline = time.monotonic() + 60
        while served.get("/api/ready")[0] != 200:
            assert time.monotonic() < deadline, served.log.read_text()
            time.sleep(0.1)
        yield served


def test_responses_carry_security_headers_and_refuse_other_hosts(served):
    for path in ("/_stcore/health", "/api/ready", "/kernel_change"):
        status, body, headers = served.get(path)
        assert status == 200, path
        assert "script-src 'self' blob: 'wasm-unsafe-eval' 'sha256-" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "strict-transport-security" not in headers
        assert path != "/api/ready" or json.loads(body)["workers"] == 2  # one of them is a spare
    assert "strict-transport-security" in served.get("/", X_Forwarded_Proto="https")[2]
    status, _, headers = served.get("/", Host="evil.example")
    assert (status, headers["x-content-type-options"]) == (400, "nosniff")
    assert served.get("/", Host="lab.example.org")[0] == 200


def test_pages_of_other_ports_open_no_web_socket(served):
    ask = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    ask |= {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    for origin, status in ((f"http://{served.app.address}", 101), ("http://localhost:1", 403)):
        connection = http.client.HTTPConnection(served.app.address, timeout=20)
        connection.request("GET", "/_stcore/stream", headers={**ask, "Origin": origin})
        assert connection.getresponse().status == status
        connection.close()


def test_server_refuses_uploads_beyond_the_limit(served):
    file = b"column413,allowed\n1,2\n3,4\n"
    largest = file + b"\n" * (2**20 - len(file))
    seen: list[bytes] = []

    async def story() -> None:
        async with BrowserSession(f"ws://{served.app.address}", "own_data", listen=seen.append) as session:
            await session.act()
            with pytest.raises(requests.RequestException):  # 413, or the server hangs up while more is sent
                await session.upload("own_data.upload", "much-larger.csv", largest * 3)
            await session.upload("own_data.upload", "larger.csv", largest + b"\n")
            assert any("1,048,577 bytes" in alert for alert in session.alerts)
            assert not any(b"column413" in message for message in seen)
            await session.upload("own_data.upload", "largest.csv", largest)
            assert any(b"column413" in message for message in seen)
            assert session.errors == []

    asyncio.run(story())


def test_checks_end_when_their_session_is_gone(served):
    """A 2: estimates of a page load continued for minutes after the visitor had left."""

    async def come_and_go() -> None:
        for seed in range(5):
            async with BrowserSession(f"ws://{served.app.address}", "generalization", f"{LARGEST}&seed={seed}") as left:
                await left.begin()

    asyncio.run(come_and_go())
    time.sleep(1.0)
    before = served.app.server_s()
    time.sleep(2.0)
    assert served.app.server_s() - before < 0.5


def test_the_server_ends_gracefully_and_logs_no_user_data(served):
    """The last test of this server, because it ends the server."""
    served.get("/kernel_change?widths=secret", X_Forwarded_For="192.0.2.7", User_Agent="secret", Host="secret.example")
    served.get("/secret.csv")
    served.app.process.send_signal(signal.SIGTERM)
    # After closing, Uvicorn raises the same signal again.
    assert served.app.process.wait(timeout=20) in (0, -signal.SIGTERM, None)
    text = served.log.read_text().splitlines()
    lines = [json.loads(line) for line in text if "resource_tracker" not in line]
    events = [line["event"] for line in lines if line["logger"].startswith("linearity_lab.server")]
    assert events == ["started", "stopping", "stopped"]
    assert lines[0]["profile"] == "hosted"
    for hidden in ("secret", "192.0.2.7", "evil.example", "column413", "larger.csv"):
        assert hidden not in served.log.read_text()
