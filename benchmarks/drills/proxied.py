"""nginx in front of a served app, with the configuration that compose.yaml uses."""

from __future__ import annotations

import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.drills.served_app import free_port
from hosting.start_nginx import write_configuration


@contextmanager
def proxied(app: str, sessions_per_client: int = 20) -> Iterator[str]:
    """``host:port`` of nginx in front of ``app``, until the block ends; 127.0.0.1 may state its clients' addresses."""
    address = f"127.0.0.1:{free_port()}"
    with tempfile.TemporaryDirectory(prefix="nginx-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # started by root, its worker is another user
        settings = {
            "LAB_APP": app,
            "LAB_LISTEN": address,
            "LAB_SCRATCH": folder,
            "LAB_SESSIONS_PER_CLIENT": str(sessions_per_client),
        }
        with subprocess.Popen(write_configuration(settings)) as process:
            try:
                _wait_until_listening(process, address)
                yield address
            finally:
                process.terminate()


def _wait_until_listening(process: subprocess.Popen[bytes], address: str, patience_s: float = 20.0) -> None:
    host, port = address.split(":")
    deadline = time.monotonic() + patience_s
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
