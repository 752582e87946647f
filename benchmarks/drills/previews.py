"""A class on *Explore*: thirty visitors pick at once, and each pick starts a preview.

Real web sockets against ``streamlit run app.py`` in the profile ``classroom``. In each round the
visitors choose among a few picks without a precomputed answer, since a class follows one question;
equal previews are computed once. Other sessions change choices on other pages meanwhile.
"""

import asyncio
import random
import time
from contextlib import AsyncExitStack

import cyclopts

from benchmarks.drills.browser_session import BrowserSession
from benchmarks.drills.poll import Screen
from benchmarks.drills.report import STORE, conclude, own_data, spread
from benchmarks.drills.served_app import ServedApp, served_app
from benchmarks.drills.sessions import Seen, Visit, browse
from benchmarks.measure import Row

FIRST_MARK_S = 4.0
IDLE_S = 0.5
PAGE = "explore"
# Networks whose first answers are not in the gallery.
PICKS = [
    f"activation={activation}&layers={depth}"
    for depth in (1, 2, 3)
    for activation in ("tanh", "gelu", "erf", "silu")
]
MARK = r'kind">Found</span>'  # above points of these settings, not of earlier ones
BETWEEN_S = 3.0  # visitors read their figure before the next round; our choice
READY_S = 10.0  # workers get ready before the class begins


async def previewed(visitor: BrowserSession, screen: Screen, pick: str) -> float:
    """Open a pick; return seconds until a sentence about its first points is on the page."""
    screen.texts.clear()
    began = time.perf_counter()
    await visitor.visit(PAGE, pick)
    return await screen.shows(MARK) - began


async def drill(
    app: ServedApp, seen: Seen, visitors: int, idle: int, rounds: int, distinct: int
) -> Row:
    """Let all visitors pick in rounds, beside idle sessions."""
    url = f"ws://{app.address}"
    draw = random.Random(0)
    first_marks: list[float] = []
    async with AsyncExitStack() as stack:
        screens = [Screen() for _ in range(visitors)]
        sessions = []
        for number, screen in enumerate(screens):
            address = f"10.0.0.{number + 1}"
            session = BrowserSession(url, PAGE, read=screen.read, forwarded_for=address)
            sessions.append(await stack.enter_async_context(session))
            await session.act()  # the precomputed answer
        others = []
        for number in range(idle):
            session = BrowserSession(url, "kernel_change", forwarded_for=f"10.0.1.{number + 1}")
            others.append(await stack.enter_async_context(session))
            await session.act()
        await asyncio.sleep(READY_S)
        seen.until = float("inf")
        browsing = [
            asyncio.create_task(browse(session, seen, Visit(), random.Random(number)))
            for number, session in enumerate(others)
        ]
        began = time.perf_counter()
        for index in range(rounds):
            of_round = [PICKS[(index * distinct + one) % len(PICKS)] for one in range(distinct)]
            picks = [draw.choice(of_round) for _ in sessions]
            first_marks += await asyncio.gather(
                *(previewed(*each) for each in zip(sessions, screens, picks, strict=True))
            )
            await asyncio.sleep(BETWEEN_S)
        took_s = time.perf_counter() - began
        for task in browsing:
            task.cancel()
        await asyncio.gather(*browsing, return_exceptions=True)
        errors = [error for session in (*sessions, *others) for error in session.errors]
    return {
        "num_visitors": visitors,
        "num_idle": idle,
        "num_rounds": rounds,
        "num_distinct": distinct,
        "took_s": round(took_s, 1),
        "first_mark": spread(first_marks),
        "reaction": spread(seen.reactions_s),
        "server_mib": round(app.resident_mib()),
        "errors": errors[:5],
    }


def claims(found: Row) -> dict[str, bool]:
    """Return the claims of this drill."""
    return {
        f"the first mark of a preview comes within {FIRST_MARK_S:g} s (p95)": found["first_mark"][
            "p95_s"
        ]
        <= FIRST_MARK_S,
        f"idle sessions react within {IDLE_S:g} s (p95) during previews": found["reaction"]["p95_s"]
        <= IDLE_S,
        "no visitor of Explore saw an exception": not found["errors"],
    }


def main(*, visitors: int = 30, idle: int = 10, rounds: int = 4, distinct: int = 3) -> None:
    """A class on Explore; fewer than thirty visitors are not saved."""
    with own_data() as folder, served_app(LINEARITY_LAB_PROFILE="classroom") as app:
        found = asyncio.run(drill(app, Seen(folder / STORE), visitors, idle, rounds, distinct))
    conclude("previews", found, claims(found), is_kept=visitors >= 30)


if __name__ == "__main__":
    cyclopts.run(main)
