"""The attacker of the drill: a process at low priority, since an attacker has a machine of his own.

Run by ``benchmarks.drills.attacker``, with ``host:port`` and seconds. Each kind of attack comes from a network address
of its own, one thing after another for as long as it lasts; what was done and refused is printed as JSON.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import functools
import http.client
import io
import json
import os
import random
import sys
import zipfile
from contextlib import AsyncExitStack

import numpy as np
from PIL import Image

from benchmarks.drills.browser_session import CLICK, BrowserSession
from benchmarks.drills.sessions import IDLE_PAGES
from linearity_lab.jobs.limits import largest_fit
from linearity_lab.jobs.profile import PROFILES
from ntk_core.data.uploads import Cleaned, clean_upload, parse_upload, suggested_choices, upload_digest
from ntk_core.runs import PRESETS
from ntk_core.settings.grammar import with_settings
from ntk_core.settings.walk import values_of

ENDLESS = {
    "widths": (30, 100, 300, 1000),
    "training.learning_rate": 1e-6,
    "training.loss_threshold": 1e-6,
    "training.max_steps": 10_000_000,
}


def table(mark: str) -> bytes:
    """A small table, another one for every mark."""
    rows = (f"{i},{i * i % 17},{'ab'[i % 2]}{mark}" for i in range(80))
    return ("first,second,kind\n" + "\n".join(rows)).encode()


def cleaned(data: bytes) -> Cleaned:
    """What the page makes of a table by itself."""
    read = parse_upload(data)
    return clean_upload(read, suggested_choices(read))


def longest_run() -> str:
    """The query of the longest run that a host admits, all but its seed."""
    spec = largest_fit(with_settings(PRESETS["liu-fig1-left"].spec, ENDLESS), PROFILES["hosted"])
    assert spec is not None
    held = values_of(spec)
    return query({name: held[name] for name in ENDLESS})


def query(changes: dict[str, object]) -> str:
    """Settings as a URL has them."""
    written = {
        name: ",".join(map(str, value)) if isinstance(value, tuple) else value for name, value in changes.items()
    }
    return "&".join(f"{name}={value}" for name, value in written.items())


def bombs() -> list[tuple[str, bytes]]:
    """Files that are small and become much, or take long."""
    arrays, images, picture = io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.savez_compressed(arrays, x=np.zeros((2040, 4096), np.int8), y=np.arange(2040) % 2)
    Image.new("L", (1900, 1900), 127).save(picture, "PNG")
    with zipfile.ZipFile(images, "w", zipfile.ZIP_DEFLATED) as archive:
        for index in range(300):
            archive.writestr(f"{'ab'[index % 2]}/{index}.png", picture.getvalue())
    wide = b",".join(b"c%d" % index for index in range(4000))
    rows = b"\n".join(b",".join([b"1.5"] * 4000) for _ in range(400))
    large = table("")
    return [
        ("zeros.npz", arrays.getvalue()),
        ("images.zip", images.getvalue()),
        ("wide.csv", wide + b"\n" + rows),
        ("large.csv", large + b"\n" * (8 * 2**20 - len(large) - 1)),
    ]


class Attacker:
    """One thing after another of one kind.

    Args:
        of_others: a table that somebody else has brought too.
    """

    KINDS = ("runs", "files", "forgetting", "paths", "sessions", "texts", "reruns", "connections")

    def __init__(self, address: str, kind: str, of_others: bytes):
        self._address, self._kind, self._of_others = address, kind, of_others
        self._draw = random.Random(kind)
        self._line = f"198.51.100.{self.KINDS.index(kind) + 1}"
        self._bombs = bombs() if kind == "files" else []
        self.told: collections.Counter[str] = collections.Counter()
        self.last_refusal = ""

    async def attack(self) -> None:
        """Again and again, whatever the server does to it."""
        while True:
            try:
                await asyncio.wait_for(getattr(self, f"_{self._kind}")(), 60)
                self.told["done"] += 1
            except Exception as error:
                self.told["refused"] += 1
                self.last_refusal = f"{type(error).__name__} {error}"[:200]
                await asyncio.sleep(0.05)

    def _session(self, page: str, query: str = "") -> BrowserSession:
        return BrowserSession(f"ws://{self._address}", page, query, forwarded_for=self._line)

    async def _runs(self) -> None:
        """The longest run that is admitted, again and again, and one that is not."""
        async with AsyncExitStack() as stack:
            for asked in (_longest(), _longest(), query(ENDLESS)):
                seeded = f"{asked}&seed={self._draw.randrange(10**6)}"
                session = await stack.enter_async_context(self._session("kernel_change", seeded))
                await session.act()
                await session.act({"kernel_change.run": CLICK})
            await asyncio.sleep(30)  # whoever leaves gives way

    async def _files(self) -> None:
        """As many of the largest and most unruly files as can be brought and kept."""
        async with self._session("own_data") as session:
            await session.act()
            for name, data in self._bombs:
                await session.upload("own_data.upload", name, data)
            for _ in range(5):
                await self._kept(session, table(str(self._draw.randrange(10**9))))

    async def _forgetting(self) -> None:
        """Data that somebody else keeps, kept and forgotten."""
        async with self._session("own_data") as session:
            await session.act()
            await self._kept(session, self._of_others)
            await session.act({f"own_data.forget.{upload_digest(cleaned(self._of_others))}": CLICK})

    async def _kept(self, session: BrowserSession, data: bytes) -> None:
        await session.upload("own_data.upload", "other.csv", data)
        await session.act({"own_data.keep": CLICK})
        await session.act()

    async def _paths(self) -> None:
        """A script under endlessly many names, and whether the server is ready."""
        for path in ("/static/" + "./" * self._draw.randrange(1000, 30_000) + "js/index.js", "/api/ready"):
            await asyncio.to_thread(self._get, path)

    def _get(self, path: str) -> None:
        connection = http.client.HTTPConnection(self._address, timeout=20)
        with contextlib.closing(connection):
            connection.request("GET", path, headers={"Accept-Encoding": "gzip", "X-Forwarded-For": self._line})
            connection.getresponse().read()

    async def _sessions(self) -> None:
        """Sessions that stay, each from another address of one line."""
        async with AsyncExitStack() as stack:
            for _ in range(200):
                self._line = f"2001:db8:0:1::{self._draw.randrange(1, 16**4):x}"
                session = await stack.enter_async_context(self._session(self._draw.choice(IDLE_PAGES)))
                await asyncio.wait_for(session.act(), 5)

    async def _texts(self) -> None:
        """URLs of 2 and of 20 million letters."""
        async with self._session("glossary", "term=" + "x" * self._draw.choice((2_000_000, 20_000_000))) as session:
            await session.act(patience_s=10)

    async def _reruns(self) -> None:
        """An expensive page, as often as it is answered."""
        async with self._session("hessian") as session:
            for _ in range(300):
                await session.act(patience_s=30)

    async def _connections(self) -> None:
        """Connections that never say what they want."""
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


_longest = functools.cache(longest_run)


async def main(address: str, seconds: float, of_others: bytes) -> None:
    """Attack in every way at once."""
    attackers = {kind: Attacker(address, kind, of_others) for kind in Attacker.KINDS}
    _longest()
    print("ready", flush=True)
    tasks = [asyncio.create_task(each.attack()) for each in attackers.values()]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    told = {kind: {**each.told, "last_refusal": each.last_refusal} for kind, each in attackers.items()}
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    os.nice(10)
    asyncio.run(main(sys.argv[1], float(sys.argv[2]), table("of others")))
