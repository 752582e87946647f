"""The attacker of the drill, a process of low priority.

Run by ``benchmarks.drills.attacker`` with ``host:port`` and seconds. Each kind of attack repeats
from a separate address; counts of accepted and refused rounds are printed as JSON.
"""

import asyncio
import collections
import io
import json
import os
import random
import sys
import zipfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack

import numpy as np
from PIL import Image

from benchmarks.drills.browser_session import BrowserSession
from benchmarks.drills.sessions import IDLE_PAGES

# Found by an attacker: little memory was estimated, gigabytes were taken.
HUNGRY = {
    "kernel_change": "dataset.name=cifar2&dataset.num_samples=60&dataset.resolution=32"
    "&architecture.kind=convnet&architecture.readout=global-average&architecture.depth=2"
    "&widths=2&num_seeds=1&infinite_width=true"
    "&training.max_steps=1&outputs=linear",
    "early_time": "dataset.num_samples=200000&dataset.teacher_width=1000",
}
# Estimated by bisection over every point, they kept the server busy for minutes
# without a click on Run.
COSTLY = (
    "generalization",
    "widths="
    + ",".join(str(10 + 7 * each) for each in range(24))
    + "&richness=0.1,0.15,0.2,0.25,0.3,0.35,0.4,0.5"
    "&num_seeds=100&training.max_steps=10000000",
)
# Six points of 66 MB each, as JSON in the server's memory; more than the profile
# allows for a result.
LARGE = (
    "keep_kernels=true&dataset.num_samples=1000&widths=10,11,12,13,14,15&num_seeds=1"
    "&training.max_steps=1"
)
# Text on the page instead of a Run button, see ntk_core.errors.ResultTooLarge.
REFUSAL = "since its result takes about 276 MiB and 32 MiB are allowed"
LONG = "widths=30,100,300,1000&training.learning_rate=1e-6&training.loss_threshold=1e-6"


class RefusedInWords(ConnectionRefusedError):
    """The page stated why it refuses this run."""


class Unexplained(Exception):
    """The page offered no run and did not state why."""


def files() -> list[tuple[str, bytes]]:
    """Return small files that become large, or take long to read."""
    arrays = io.BytesIO()
    images = io.BytesIO()
    picture = io.BytesIO()
    np.savez_compressed(arrays, x=np.zeros((2040, 4096), np.int8), y=np.arange(2040) % 2)
    Image.new("L", (1900, 1900), 127).save(picture, "PNG")
    with zipfile.ZipFile(images, "w", zipfile.ZIP_DEFLATED) as archive:
        for index in range(300):
            archive.writestr(f"{'ab'[index % 2]}/{index}.png", picture.getvalue())
    wide = b",".join(b"c%d" % index for index in range(4000))
    rows = b"\n".join(b",".join([b"1.5"] * 4000) for _ in range(400))
    large = b"a,b\n" + b"1,2\n" * (2 * 2**20 - 10)
    tables = [("wide.csv", wide + b"\n" + rows), ("large.csv", large)]
    return [("zeros.npz", arrays.getvalue()), ("images.zip", images.getvalue()), *tables]


KINDS = (
    "hungry runs",
    "long runs",
    "large results",
    "costly pages",
    "unruly files",
    "sessions",
    "reruns",
    "texts",
    "requests",
    "slow senders",
    "claimed lengths",
)


