"""A separate store for every test, in SQLite, or in a Postgres cluster of the test session."""

from __future__ import annotations

import contextlib
import glob
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from linearity_lab.runs.store import Store
from tests.runs.store.made_runs import result, spec


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """URL of a database in a new cluster."""
    folders = [Path(found).parent for found in [shutil.which("initdb")] if found]
    folders += sorted(
        map(Path, glob.glob("/usr/lib/postgresql/*/bin")), key=lambda path: -float(path.parent.name)
    )
    programs = next((folder for folder in folders if (folder / "initdb").exists()), None)
    if programs is None:
        pytest.skip(
            "no Postgres: neither initdb on the PATH nor /usr/lib/postgresql (apt-get install "
            "postgresql)"
        )
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip("no driver for Postgres: pip install 'psycopg[binary]'")
    owner = _owner()
    # Not tmp_path: another user must be able to enter it.
    folder = Path(tempfile.mkdtemp(prefix="lab-postgres-"))
    if owner:
        shutil.chown(folder, owner["user"], owner["group"])
    data, log = folder / "data", folder / "log"
    creation: list[str | Path] = [
        "-D",
        data,
        "-U",
        "lab",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--locale=C",
        "--no-sync",
    ]
    subprocess.run(
        [programs / "initdb", *creation], check=True, capture_output=True, cwd=folder, **owner
    )
    command = [
        programs / "postgres",
        "-D",
        data,
        "-k",
        folder,
        "-c",
        "listen_addresses=",
        "-c",
        "fsync=off",
    ]
    with log.open("wb") as written:
        server = subprocess.Popen(command, cwd=folder, stdout=written, stderr=written, **owner)
    url = f"postgresql+psycopg://lab@/postgres?host={folder}"
    engine, deadline = sa.create_engine(url), time.monotonic() + 60
    while True:
        try:
            engine.connect().close()
            break
        except sa.exc.OperationalError:
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
    engine.dispose()
    yield url
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


@pytest.fixture
def location(request, tmp_path) -> Iterator[str]:
    """Location of an empty store.

    Path of a SQLite file, or with ``BOTH`` also URL of a Postgres schema.
    """
    if getattr(request, "param", "sqlite") == "sqlite":
        yield str(tmp_path / "lab" / "results.sqlite")
        return
    url, schema = request.getfixturevalue("postgres"), f"lab_{uuid.uuid4().hex}"
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.schema.CreateSchema(schema))
    yield f"{url}&options=-csearch_path%3D{schema}"
    with engine.begin() as connection:
        connection.execute(sa.schema.DropSchema(schema, cascade=True))
    engine.dispose()


@pytest.fixture
def store(location) -> Iterator[Store]:
    store = Store(location)
    yield store
    store.close()


@pytest.fixture
def num_bytes_of_a_run(tmp_path) -> int:
    """Size of a completed run in bytes, for seeds of four digits."""
    store = Store(tmp_path / "one.sqlite")
    store.save_result(result(spec=spec(1000)))
    store.close()
    return store.num_bytes()


@pytest.fixture
def change(location, store) -> Callable[..., None]:
    """Change exactly one row without the store."""

    def execute(statement: str, **values: object) -> None:
        engine = sa.create_engine(location if "://" in location else f"sqlite:///{location}")
        with engine.begin() as connection:
            assert connection.execute(sa.text(statement), values).rowcount == 1
        engine.dispose()

    return execute
