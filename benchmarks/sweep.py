"""The default sweep (three nets) against a plain JAX script of the same science, in one process.

Both give the same numbers, which is checked. Each runs once cold, since the plain script takes minutes; ours once more
with its compiled code kept, and once in a process of its own that finds it on the disk.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

from benchmarks.measure import Settings
from benchmarks.plain_sweep import sweep_widths
from ntk_core import load_dataset, presets, run
from ntk_core.runs import canonical_json, parse_spec
from ntk_core.runs.compiled_code import VARIABLE, keep_compiled_code
from ntk_core.runs.events import Ended, PointFinished
from ntk_core.settings.grammar import with_settings

PRESET, NUM_SEEDS = "liu-fig1-left", 2
QUICK = {"widths": [10], "num_seeds": 1, "outputs": ["linear"], "training.max_steps": 9, "training.num_records": 2}


def ours(spec: Any) -> tuple[dict[str, Any], Any]:
    """Seconds to each point and to the end, and the result."""
    began = time.perf_counter()
    points = {}
    result = None
    for event in run(spec):
        if isinstance(event, PointFinished):
            points[int(event.key.partition("=")[2])] = time.perf_counter() - began
        elif isinstance(event, Ended):
            result = event.result
    return {"total_s": time.perf_counter() - began, "point_s": points}, result


def from_disk(spec: Any) -> dict[str, Any]:
    """As :func:`ours` in a process of its own, after another one has filled the directory of compiled code."""
    with tempfile.TemporaryDirectory() as place:
        for _ in range(2):
            printed = subprocess.run(
                [sys.executable, "-m", "benchmarks.sweep", canonical_json(spec)],
                env={**os.environ, VARIABLE: place},
                check=True,
                stdout=subprocess.PIPE,
            ).stdout
    return json.loads(printed)


def plain(spec: Any) -> tuple[dict[str, Any], Any]:
    data = load_dataset(spec.dataset.name, **spec.dataset.options())
    settings = spec.training
    began = time.perf_counter()
    points: dict[int, float] = {}
    found = sweep_widths(
        data.x,
        data.y,
        spec.widths,
        spec.num_seeds,
        settings.loss_threshold,
        settings.max_steps,
        settings.num_records,
        on_point=lambda width: points.update({width: time.perf_counter() - began}),
    )
    return {"total_s": time.perf_counter() - began, "point_s": points}, found


def measure(settings: Settings) -> dict[str, Any]:
    """Ours cold, ours warm, the plain script; how far their kernel changes differ."""
    spec: Any = with_settings(presets()[PRESET], QUICK if settings.quick else {"num_seeds": NUM_SEEDS})
    first_run, _ = ours(spec)
    warm_run, result = ours(spec)  # before the script, whose programs would make a run let go of all
    plain_run, found = plain(spec)
    differences = [
        abs(each.sup_change - found[point.width, each.output, each.seed][0]) / each.sup_change
        for point in result.points
        for each in point.runs
        if settings.quick or each.outcome == "converged"
    ]
    return {
        "preset": PRESET,
        "num_seeds": spec.num_seeds,
        "ours_cold": first_run,
        "ours_from_disk": from_disk(spec),
        "plain_script": plain_run,
        "ours_warm": warm_run,
        "times_faster_cold": plain_run["total_s"] / first_run["total_s"],
        "times_faster_warm": plain_run["total_s"] / warm_run["total_s"],
        "relative_difference_of_sup_change": {
            "median": float(np.median(differences)),
            "max": float(np.max(differences)),
            "runs": len(differences),
        },
    }


if __name__ == "__main__":
    keep_compiled_code()
    print(json.dumps(ours(parse_spec(json.loads(sys.argv[1])))[0]))
