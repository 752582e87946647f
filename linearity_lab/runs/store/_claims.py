"""Which server computes an unfinished job: claims, their heartbeats, and claims of silent servers.

Each row of ``JOBS`` belongs to one server, named by a random id. The server rewrites its rows every
few seconds (a heartbeat). Another server of the same database watches these heartbeats and claims
the rows of a server whose heartbeats stop. Only changes of a heartbeat count, measured by the
watcher's own monotonic clock. Clocks of different machines are never compared.
"""

import secrets
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from linearity_lab.runs.store._database import JOBS, RUNS, insert
from linearity_lab.runs.store._entries import UnfinishedJob
from linearity_lab.runs.store._packages import sa

# Our choice: six missed heartbeats, which the job thread sends every ten seconds.
SILENT_S = 60.0
RELEASED = ""  # the owner of a job whose server has ended


@dataclass
class Claims:
    """Claims of one server on the jobs of a database.

    Attributes:
        server: random id of this server.
    """

    server: str = field(default_factory=lambda: secrets.token_hex(16))
    clock: Callable[[], float] = time.monotonic
    _owned: set[str] = field(default_factory=set)
    # Digest of a job of another server → (server, heartbeat) and the time at which it was first
    # seen.
    _watched: dict[str, tuple[tuple[str, float], float]] = field(default_factory=dict)

    def write(
        self, connection: sa.Connection, jobs: Collection[UnfinishedJob]
    ) -> tuple[frozenset[str], frozenset[str]]:
        """Replace the rows of this server, with a new heartbeat.

        Returns:
            Digests of the rows that this server owns now, and of those that it owned before and
            lost to another server, which computes them.
        """
        wanted = {job.digest for job in jobs}
        own = JOBS.c.server == self.server
        connection.execute(sa.delete(JOBS).where(own, JOBS.c.digest.not_in(wanted)))
        owned = set()
        lost = set()
        for job in sorted(jobs, key=lambda job: job.digest):  # a fixed order avoids deadlocks
            row = self._row(job)
            mine = sa.update(JOBS).where(JOBS.c.digest == job.digest, own)
            if connection.execute(mine.values(row)).rowcount == 0:
                if job.digest in self._owned and self._is_taken(connection, job):
                    lost.add(job.digest)
                    continue
                # A job of another server keeps its row: both compute it, and points are stored
                # once.
                insert(connection, JOBS, row | {"digest": job.digest, "ending": False})
            if self._owner(connection, job) == self.server:
                owned.add(job.digest)
        return frozenset(owned), frozenset(lost)

    def remember(self, owned: Collection[str], *, is_more: bool = False) -> None:
        """Record jobs, or more jobs, of this server.

        This follows the end of the transaction that wrote them.
        """
        self._owned = set(owned) | (self._owned if is_more else set())

    def claim(self, connection: sa.Connection, *, is_alone: bool) -> frozenset[str]:
        """Claim the jobs of ended and silent servers; return their digests.

        A change of a row succeeds only while the row is as it was read, so that one of
        several servers gets it.

        Args:
            is_alone: whether no other server can use this database, so that every job is of an
                ended one.
        """
        now = self.clock()
        claimed = set()
        watched = {}
        rows = connection.execute(sa.select(JOBS.c.digest, JOBS.c.server, JOBS.c.seen))
        # The order of digests avoids deadlocks with other servers.
        for digest, server, heartbeat in sorted(rows):
            if server == self.server:
                continue
            state = (server, heartbeat)
            last, since = self._watched.get(digest, (state, now))
            if last != state:
                since = now
            if is_alone or server == RELEASED or now - since > SILENT_S:
                as_read = (JOBS.c.server == server) & (JOBS.c.seen == heartbeat)
                change = sa.update(JOBS).where(JOBS.c.digest == digest, as_read)
                change = change.values(server=self.server, seen=time.time())
                if connection.execute(change).rowcount == 1:
                    claimed.add(digest)
            else:
                watched[digest] = (state, since)
        self._watched = watched
        return frozenset(claimed)

    def release(self, connection: sa.Connection) -> None:
        """Leave the jobs of this server to the next one, without a wait for its silence."""
        change = sa.update(JOBS).where(JOBS.c.server == self.server)
        connection.execute(change.values(server=RELEASED))

    def _row(self, job: UnfinishedJob) -> dict[str, object]:
        """Return the changing columns of a job; a requested end is not one of them."""
        return {
            "server": self.server,
            "seen": time.time(),
            "owner": job.owner,
            "submitted": job.submitted_s,
            "running": job.running,
            "spent": job.spent_s,
            "allowed": job.allowed_s,
        }

    def _is_taken(self, connection: sa.Connection, job: UnfinishedJob) -> bool:
        """Return whether another server has a job of this one, or has completed it."""
        if self._owner(connection, job) is not None:
            return True
        status = connection.scalar(sa.select(RUNS.c.status).where(RUNS.c.digest == job.digest))
        return status == "completed"

    def _owner(self, connection: sa.Connection, job: UnfinishedJob) -> str | None:
        return connection.scalar(sa.select(JOBS.c.server).where(JOBS.c.digest == job.digest))
