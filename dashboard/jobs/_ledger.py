"""Which jobs are not finished, on disk, so that the next server goes on with them however this one ends.

One directory per server, one file per job. The system lets go of a server's lock when its process ends, by whatever
cause; whoever gets the lock then inherits the jobs. A file is replaced or removed as a whole, so a kill leaves no half.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shutil
import sys
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from ntk_core.environment import data_directory, private_directory

_LOCK = "lock"
_SUFFIX = ".json"
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Entry:
    """An unfinished job.

    Attributes:
        spec: as plain data.
        owner: who asked for it.
        submitted_s: when, in seconds since 1970.
        num_servers: how many servers, the one that writes this included, have it without another finished point.
    """

    spec: dict[str, Any]
    owner: str
    submitted_s: float
    num_servers: int = 1


class Ledger:
    """The unfinished jobs of this server, and those of servers that have ended. Trouble with files is only logged.

    Args:
        directory: common to all servers that save to one store, on a local disk.
    """

    def __init__(self, directory: Path):
        self._own = directory / uuid.uuid4().hex
        self._lock: IO[bytes] | None = None

    def note(self, job_id: str, entry: Entry) -> None:
        """Write down an unfinished job, in place of what was written of it before."""
        with self._only_logged():
            self._begin()
            draft = self._own / f"{job_id}.draft"
            draft.write_text(json.dumps(asdict(entry)), encoding="utf-8")
            os.replace(draft, self._own / f"{job_id}{_SUFFIX}")

    def strike(self, job_id: str) -> None:
        """The job has ended."""
        if self._lock is not None:
            with self._only_logged():
                (self._own / f"{job_id}{_SUFFIX}").unlink(missing_ok=True)

    def inherit(self) -> dict[str, Entry]:
        """The unfinished jobs of servers that have ended, oldest first, by id; from now on they are this server's."""
        with self._only_logged():
            others = [other for other in self._own.parent.iterdir() if other != self._own] if self._exists else []
            for other in others:
                if (lock := _locked(other / _LOCK)) is None:
                    continue
                with lock:
                    for file in other.glob(f"*{_SUFFIX}"):
                        self._begin()
                        os.replace(file, self._own / file.name)
                shutil.rmtree(other, ignore_errors=True)
        found = {file.stem: entry for file in self._own.glob(f"*{_SUFFIX}") if (entry := _read(file)) is not None}
        return dict(sorted(found.items(), key=lambda item: item[1].submitted_s))

    def close(self) -> None:
        """Leave what is unfinished to the next server."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
            with contextlib.suppress(OSError):
                if not any(self._own.glob(f"*{_SUFFIX}")):
                    shutil.rmtree(self._own, ignore_errors=True)

    @property
    def _exists(self) -> bool:
        return self._own.parent.is_dir()

    def _begin(self) -> None:
        if self._lock is None:
            private_directory(self._own)
            self._lock = _locked(self._own / _LOCK)
        if self._lock is None:
            raise OSError(f"{self._own} is locked by another process")

    @contextlib.contextmanager
    def _only_logged(self) -> Iterator[None]:
        try:
            yield
        except (OSError, RuntimeError) as error:
            _LOG.warning("Unfinished jobs cannot be written down for the next start: %s", error)


def ledger_directory(store: str) -> Path:
    """Where the ledgers of all servers are that save to the store at this location."""
    try:
        directory = data_directory()
    except RuntimeError:  # nowhere to write: the first attempt says so
        directory = Path(os.devnull)
    return directory / "jobs" / hashlib.sha256(store.encode()).hexdigest()[:16]


def _read(file: Path) -> Entry | None:
    try:
        return Entry(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        _LOG.warning("What is written down of an unfinished job cannot be read: %s", file)
        return None


def _locked(file: Path) -> IO[bytes] | None:
    """The file, locked until it is closed or this process ends; None when another process or object holds it."""
    lock = file.open("ab")
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        return None
    return lock
