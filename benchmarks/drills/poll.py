"""A class in a poll: thirty phones answer questions on one server.

Real web sockets against ``streamlit run app.py`` in the profile ``classroom``.
"""

import asyncio
import random
import re
import time
from contextlib import AsyncExitStack
from pathlib import Path

import cyclopts

from benchmarks.drills.browser_session import CLICK, BrowserSession
from benchmarks.drills.report import conclude, own_data, spread
from benchmarks.drills.served_app import ServedApp, served_app
from benchmarks.measure import Row
from linearity_lab.dashboard.pages.lecture.steps import STEPS

ANSWERED_S = 1.0
REACHED_S = 3.0
THINKS_S = 5.0
PATIENCE_S = 30.0
PAGE = "lecture"


class Screen:
    """Texts of a session, with the times of their first appearance."""

    def __init__(self) -> None:
        self.texts: dict[str, float] = {}

    def read(self, text: str) -> None:
        self.texts.setdefault(text, time.perf_counter())

    async def shows(self, pattern: str) -> float:
        """Return when a text of this pattern came; infinite if none comes."""
        until = time.perf_counter() + PATIENCE_S
        while time.perf_counter() < until:
            for text, came in list(self.texts.items()):
                if re.search(pattern, text):
                    return came
            await asyncio.sleep(0.01)
        return float("inf")


async def vote(phone: BrowserSession, screen: Screen, key: str, draw: random.Random) -> float:
    """Think, answer, and return seconds until the phone confirms the answer."""
    await asyncio.sleep(draw.uniform(0, THINKS_S))
    screen.texts.clear()
    began = time.perf_counter()
    await phone.press(key)
    return await screen.shows("Your answer is in") - began


async def everywhere(screens: list[Screen], pattern: str, since: float) -> list[float]:
    """Return seconds until each screen showed a text of this pattern."""
    return [
        came - since
        for came in await asyncio.gather(*(screen.shows(pattern) for screen in screens))
    ]


async def drill(app: ServedApp, num_phones: int, num_questions: int, folder: Path) -> Row:
    """Open a poll, let the phones join, and ask the questions."""
    draw = random.Random(0)
    url = f"ws://{app.address}"
    projector = Screen()
    answered = list[float]()
    counted = list[float]()
    reached = list[float]()
    async with AsyncExitStack() as stack:
        teacher = await stack.enter_async_context(BrowserSession(url, PAGE, read=projector.read))
        await teacher.act()
        await teacher.act({f"{PAGE}.poll": CLICK})
        await projector.shows("poll=")
        code = next(text for text in projector.texts if "poll=" in text).partition("poll=")[2]
        screens = [Screen() for _ in range(num_phones)]
        sessions = (
            BrowserSession(url, PAGE, f"poll={code}", read=screen.read) for screen in screens
        )
        phones = [await stack.enter_async_context(session) for session in sessions]
        joined = await asyncio.gather(*(phone.act() for phone in phones))
        busy = app.server_s()
        began = time.perf_counter()
        for index, step in enumerate(STEPS[:num_questions]):
            projector.texts.clear()
            keys = [f"{PAGE}.vote.{step.name}.{draw.randrange(3)}" for _ in phones]
            votes = zip(phones, screens, keys, strict=True)
            answered += await asyncio.gather(*(vote(*each, draw) for each in votes))
            voted = time.perf_counter()
            came = await projector.shows(f"^{num_phones} of {num_phones} phones have answered")
            counted.append(max(0.0, came - voted))
            for key, pattern in (
                (f"{PAGE}.show", "The answer:"),
                (f"{PAGE}.next.top", f"^Step {index + 2}$"),
            ):
                for screen in screens:
                    screen.texts.clear()
                since = time.perf_counter()
                await teacher.act({key: CLICK})
                reached += await everywhere(screens, pattern, since)
        took = time.perf_counter() - began
        server = {"server_busy": round((app.server_s() - busy) / took, 3)}
        server["server_mib"] = round(app.resident_mib())
        written = [
            path.name
            for path in folder.rglob("*")
            if path.is_file() and code.encode() in path.read_bytes()
        ]
        await teacher.act({f"{PAGE}.poll": CLICK})
        await everywhere(screens, "has ended", time.perf_counter())
        errors = [error for session in (teacher, *phones) for error in session.errors]
    waits = {"joined": joined, "answered": answered, "counted": counted, "reached": reached}
    sizes = {"num_phones": num_phones, "num_questions": num_questions, "took_s": round(took, 1)}
    spreads = {name: spread(seconds) for name, seconds in waits.items()}
    return {**sizes, **spreads, **server, "errors": errors, "written": written}


def claims(found: Row) -> dict[str, bool]:
    """Return the claims of this drill."""
    answered, counted, reached = (found[name] for name in ("answered", "counted", "reached"))
    each = "answer and next question reach every phone"
    return {
        f"an answer is confirmed within {ANSWERED_S:g} s (p95)": answered["p95_s"] <= ANSWERED_S,
        f"the projector counts all {found['num_phones']} within {REACHED_S:g} s": counted["max_s"]
        <= REACHED_S,
        f"{each} within {REACHED_S:g} s (p95)": reached["p95_s"] <= REACHED_S,
        "no page showed an exception": not found["errors"],
        "nothing of the poll is on the disk": not found["written"],
    }


def main(*, phones: int = 30, questions: int = 6) -> None:
    """A class in a poll."""
    with (
        own_data() as folder,
        served_app(LINEARITY_LAB_PROFILE="classroom", LINEARITY_LAB_WORKERS="1") as app,
    ):
        found = asyncio.run(drill(app, phones, questions, folder))
    conclude("poll", found, claims(found))


if __name__ == "__main__":
    cyclopts.run(main)
