"""One attacker does the most expensive things that a host allows, among visitors who look around.

Run: ``python -m benchmarks.drills.attacker [--visitors 29 --minutes 5]``. The profile is ``hosted``; the attacker comes
through a trusted proxy, from an address of its own for each thing that it does. It asks for the longest runs, sends the
largest and the most unruly files and keeps as many as it can, names files in endlessly many ways, opens sessions and
connections without end, sends huge texts, and runs pages in a loop. Claims: visitors' pages react within a second
(p95), the server's memory grows by 150 MiB at most, nobody else's data or jobs are lost.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import io
import random
import threading
import time
import zipfile
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import numpy as np
from PIL import Image

from benchmarks.drills.browser_session import CLICK, BrowserSession
from benchmarks.drills.report import conclude, own_data, percentile, spread
from benchmarks.drills.served_app import ServedApp, served_app
from benchmarks.drills.sessions import IDLE_PAGES
from ntk_core.data.uploads import (
    MissingUpload,
    clean_upload,
    keep_upload,
    parse_upload,
    suggested_choices,
    upload_shapes,
)

LIMIT_S, LIMIT_MIB = 1.0, 150
PAUSE_S = (1.0, 6.0)
TABLE = b"first,second,kind\n" + b"\n".join(b"%d,%d,%s" % (i, i * i % 17, b"ab"[i % 2 : i % 2 + 1]) for i in range(80))
LONGEST = "&".join(
    (
        "widths=30,100,300,1000",
        "training.learning_rate=1e-6",
        "training.loss_threshold=1e-6",
        "training.max_steps=10000000",
        "seed={}",
    )
)


@dataclass
class Seen:
    """What the drill has noted."""

    reactions_s: list[float] = field(default_factory=list)
    before_s: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    server_mib: list[float] = field(default_factory=list)
    attempts: dict[str, int] = field(default_factory=dict)
    refusals: dict[str, int] = field(default_factory=dict)
    last_refusal: dict[str, str] = field(default_factory=dict)

    def tried(self, what: str, *, refused: bool) -> None:
        """Note one attempt."""
        self.attempts[what] = self.attempts.get(what, 0) + 1
        self.refusals[what] = self.refusals.get(what, 0) + refused


async def visit(session: BrowserSession, seen: Seen, until: asyncio.Event, draw: random.Random) -> None:
    """Go from page to page, as people who look around do."""
    while not until.is_set():
        seen.reactions_s.append(await session.visit(draw.choice(IDLE_PAGES)))
        seen.errors += session.errors
        session.errors.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(until.wait(), draw.uniform(*PAUSE_S))


def bombs(draw: random.Random) -> list[tuple[str, bytes]]:
    """Files that are small and become much, or take long."""
    arrays, images = io.BytesIO(), io.BytesIO()
    np.savez_compressed(arrays, x=np.zeros((2040, 4096), np.int8), y=np.arange(2040) % 2)
    picture = io.BytesIO()
    Image.new("L", (1900, 1900), draw.randrange(256)).save(picture, "PNG")
    with zipfile.ZipFile(images, "w", zipfile.ZIP_DEFLATED) as archive:
        for index in range(300):
            archive.writestr(f"{'ab'[index % 2]}/{index}.png", picture.getvalue())
    wide = b",".join(b"c%d" % index for index in range(4000))
    return [
        ("zeros.npz", arrays.getvalue()),
        ("images.zip", images.getvalue()),
        ("wide.csv", wide + b"\n" + b"\n".join(b",".join([b"1.5"] * 4000) for _ in range(400))),
        ("large.csv", TABLE + b"\n" * (8 * 2**20 - len(TABLE) - 1)),
    ]


class Attacker:
    """One thing after another of one kind, until ``until`` is set."""

    KINDS = ("runs", "files", "paths", "sessions", "texts", "reruns", "connections")

    def __init__(self, address: str, seen: Seen, until: asyncio.Event, kind: str):
        self._address, self._seen, self._until, self._kind = address, seen, until, kind
        self._draw = random.Random(kind)
        self._line = f"198.51.100.{self.KINDS.index(kind) + 1}"

    async def attack(self) -> None:
        """Again and again, whatever the server does to it."""
        while not self._until.is_set():
            try:
                await asyncio.wait_for(getattr(self, f"_{self._kind}")(), 60)
                self._seen.tried(self._kind, refused=False)
            except Exception as error:
                self._seen.tried(self._kind, refused=True)
                self._seen.last_refusal[self._kind] = f"{type(error).__name__} {error}"[:200]
                await asyncio.sleep(0.05)

    def _session(self, page: str, query: str = "") -> BrowserSession:
        return BrowserSession(f"ws://{self._address}", page, query, forwarded_for=self._line)

    async def _runs(self) -> None:
        async with self._session("kernel_change", LONGEST.format(self._draw.randrange(10**6))) as session:
            await session.act()
            await session.act({"kernel_change.run": CLICK})

    async def _files(self) -> None:
        async with self._session("own_data") as session:
            await session.act()
            for name, data in bombs(self._draw):
                await session.upload("own_data.upload", name, data)
            for _ in range(5):
                other = TABLE + b"%d,%d,a\n" % (self._draw.randrange(10**6), self._draw.randrange(10**6))
                await session.upload("own_data.upload", "other.csv", other)
                await session.act({"own_data.keep": CLICK})

    async def _paths(self) -> None:
        await asyncio.to_thread(self._get, "/static/" + "./" * self._draw.randrange(1000, 30_000) + "js/index.js")

    def _get(self, path: str) -> None:
        connection = http.client.HTTPConnection(self._address, timeout=20)
        with contextlib.closing(connection):
            connection.request("GET", path, headers={"Accept-Encoding": "gzip", "X-Forwarded-For": self._line})
            connection.getresponse().read()

    async def _sessions(self) -> None:
        async with AsyncExitStack() as stack:
            for _ in range(200):
                session = await stack.enter_async_context(self._session(self._draw.choice(IDLE_PAGES)))
                await asyncio.wait_for(session.act(), 5)

    async def _texts(self) -> None:
        async with self._session("glossary", "term=" + "x" * 20_000_000) as session:
            await session.act(patience_s=10)

    async def _reruns(self) -> None:
        async with self._session("hessian") as session:
            for _ in range(300):
                await session.act(patience_s=30)

    async def _connections(self) -> None:
        opened = []
        try:
            for _ in range(600):
                _, writer = await asyncio.open_connection(*self._address.split(":"))
                writer.write(b"GET / HTTP/1.1\r\n")
                opened.append(writer)
            await asyncio.sleep(5)
        finally:
            for writer in opened:
                writer.close()


def watch_memory(app: ServedApp, seen: Seen, end: threading.Event) -> None:
    """Note the server's own memory every second."""
    while not end.wait(1.0):
        seen.server_mib.append(app.resident_bytes()[0] / 2**20)


