"""A class in a poll: thirty phones answer one question after the other on one server, and the projector counts.

Run: ``python -m benchmarks.drills.poll [--phones 30 --questions 6]``. Real web sockets against ``streamlit run app.py``
in the profile ``classroom``. Claims: answers are confirmed within a second (p95), all votes are counted,
the answer and the next question reach every phone within three seconds, nothing of the poll is on the disk.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import cyclopts

from benchmarks.drills.browser_session import CLICK, BrowserSession
from benchmarks.drills.report import conclude, own_data, spread
from benchmarks.drills.served_app import ServedApp, served_app
from benchmarks.measure import Row
from linearity_lab.views.lecture.steps import STEPS

ANSWERED_S, REACHED_S, THINKS_S, PATIENCE_S = 1.0, 3.0, 5.0, 30.0
PAGE = "lecture"


@dataclass
class Screen:
    """Texts last shown to a session → time of their first appearance since the screen was cleared."""

    texts: dict[str, float] = field(default_factory=dict)

    def read(self, text: str) -> None:
        self.texts.setdefault(text, time.perf_counter())

    async def shows(self, pattern: str) -> float:
        """When a text of this pattern came; infinite where none comes."""
        until = time.perf_counter() + PATIENCE_S
        while time.perf_counter() < until:
            for text, came in list(self.texts.items()):
                if re.search(pattern, text):
                    return came
            await asyncio.sleep(0.01)
        return float("inf")


@dataclass
class Seen:
    """Measurements."""

    joined_s: list[float] = field(default_factory=list)
    answered_s: list[float] = field(default_factory=list)
    counted_s: list[float] = field(default_factory=list)
    reached_s: list[float] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


async def vote(phone: BrowserSession, screen: Screen, seen: Seen, key: str, draw: random.Random) -> None:
    """Think, answer, and wait until the phone confirms the answer."""
    await asyncio.sleep(draw.uniform(0, THINKS_S))
    screen.texts.clear()
    began = time.perf_counter()
    await phone.press(key)
    seen.answered_s.append(await screen.shows("Your answer is in") - began)


async def everywhere(screens: list[Screen], pattern: str, since: float) -> list[float]:
    """Seconds until each screen showed it."""
    return [came - since for came in await asyncio.gather(*(screen.shows(pattern) for screen in screens))]


async def drill(app: ServedApp, num_phones: int, num_questions: int, holds: Callable[[bytes], list[str]]) -> Row:
    """Open a poll, let the phones join together, and ask one question after the other."""
    draw, seen = random.Random(0), Seen()
    url, projector = f"ws://{app.address}", Screen()
    async with AsyncExitStack() as stack:
        teacher = await stack.enter_async_context(BrowserSession(url, PAGE, read=projector.read))
        await teacher.act()
        await teacher.act({f"{PAGE}.poll": CLICK})
        await projector.shows("poll=")
        code = next(text for text in projector.texts if "poll=" in text).partition("poll=")[2]
        screens = [Screen() for _ in range(num_phones)]
        phones = [
            await stack.enter_async_context(BrowserSession(url, PAGE, f"poll={code}", read=screen.read))
            for screen in screens
        ]
        seen.joined_s = list(await asyncio.gather(*(phone.act() for phone in phones)))
        busy = app.server_s()
        began = time.perf_counter()
        for index in range(num_questions):
            step = STEPS[index]
            projector.texts.clear()
            pairs = zip(phones, screens, strict=True)
            keys = [f"{PAGE}.vote.{step.name}.{draw.randrange(3)}" for _ in phones]
            await asyncio.gather(*(vote(*pair, seen, key, draw) for pair, key in zip(pairs, keys, strict=True)))
            voted = time.perf_counter()
            counted = await projector.shows(f"^{num_phones} of {num_phones} phones have answered")
            seen.counted_s.append(max(0.0, counted - voted))
            for key, pattern in ((f"{PAGE}.show", "The answer:"), (f"{PAGE}.next.top", f"^Step {index + 2}$")):
                for screen in screens:
                    screen.texts.clear()
                since = time.perf_counter()
                await teacher.act({key: CLICK})
                seen.reached_s += await everywhere(screens, pattern, since)
        took = time.perf_counter() - began
        found = {
            "num_phones": num_phones,
            "num_questions": num_questions,
            "took_s": round(took, 1),
            "joined": spread(seen.joined_s),
            "answered": spread(seen.answered_s),
            "counted": spread(seen.counted_s),
            "reached": spread(seen.reached_s),
            "server_busy": round((app.server_s() - busy) / took, 3),
            "server_mib": round(app.resident_bytes()[0] / 2**20),
            "errors": [error for session in (teacher, *phones) for error in session.errors],
            "written": holds(code.encode()),
        }
        await teacher.act({f"{PAGE}.poll": CLICK})
        await everywhere(screens, "has ended", time.perf_counter())
    return found


def claims(found: Row) -> dict[str, bool]:
    """Claims of the drill."""
    phones = found["num_phones"]
    return {
        f"an answer is confirmed within {ANSWERED_S:g} s (p95)": found["answered"]["p95_s"] <= ANSWERED_S,
        f"the projector counts all {phones} within {REACHED_S:g} s": found["counted"]["max_s"] <= REACHED_S,
        f"answer and next question reach every phone within {REACHED_S:g} s (p95)": found["reached"]["p95_s"]
        <= REACHED_S,
        "no page showed an exception": not found["errors"],
        "nothing of the poll is on the disk": not found["written"],
    }


def files_with(folder: Path) -> Callable[[bytes], list[str]]:
    """Search for some bytes in every file of a folder."""
    return lambda wanted: [path.name for path in folder.rglob("*") if path.is_file() and wanted in path.read_bytes()]


def main(*, phones: int = 30, questions: int = 6) -> None:
    """A class in a poll."""
    with own_data() as folder, served_app(LINEARITY_LAB_PROFILE="classroom", LINEARITY_LAB_WORKERS="1") as app:
        found = asyncio.run(drill(app, phones, questions, files_with(folder)))
    conclude("poll", found, claims(found))


if __name__ == "__main__":
    cyclopts.run(main)