class Attacker:
    """Attacks on one server; a method per kind does one round."""

    def __init__(self, address: str):
        self._address = address
        self._draw = random.Random(0)
        self._files = files()

    def session(self, client: str, page: str, query: str = "") -> BrowserSession:
        return BrowserSession(f"ws://{self._address}", page, query, forwarded_for=client)

    async def run(self, client: str, page: str, query: str) -> None:
        async with self.session(client, page) as session:
            await session.run(page, query)
            await asyncio.sleep(20)

    async def hungry_runs(self, client: str) -> None:
        page = self._draw.choice(list(HUNGRY))
        await self.run(client, page, f"{HUNGRY[page]}&seed={self._draw.randrange(10**6)}")

    async def long_runs(self, client: str) -> None:
        steps = self._draw.choice((10_000, 100_000, 10_000_000))
        await self.run(
            client,
            "kernel_change",
            f"{LONG}&training.max_steps={steps}&seed={self._draw.randrange(10**6)}",
        )

    async def large_results(self, client: str) -> None:
        async with self.session(client, "kernel_change") as session:
            query = f"{LARGE}&seed={self._draw.randrange(10**6)}"
            if await session.run("kernel_change", query):
                return
            if not any(REFUSAL in alert for alert in session.alerts):
                raise Unexplained(f"no run, and no reason on the page: {session.alerts}")
            raise RefusedInWords(REFUSAL)

    async def costly_pages(self, client: str) -> None:
        async with self.session(client, *COSTLY) as session:
            await session.act(patience_s=10)

    async def unruly_files(self, client: str) -> None:
        async with self.session(client, "own_data") as session:
            await session.act()
            for name, data in self._files:
                await session.upload("own_data.upload", name, data)

    async def sessions(self, client: str) -> None:
        async with AsyncExitStack() as stack:
            for _ in range(200):
                line = f"2001:db8:0:1::{self._draw.randrange(1, 16**4):x}"  # of one network
                session = await stack.enter_async_context(
                    self.session(line, self._draw.choice(IDLE_PAGES))
                )
                await session.act(patience_s=10)

    async def reruns(self, client: str) -> None:
        async with self.session(client, "hessian") as session:
            for _ in range(300):
                await session.act(patience_s=30)

    async def texts(self, client: str) -> None:
        length = self._draw.choice((200_000, 2_000_000, 20_000_000))
        async with self.session(client, "glossary", "term=" + "x" * length) as session:
            await session.act(patience_s=10)

    async def requests(self, client: str) -> None:
        for path in (
            "/static/" + "./" * self._draw.randrange(1000) + "js/index.js?1",
            "/api/ready",
            "/lecture",
        ):
            await self.send(client, f"GET {path} HTTP/1.1", "")

    async def slow_senders(self, client: str) -> None:
        opened = []
        for index in range(300):
            _, writer = await asyncio.open_connection(*self._address.split(":"))
            upload = (
                f"PUT /_stcore/upload_file/a/b HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {client}\r\n"
            )
            writer.write(
                (
                    upload + "Content-Length: 8000000\r\n\r\nx"
                    if index % 2
                    else "GET / HTTP/1.1\r\n"
                ).encode()
            )
            opened.append(writer)
        await asyncio.sleep(8)
        for writer in opened:
            writer.close()

    async def claimed_lengths(self, client: str) -> None:
        await self.send(
            client,
            "PUT /_stcore/upload_file/a/b HTTP/1.1",
            "Content-Length: 0000000000999999999\r\n",
        )
        await asyncio.sleep(0.5)

    async def send(self, client: str, first: str, header: str) -> None:
        """Send one request; any status but 200 counts as refused."""
        reader, writer = await asyncio.open_connection(*self._address.split(":"))
        head = (
            f"{first}\r\nHost: localhost\r\nX-Forwarded-For: {client}\r\n"
            f"Connection: close\r\n{header}\r\n"
        )
        writer.write(head.encode())
        answer = await reader.readline()
        writer.close()
        if b" 200 " not in answer:
            raise ConnectionRefusedError(answer.decode()[:60])


async def repeat(
    attack: Callable[[str], Awaitable[None]], client: str, reported: collections.Counter[str]
) -> None:
    """Repeat an attack whatever the server answers."""
    while True:
        try:
            await asyncio.wait_for(attack(client), 60)
            reported["done"] += 1
        except Unexplained:
            reported["unexplained"] += 1
        except Exception as error:
            reported["refused"] += 1
            if isinstance(error, RefusedInWords):
                reported["refused in words"] += 1
            await asyncio.sleep(0.05)


async def main(address: str, seconds: float, kinds: Sequence[str] = KINDS) -> None:
    """Attack in all of these ways simultaneously."""
    attacker = Attacker(address)
    reported: dict[str, collections.Counter[str]] = {kind: collections.Counter() for kind in kinds}
    print("ready", flush=True)
    tasks = []
    for kind in kinds:
        index = KINDS.index(kind) + 1  # each kind has its own address
        attack = getattr(attacker, kind.replace(" ", "_"))
        tasks.append(asyncio.create_task(repeat(attack, f"198.51.100.{index}", reported[kind])))
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    print(json.dumps(reported), flush=True)


if __name__ == "__main__":
    os.nice(10)
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))
