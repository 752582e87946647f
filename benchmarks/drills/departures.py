"""Memory of the server after its visitors have left.

Thirty sessions open pages of figures, run a small sweep each, and close. The server should return
to within 60 MiB of its memory after the first page. On a second server one visitor opens every
page: what that adds is code, words and shared caches, which stay for the next visitor.
"""

import asyncio
import time

import cyclopts

from benchmarks.drills.browser_session import BrowserSession
from benchmarks.drills.report import conclude, own_data
from benchmarks.drills.served_app import ServedApp, served_app

PAGES = (
    "kernel_change",
    "hessian",
    "dynamics",
    "dag",
    "learning_rate",
    "architectures",
    "horizon",
    "optimization",
    "generalization",
    "early_time",
    "lazy",
    "depth_width",
    "results",
    "lecture",
    "glossary",
)
SWEEP = "widths=5,10&num_seeds=1&outputs=linear&training.max_steps=20"
LIMIT_MIB = 60
# Streamlit keeps a closed session for 30 s, and a page's run collects garbage at most once a
# minute.
LEAVE_S = 100.0


async def visit(address: str, number: int, num_pages: int) -> list[str]:
    """Open pages and run one sweep; return the exceptions on the pages."""
    async with BrowserSession(
        f"ws://{address}", "kernel_change", f"{SWEEP}&seed={number}"
    ) as session:
        await session.act()
        await session.press_run("kernel_change")
        for index in range(num_pages):
            await session.visit(PAGES[(number + index) % len(PAGES)])
        return session.errors


async def drill(
    app: ServedApp, sessions: int, at_once: int, num_pages: int
) -> tuple[dict, list[str]]:
    """Return memory in MiB at each stage, in the order of time; and exceptions."""
    async with BrowserSession(f"ws://{app.address}", "kernel_change") as first:
        await first.act()
    start_mib = app.resident_mib()
    errors: list[str] = []
    places = asyncio.Semaphore(at_once)

    async def one(number: int) -> None:
        async with places:
            errors.extend(await visit(app.address, number, num_pages))

    peak: list[float] = []
    with app.watched(peak, [], 0.5):
        await asyncio.gather(*map(one, range(sessions)))
    left_at = time.monotonic()
    left_mib = []
    while time.monotonic() - left_at < LEAVE_S:
        await asyncio.sleep(10)
        left_mib.append(round(app.resident_mib()))
    found = {
        "start_mib": round(start_mib),
        "peak_mib": round(max(peak)),
        "left_mib": left_mib,
    }
    return found, errors


async def open_all(app: ServedApp) -> float:
    """Return memory in MiB after one visitor of all pages."""
    await visit(app.address, 0, len(PAGES))
    return app.resident_mib()


def main(*, sessions: int = 30, at_once: int = 6, pages: int = 6, profile: str = "hosted") -> None:
    """Run the drill; fewer than thirty sessions are not saved."""
    with own_data(), served_app(LINEARITY_LAB_PROFILE=profile) as app:
        found, errors = asyncio.run(drill(app, sessions, at_once, pages))
    with own_data(), served_app(LINEARITY_LAB_PROFILE=profile) as app:
        found["opened_mib"] = round(asyncio.run(open_all(app)))
    claims = {
        f"the server returns to within {LIMIT_MIB} MiB of its start": found["left_mib"][-1]
        - found["start_mib"]
        <= LIMIT_MIB,
        "no visitor sees an exception": not errors,
    }
    conditions = {
        "profile": profile,
        "num_sessions": sessions,
        "num_pages": pages,
        "waited_s": LEAVE_S,
    }
    measured = {**conditions, **found, "errors": errors[:5]}
    conclude("departures", measured, claims, is_kept=sessions >= 30)


if __name__ == "__main__":
    cyclopts.run(main)
