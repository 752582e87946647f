"""A separate Postgres cluster for the tests, with folder and socket in a temporary directory."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

START_TIMEOUT_S = 60.0


def programs() -> Path | None:
    """Newest folder with initdb and postgres, which is not on Debian's PATH."""
    folders = [os.path.dirname(found) for found in [shutil.which("initdb")] if found]
    folders += sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: -float(path.split("/")[4]))
    return next((Path(folder) for folder in folders if Path(folder, "initdb").exists()), None)


@contextlib.contextmanager
def running(bin_folder: Path) -> Iterator[str]:
    """Yield the URL of a database in a new cluster, which stops after the block."""
    owner = _owner()
    folder = Path(tempfile.mkdtemp(prefix="lab-postgres-"))  # not tmp_path: another user must be able to enter it
    server = None
    try:
        if owner:
            shutil.chown(folder, owner["user"], owner["group"])
        data = folder / "data"
        subprocess.run(
            [bin_folder / "initdb", "-D", data, "-U", "lab", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
            check=True, capture_output=True, cwd=folder, **owner,
        )  # fmt: skip
        command = [bin_folder / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, **owner)
        url = f"postgresql+psycopg://lab@/postgres?host={folder}"
        _wait_until_it_answers(url, server, folder / "log")
        yield url
    finally:
        if server is not None:
            server.send_signal(signal.SIGINT)  # without waiting for remaining clients
            server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _owner() -> dict[str, Any]:
    """User for Postgres if tests run as root, which it refuses: ``postgres`` or ``nobody``."""
    if os.geteuid() != 0:
        return {}
    import grp
    import pwd

    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            user = pwd.getpwnam(name)
            return {"user": name, "group": grp.getgrgid(user.pw_gid).gr_name, "extra_groups": []}
    return {}


def _wait_until_it_answers(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    import sqlalchemy as sa

    engine = sa.create_engine(url)
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            engine.connect().close()
            break
        except sa.exc.OperationalError:
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
    engine.dispose()
