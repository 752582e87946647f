"""Whom the shipped nginx believes about clients and scheme: the configured proxies, no one else."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from benchmarks.drills.served_app import answer_of, proxied
from hosting.start_nginx import find_nginx, trusted_networks

ROOT = Path(__file__).resolve().parents[2]
needs_nginx = pytest.mark.skipif(
    find_nginx() is None or os.name != "posix",
    reason="nginx is not installed (apt-get install nginx-light)",
)


class Echo(BaseHTTPRequestHandler):
    """Answer every request with its headers."""

    def do_GET(self) -> None:
        body = json.dumps(dict(self.headers)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        """Write no log."""


@contextmanager
def echoing_app() -> Iterator[str]:
    """Serve ``Echo`` on a free port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@needs_nginx
@pytest.mark.parametrize(
    ("networks", "is_believed"),
    [
        ("", False),
        ("172.16.0.0/12", False),
        ("127.0.0.2, ::1", False),
        ("127.0.0.1", True),
        ("192.0.2.0/24,127.0.0.0/8", True),
    ],
)
def test_forwarded_headers_are_believed_from_configured_proxies(networks, is_believed):
    claimed = {"X_Forwarded_For": "203.0.113.9", "X_Forwarded_Proto": "https"}
    usual = ("203.0.113.9", "https") if is_believed else ("127.0.0.1", "http")
    expected = {
        "/": usual,
        "/static/a.js": (None, None),  # one cached answer serves all clients
        "/_stcore/upload_file/a": usual,
        "/_stcore/stream": usual,
    }
    found = {}
    with echoing_app() as app, proxied(app, tls_proxy=networks) as nginx:
        for path in expected:
            status, _headers, body = answer_of(f"http://{nginx}{path}", **claimed)
            assert status == 200
            received = json.loads(body)
            found[path] = (received.get("X-Forwarded-For"), received.get("X-Forwarded-Proto"))
    assert found == expected


@needs_nginx
def test_chain_of_forwarded_addresses_ends_at_the_proxys_peer():
    """A client's own header precedes the address that its proxy appends."""
    with echoing_app() as app, proxied(app, tls_proxy="127.0.0.1") as nginx:
        claimed = {"X_Forwarded_For": "10.0.0.1, 203.0.113.9"}
        _status, _headers, body = answer_of(f"http://{nginx}/", **claimed)
    assert json.loads(body)["X-Forwarded-For"] == "203.0.113.9"


@pytest.mark.parametrize(
    ("given", "networks"),
    [
        ("", []),
        (" , ", []),
        ("192.0.2.7", ["192.0.2.7/32"]),
        ("192.0.2.7, 172.18.0.0/16 ::1", ["192.0.2.7/32", "172.18.0.0/16", "::1/128"]),
    ],
)
def test_networks_are_parsed(given, networks):
    assert trusted_networks(given) == networks


@pytest.mark.parametrize(
    ("variable", "given"),
    [
        ("LAB_TLS_PROXY", "caddy"),
        ("LAB_TLS_PROXY", "192.0.2.7; deny all"),
        ("LAB_TLS_PROXY", "192.0.2.7/24"),
        ("LAB_TLS_PROXY", "192.0.2.0/33"),
        ("LAB_TLS_PROXY", "fe80::1%eth0"),
        ("LAB_TLS_PROXY", "0.0.0.0/0"),
        ("LAB_TLS_PROXY", "::/0"),
        ("LAB_TLS_PROXY", "0.0.0.0/1,128.0.0.0/1"),
        ("LAB_TLS_PROXY", "unix:"),
        ("LAB_SESSIONS_PER_CLIENT", "many"),
        ("LAB_SESSIONS_PER_CLIENT", "0"),
        ("LAB_SESSIONS_PER_CLIENT", "-5"),
        ("LAB_SESSIONS_PER_CLIENT", "2.5"),
        ("LAB_SESSIONS_PER_CLIENT", "70000"),
        ("LAB_SESSIONS_PER_CLIENT", "٥"),
    ],
)
def test_wrong_variable_prevents_the_start_by_name(variable, given, tmp_path):
    environment = {**os.environ, "LAB_SCRATCH": str(tmp_path), variable: given}
    started = subprocess.run(
        [sys.executable, str(ROOT / "hosting" / "start_nginx.py")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert started.returncode == 1
    assert started.stderr.startswith(f"{variable} (in compose.yaml LINEARITY_{variable}): ")
    assert "cannot be used; use " in started.stderr
    assert started.stderr.count("\n") == 1
    assert not (tmp_path / "nginx.conf").exists()
