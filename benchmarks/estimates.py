"""What runs take against what was estimated: every preset and random specs, each in a process of its own.

The clock of a point is the smaller of its wall time and its processor time: on a machine that others use too the first
is too long, and the second is where two threads worked at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.measure import Settings
from benchmarks.peers.side import forget_peak, resident_bytes
from ntk_core.errors import InvalidInput
from ntk_core.runs import (
    EXPERIMENTS,
    SHIPPED,
    Spec,
    bytes_of_point,
    canonical_json,
    check_size,
    estimate,
    parse_spec,
    presets,
    run,
    work_of_points,
)
from ntk_core.runs.events import PointFinished, PointStarted
from ntk_core.settings.grammar import InvalidSpec, with_settings
from ntk_core.settings.validation import bounds
from ntk_core.settings.walk import Setting, settings, values_of

NUM_RANDOM, SEED = 40, 20
RANDOM_SECONDS, PRESET_SECONDS = 40.0, 60.0  # what is not done by then is not among the points
LEAST_S, MOST_S = 0.5, 60.0  # estimated time of a random spec


def measure(settings: Settings) -> dict[str, Any]:
    """The points of every preset and of the random specs: seconds and bytes, measured and estimated."""
    specs = [(f"random {index}", spec, RANDOM_SECONDS) for index, spec in enumerate(random_specs(NUM_RANDOM, SEED))]
    specs += [(name, spec, PRESET_SECONDS) for name, spec in presets().items()]
    rows = []
    for name, spec, limit_s in specs[:1] if settings.quick else specs:
        rows += [{"name": name, **row} for row in points_of(spec, limit_s)]
    return {"num_specs": len(specs), "limit_s": [RANDOM_SECONDS, PRESET_SECONDS], **summary(rows), "caution": ""}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The points, and of each spec the one that took most memory beside the one that was expected to."""
    specs = {row["name"]: [each for each in rows if each["name"] == row["name"]] for row in rows}
    largest = [
        {
            "experiment": each[0]["experiment"],
            **{name: max(row[name] for row in each) for name in ("added_bytes", "estimated_bytes")},
        }
        for each in specs.values()
    ]
    return {"num_measured": len(specs), "rows": rows, "largest": largest}


def random_specs(count: int, seed: int) -> list[Spec]:
    """Presets with a few settings drawn anew, each within the bounds of its field and some way around its value."""
    draw = random.Random(seed)
    names = list(EXPERIMENTS)
    found: list[Spec] = []
    while len(found) < count:
        base = draw.choice(EXPERIMENTS[names[len(found) % len(names)]].presets).spec
        values = values_of(base)
        able = [each for each in settings(type(base)) if each.name in values and each.entry in _DRAWN]
        changed = {each.name: _drawn(draw, each, values[each.name]) for each in draw.sample(able, min(5, len(able)))}
        with contextlib.suppress(InvalidSpec, InvalidInput):
            spec = with_settings(base, changed)
            check_size(spec)
            if LEAST_S < estimate(spec).seconds < MOST_S:
                found.append(spec)
    return found


_DRAWN = ("choice", "choices", "integer", "list")


def _drawn(draw: random.Random, setting: Setting, value: Any) -> Any:
    if setting.entry == "choice":
        return draw.choice([each for each in setting.options if each != "upload"] or [value])
    if setting.entry == "choices":
        return draw.sample(setting.options, draw.randint(1, min(2, len(setting.options))))
    if setting.entry == "list":
        if not isinstance(value, tuple) or not all(isinstance(each, int) for each in value):
            return value
        return sorted({max(2, round(each * 4 ** draw.uniform(-1, 1))) for each in value})[: draw.randint(1, 3)]
    low, high = bounds(setting.info)
    near = round(value * 4 ** draw.uniform(-1, 1)) if isinstance(value, int) else value
    return min(max(near, int(low or 0)), int(high or near)) if isinstance(near, int) else near


def points_of(spec: Spec, limit_s: float) -> list[dict[str, Any]]:
    """The points that a fresh process has finished after ``limit_s``, without compiled code of others."""
    command = [sys.executable, "-m", "benchmarks.estimates", canonical_json(spec)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ}) as process:
        try:
            printed, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            printed, _ = process.communicate()
    return [compared(spec, **json.loads(line)) for line in printed.splitlines()]


def compared(
    spec: Spec, *, key: str, wall_s: float, processor_s: float, added_bytes: int, steps: int = 0
) -> dict[str, Any]:
    """One point: what was measured beside what was foreseen."""
    return {
        "experiment": spec.experiment,
        "key": key,
        "wall_s": wall_s,
        "processor_s": processor_s,
        "seconds": min(wall_s, processor_s),
        "estimated_s": SHIPPED.seconds(work_of_points(spec)[key]),
        "added_bytes": added_bytes,
        "estimated_bytes": bytes_of_point(spec, key),
        "steps": steps,
    }


def _told(spec: Spec) -> Iterator[dict[str, Any]]:
    import jax.numpy as jnp

    jnp.zeros(3).sum().block_until_ready()  # the library starts before any point does
    began, used, resident = 0.0, 0.0, 0
    for event in run(spec, scheduler=""):
        if isinstance(event, PointStarted):
            forget_peak()
            began, used, resident = time.perf_counter(), time.process_time(), resident_bytes("VmRSS")
        elif isinstance(event, PointFinished):
            wall, processor = time.perf_counter() - began, time.process_time() - used
            added = max(0, resident_bytes("VmHWM") - resident)
            steps = sum(_steps(event.point.model_dump()))
            yield {"key": event.key, "wall_s": wall, "processor_s": processor, "added_bytes": added, "steps": steps}


def _steps(value: Any) -> Iterator[int]:
    """The last step of every training in a point."""
    if isinstance(value, dict):
        if isinstance(steps := value.get("steps"), list | tuple) and steps and isinstance(steps[-1], int):
            yield steps[-1]
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            if isinstance(each, dict | list | tuple):
                yield from _steps(each)


if __name__ == "__main__":
    for told in _told(parse_spec(json.loads(sys.argv[1]))):
        print(json.dumps(told), flush=True)
