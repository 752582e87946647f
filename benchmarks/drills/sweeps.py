"""A hundred sweeps, one after the other: memory of the process that serves and of its workers does not grow.

Run: ``python -m benchmarks.drills.sweeps [--sweeps N]`` (100 sweeps: about fourteen minutes on two quiet cores). Every
sweep has settings of its own, so that each compiles programs of its own; a session presses Run and looks at the figures
until they are finished. Growth is from the first sweeps after the warm-up to the last ones: of the server by medians,
of the workers by the largest. A worker is replaced once it has grown by 400 MiB, every fourth sweep or so, and the
median of such a saw depends on where in it the thirty sweeps begin.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.drills.browser_session import CLICK, BrowserSession
from benchmarks.drills.report import conclude, own_data, spread
from benchmarks.drills.served_app import ServedApp, served_app

Statistic = Callable[[Sequence[float]], float]
LIMIT = 0.10
OF: dict[str, Statistic] = {"server": statistics.median, "worker": max}
PAGE = "kernel_change"
MAX_STEPS = 200


async def run_sweeps(app: ServedApp, num_sweeps: int, patience_s: float = 300.0) -> list[dict[str, Any]]:
    """That many sweeps through one browser session; what each took and what memory was resident after it."""
    seen = []
    async with BrowserSession(f"ws://{app.address}", PAGE) as session:
        await session.act()
        await session.act({f"{PAGE}.training.max_steps": MAX_STEPS})
        for index in range(num_sweeps):
            began = time.monotonic()
            widths = ", ".join(str(width + index) for width in (10, 30, 100))
            activations = session.options[f"{PAGE}.architecture.activation"]
            activation = activations[index % len(activations)]
            await session.act({f"{PAGE}.widths": widths, f"{PAGE}.architecture.activation": activation})
            await session.act({f"{PAGE}.run": CLICK})
            while session.live and time.monotonic() - began < patience_s:
                await asyncio.sleep(0.05)
            server, workers = app.resident_bytes()
            seen.append(
                {
                    "took_s": time.monotonic() - began,
                    "server_bytes": server,
                    "worker_bytes": workers,
                    "num_workers": len(app.workers()),
                    "job_id": session.job_id,
                    "finished": not session.live and not session.errors and not session.alerts,
                }
            )
    return seen


def growth(values: Sequence[float], warm_up: int, window: int, of: Statistic = statistics.median) -> float:
    """Relative change of ``of`` them, from the first ``window`` values after the warm-up to the last ones."""
    return of(values[-window:]) / of(values[warm_up : warm_up + window]) - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sweeps", type=int, default=100)
    parser.add_argument("--warm-up", type=int, default=20)
    parser.add_argument("--window", type=int, default=30)
    options = parser.parse_args()
    with own_data(), served_app() as app:
        seen = asyncio.run(run_sweeps(app, options.sweeps))
    grown = {
        part: growth([sweep[f"{part}_bytes"] for sweep in seen], options.warm_up, options.window, of)
        for part, of in OF.items()
    }
    conclude(
        "sweeps",
        {
            "num_sweeps": options.sweeps,
            "growth": {part: round(share, 4) for part, share in grown.items()},
            "sweep": spread([sweep["took_s"] for sweep in seen]),
            "server_mib": [round(sweep["server_bytes"] / 2**20) for sweep in seen],
            "worker_mib": [round(sweep["worker_bytes"] / 2**20) for sweep in seen],
        },
        {
            "every sweep finished": all(sweep["finished"] for sweep in seen)
            and len({sweep["job_id"] for sweep in seen}) == options.sweeps,
            "memory of the server grows by less than 10 %": grown["server"] < LIMIT,
            "the largest memory of the workers grows by less than 10 %": grown["worker"] < LIMIT,
        },
    )


if __name__ == "__main__":
    main()