async def drill(app: ServedApp, num_visitors: int, minutes: float, seen: Seen) -> None:
    """Visitors first, for a fifth of the time alone; then the attacker beside them."""
    until, alone_s = asyncio.Event(), 12 * minutes
    async with AsyncExitStack() as stack:
        visitors = []
        for number in range(num_visitors):
            page, line = IDLE_PAGES[number % len(IDLE_PAGES)], f"192.0.2.{number + 1}"
            session = BrowserSession(f"ws://{app.address}", page, forwarded_for=line)
            visitors.append(await stack.enter_async_context(session))
            await session.act()
        tasks = [
            asyncio.create_task(visit(session, seen, until, random.Random(number)))
            for number, session in enumerate(visitors)
        ]
        await asyncio.sleep(alone_s)
        seen.before_s, seen.reactions_s = seen.reactions_s, []
        seen.server_mib[:] = seen.server_mib[-1:]
        attacks = [asyncio.create_task(Attacker(app.address, seen, until, kind).attack()) for kind in Attacker.KINDS]
        await asyncio.sleep(60 * minutes - alone_s)
        until.set()
        for task in attacks:
            task.cancel()
        await asyncio.gather(*tasks, *attacks, return_exceptions=True)
        seen.errors += [repr(task.exception()) for task in tasks if task.done() and task.exception()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--visitors", type=int, default=29)
    parser.add_argument("--minutes", type=float, default=5.0)
    options = parser.parse_args()
    seen, end = Seen(), threading.Event()
    with own_data():
        table = parse_upload(TABLE)
        kept = keep_upload(clean_upload(table, suggested_choices(table)))  # of somebody who is not here now
        with served_app(LINEARITY_LAB_PROFILE="hosted", LINEARITY_LAB_TRUSTED_HOPS="1") as app:
            watching = threading.Thread(target=watch_memory, args=(app, seen, end), daemon=True)
            watching.start()
            began = time.monotonic()
            asyncio.run(drill(app, options.visitors, options.minutes, seen))
            took_s = time.monotonic() - began
            end.set()
            watching.join()
        try:
            upload_shapes(kept)
            is_kept = True
        except MissingUpload:
            is_kept = False
    grown = max(seen.server_mib) - seen.server_mib[0]
    measured = {
        "num_visitors": options.visitors,
        "took_s": round(took_s, 1),
        "reaction": spread(seen.reactions_s),
        "reaction_before": spread(seen.before_s),
        "server_mib": [round(seen.server_mib[0]), round(max(seen.server_mib)), round(seen.server_mib[-1])],
        "attempts": seen.attempts,
        "refused": seen.refusals,
        "last_refusal": seen.last_refusal,
        "errors": seen.errors[:20],
    }
    claims = {
        f"pages of visitors react within {LIMIT_S:g} s (p95)": percentile(seen.reactions_s, 0.95) < LIMIT_S,
        f"the server grows by {LIMIT_MIB} MiB at most": grown <= LIMIT_MIB,
        "nobody sees an exception": not seen.errors,
        "data of others are kept": is_kept,
    }
    conclude("attacker", measured, claims)


if __name__ == "__main__":
    main()
