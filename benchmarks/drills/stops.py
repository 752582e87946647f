"""Stop at random moments of many experiments: how long until the job is stopped, and that no finished point is lost.

Run: ``python -m benchmarks.drills.stops [--stops N]`` (60 stops: four minutes on two quiet cores).
"""

from __future__ import annotations

import argparse
import collections
import random
import time
from typing import Any

from benchmarks.drills.report import conclude, own_data, spread
from linearity_lab.jobs import Jobs
from ntk_core.runs import PRESETS, Spec
from ntk_core.runs.store import Store
from ntk_core.settings.grammar import with_settings

FIGURES = (
    "liu-fig1-left",
    "liu-fig2",
    "liu-table1",
    "liu-theorem31",
    "liu-ball",
    "liu-true-and-linearized",
    "liu-section5",
    "liu-lazy",
    "zhu-fig2",
    "hu-fig1",
    "hu-fig3-cnn",
)
LIMIT_S = 0.25


def stop_one(jobs: Jobs, spec: Spec, after_s: float, patience_s: float = 120.0) -> dict[str, Any]:
    """Run ``spec``, stop it ``after_s`` seconds after its worker has begun, and see what is left of it."""
    job_id = jobs.submit(spec)
    deadline = time.monotonic() + patience_s
    while (now := jobs.snapshot(job_id)) is None or now.estimate is None:
        if time.monotonic() > deadline:
            raise TimeoutError("a job has not begun")
        time.sleep(0.005)
    time.sleep(after_s)
    before = jobs.snapshot(job_id)
    assert before is not None
    began = time.perf_counter()
    jobs.stop(job_id)
    while (after := jobs.snapshot(job_id)) is None or after.active:
        time.sleep(0.001)
    return {
        "stop_s": time.perf_counter() - began,
        "moment": before.message,
        "status": after.status,
        "kept": all(point in after.points for point in before.points),
    }


def measure(num_stops: int, seed: int = 0) -> list[dict[str, Any]]:
    """That many stops, in turn over the experiments, at moments drawn from the first five seconds of each run."""
    draw = random.Random(seed)
    stops = []
    with own_data() as folder:
        jobs = Jobs(Store(folder / "results.sqlite"), num_workers=1)
        try:
            for index in range(num_stops):
                figure = FIGURES[index % len(FIGURES)]
                spec = with_settings(PRESETS[figure].spec, {"seed": 1000 + index})
                stops.append({"figure": figure, **stop_one(jobs, spec, draw.uniform(0, 5))})
        finally:
            jobs.shutdown()
    return stops


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stops", type=int, default=60)
    options = parser.parse_args()
    stops = [stop for stop in measure(options.stops) if stop["status"] == "cancelled"]
    took = spread([stop["stop_s"] for stop in stops])
    by_figure = collections.defaultdict(list)
    for stop in stops:
        by_figure[stop["figure"]].append(stop["stop_s"])
    conclude(
        "stops",
        {
            "stop": took,
            "by_figure": {figure: spread(values) for figure, values in by_figure.items()},
            "moments": sorted({stop["moment"] for stop in stops}),
        },
        {
            f"p95 of Stop is at most {LIMIT_S} s": took["p95_s"] <= LIMIT_S,
            "no finished point is lost": all(stop["kept"] for stop in stops),
        },
    )


if __name__ == "__main__":
    main()
