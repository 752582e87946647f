"""The dashboard as a host starts it: one server of the hosted profile, asked from outside."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Served:
    process: subprocess.Popen
    url: str
    log: Path

    def get(self, path: str, **headers: str) -> tuple[int, str, dict[str, str]]:
        request = urllib.request.Request(self.url + path, headers={k.replace("_", "-"): v for k, v in headers.items()})
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return (
                    answer.status,
                    answer.read().decode(),
                    {name.lower(): value for name, value in answer.headers.items()},
                )
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), {name.lower(): value for name, value in error.headers.items()}


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[Served]:
    directory = tmp_path_factory.mktemp("served")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "LINEARITY_LAB_PROFILE": "hosted",
        "LINEARITY_LAB_HOSTS": "lab.example.org",
        "LINEARITY_LAB_STORE": str(directory / "store"),
        "LINEARITY_LAB_WORKERS": "1",
        "XDG_DATA_HOME": str(directory),
        "STREAMLIT_LOGGER_HIDE_WELCOME_MESSAGE": "true",
    }
    flags = [f"--server.port={port}", "--server.headless=true", "--server.address=127.0.0.1"]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", *flags]
    with (directory / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT)
        served = Served(process, f"http://127.0.0.1:{port}", directory / "log")
        try:
            deadline = time.monotonic() + PATIENCE_S
            while not is_ready(served):
                assert process.poll() is None, served.log.read_text()
                assert time.monotonic() < deadline, served.log.read_text()
                time.sleep(0.1)
            yield served
        finally:
            process.kill()
            process.wait()


def is_ready(served: Served) -> bool:
    try:
        return served.get("/api/ready")[0] == 200
    except OSError:
        return False


def test_health_and_readiness_carry_the_security_headers(served):
    for path in ("/", "/_stcore/health", "/api/ready", "/kernel_change"):
        status, _, headers = served.get(path)
        assert status == 200, path
        assert "script-src 'self' blob: 'wasm-unsafe-eval' 'sha256-" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
    assert served.get("/_stcore/health")[1] == "ok"
    assert json.loads(served.get("/api/ready")[1])["workers"] == 2  # one is spare


def test_another_host_is_refused(served):
    assert served.get("/", Host="evil.example")[0] == 400
    assert served.get("/", Host="lab.example.org")[0] == 200


def test_behind_tls_responses_demand_https(served):
    assert "strict-transport-security" not in served.get("/")[2]
    assert "strict-transport-security" in served.get("/", X_Forwarded_Proto="https")[2]


def test_pages_of_other_ports_open_no_web_socket(served):
    ask = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    ask |= {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    host = served.url.removeprefix("http://")
    for origin, status in ((f"http://{host}", 101), ("http://localhost:1", 403)):
        connection = http.client.HTTPConnection(host, timeout=20)
        connection.request("GET", "/_stcore/stream", headers={**ask, "Origin": origin})
        assert connection.getresponse().status == status
        connection.close()


def test_the_server_ends_gracefully_and_logs_no_user_data(served):
    """The last test of this server: it ends it."""
    served.get("/kernel_change?widths=secret", X_Forwarded_For="192.0.2.7", User_Agent="secret", Host="secret.example")
    served.get("/secret.csv")
    served.process.send_signal(signal.SIGTERM)
    # Uvicorn ends itself by the same signal again once everything is closed.
    assert served.process.wait(timeout=20) in (0, -signal.SIGTERM)
    text = served.log.read_text().splitlines()
    lines = [json.loads(line) for line in text if "resource_tracker" not in line]
    assert [line["event"] for line in lines if line["logger"].startswith("linearity_lab.server")] == [
        "started",
        "stopping",
        "stopped",
    ]
    assert lines[0]["profile"] == "hosted"
    for hidden in ("secret", "192.0.2.7", "evil.example"):
        assert hidden not in served.log.read_text()
