"""Costs of runs against their estimates, each in a fresh process.

Long specs are shortened: fewer values of the swept setting and of other lists, then
fewer seeds and steps.

The clock of a point is the smaller of its wall time and its processor time: the first is too long
on a shared machine, the second where two threads worked in parallel.
"""

import contextlib
import json
import multiprocessing
import os
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from multiprocessing.connection import Connection

import numpy as np

from benchmarks.measure import MOST_BY_OTHERS, Meter, Row, Settings, Watch
from benchmarks.words import Data
from linearity_lab import runs
from linearity_lab.runs import EXPERIMENTS, SHIPPED, Machine, Spec, Work, work_of_points
from linearity_lab.runs._estimate import _costs
from linearity_lab.runs.costs import COEFFICIENTS, nonnegative_fit
from linearity_lab.runs.events import PointFinished, PointStarted
from linearity_lab.settings.grammar import InvalidSpec, with_settings
from linearity_lab.settings.part import SpecPart
from linearity_lab.settings.validation import bounds
from linearity_lab.settings.walk import Setting, settings, values_of
from ntk_core.errors import InvalidInput

NUM_RANDOM = 40
SEED = 20
MOST_S = 4.0  # of a spec, by the yardstick; longer specs are shortened
LIMIT_S = 60.0  # specs above this limit are omitted and recorded
# Chooses and shortens specs; not the shipped table, or a new fit would choose other specs and
# need new measurements.
YARDSTICK = Machine(operations=1e-11, traffic=6e-11, calls=3e-5, programs=1.0)
# Actual, estimated, and the factor within which they should agree.
CLAIMS = (
    ("seconds", "estimated_s", 2.0),
    ("seconds", "learned_s", 2.0),
    ("added_bytes", "estimated_bytes", 1.3),
)
_LEAST = {
    "networks": 1,
    "num_seeds": 1,
    "num_kernels": 1000,
    "training.max_steps": 100,
    "max_steps": 100,
}
_DRAWN = ("choice", "choices", "integer", "list")


def measure(settings: Settings) -> Row:
    """Measured and estimated costs of every preset and of random specs."""
    specs = {name: shortened(spec) for name, spec in runs.presets().items()}
    specs |= {
        f"random {index}": spec for index, spec in enumerate(islice(random_specs(SEED), NUM_RANDOM))
    }
    if settings.quick:
        specs = dict(list(specs.items())[-1:])
    reported = {name: measured(name, spec) for name, spec in specs.items()}
    rows = [
        compared(name, specs[name], each["points"])
        for name, each in reported.items()
        if each["points"]
    ]
    drawn = [row for row in rows if row["name"].startswith("random")]
    of_presets = [row for row in rows if row not in drawn]
    learned, coefficients = fitted_to(rows if settings.quick else of_presets)
    for row in rows:
        row["learned_s"] = sum(seconds_by(learned, coefficients, each) for each in row["points"])
    print(f"SHIPPED = {learned}\nCOEFFICIENTS = {coefficients}", flush=True)
    busy = statistics.mean(each["busy_by_others"] or 0.0 for each in reported.values())
    now = os.getloadavg()[0]
    took_s = sum(row["wall_s"] for row in rows)
    load = {
        "at_start": now,
        "at_end": now,
        "took_s": took_s,
        "busy_by_others": busy,
        "high": busy > MOST_BY_OTHERS,
    }
    return {
        "load": {**load, "forced": False},
        "num_specs": len(specs),
        "unfinished": [name for name, each in reported.items() if not each["points"]],
        "shipped": SHIPPED._asdict(),
        "fitted_to_presets": learned._asdict(),
        "coefficients": coefficients,
        **{
            name: verdicts(each)
            for name, each in (("presets", of_presets), ("random", drawn), ("all", rows))
        },
        "rows": rows,
    }


def measured(name: str, spec: Spec) -> Row:
    """Return finished points of a spec and the load."""
    watch = Watch()
    points = reported_by(spec)
    print(f"{name}: {sum(each['wall_s'] for each in points):.1f} s", flush=True)
    return {"points": points, "busy_by_others": watch.note()["busy_by_others"]}


def fitted_to(rows: list[Row], weight: float = 0.1) -> tuple[Machine, dict[str, float]]:
    """Fit the tables of ``linearity_lab/runs/costs.py`` to these specs.

    Non-negative least squares of the logarithm of actual over estimated seconds, as in
    ``linearity_lab.runs.costs``, with a coefficient for each kind of program. The shipped tables
    count as much as ``weight`` points.
    """
    points = [each for row in rows for each in row["points"]]
    kinds = sorted(COEFFICIENTS)
    start = np.array([*SHIPPED[:3], *(SHIPPED.programs * COEFFICIENTS[kind] for kind in kinds)])
    counts = np.array(
        [
            [*each["work"][:3], *(each["programs"].get(kind, 0.0) for kind in kinds)]
            for each in points
        ]
    )
    scale = start * nonnegative_fit(
        counts * start, np.array([each["seconds"] for each in points]), weight
    )
    operations, traffic, calls, *programs = (float(f"{value:.2g}") for value in scale)
    return Machine(operations, traffic, calls, 1.0), dict(zip(kinds, programs, strict=True))


def seconds_by(machine: Machine, coefficients: dict[str, float], point: Row) -> float:
    """Return the seconds of a point by these tables."""
    programs = sum(coefficients[kind] * number for kind, number in point["programs"].items())
    operations, traffic, calls, _ = point["work"]
    return machine.seconds(Work(operations, traffic, calls, programs))


def verdict(rows: Sequence[Data], claim: tuple[str, str, float]) -> Row:
    """Return median ratio of actual and estimated, and share within a factor."""
    actual, estimated, factor = claim
    ratios = [row[actual] / row[estimated] for row in rows]
    within = sum(1 / factor <= ratio <= factor for ratio in ratios) / len(ratios)
    return {"median": statistics.median(ratios), "factor": factor, "within": within}


def verdicts(rows: list[Row]) -> Row:
    """Return every claim's verdict on some specs; empty without any."""
    return {claim[1]: verdict(rows, claim) for claim in CLAIMS if rows}


def shortened(spec: Spec, most_s: float = MOST_S) -> Spec:
    """Return ``spec``, or less of it that takes about this long."""
    held = values_of(spec)
    listed = [
        spec.swept_field,
        *(name for name, value in held.items() if isinstance(value, tuple) and "." not in name),
    ]
    changes = [
        {name: held[name][:kept]} for name in listed for kept in range(len(held[name]), 0, -1)
    ]
    for name, least in _LEAST.items():
        now = int(held.get(name, 0))
        while now > least:
            now = max(least, now // 2)
            changes.append({name: now})
    for change in changes:
        if seconds_of(spec) <= most_s:
            break
        with contextlib.suppress(InvalidSpec, InvalidInput):
            spec = with_settings(spec, change)
    return spec


def seconds_of(spec: Spec) -> float:
    """Return the expected cost of a spec by the yardstick."""
    even = dict.fromkeys(COEFFICIENTS, 0.8)
    points = [
        {"work": list(work), "programs": _programs(spec, key)}
        for key, work in work_of_points(spec).items()
    ]
    return sum(seconds_by(YARDSTICK, even, point) for point in points)


def random_specs(seed: int) -> Iterator[Spec]:
    """Yield presets with a few settings redrawn near their values."""
    draw = random.Random(seed)
    names = list(EXPERIMENTS)
    index = 0
    while True:
        base = draw.choice(EXPERIMENTS[names[index % len(names)]].presets).spec
        values = values_of(base)
        kind: type[SpecPart] = type(base)
        able = [each for each in settings(kind) if each.name in values and each.entry in _DRAWN]
        changed = {
            each.name: _drawn(draw, each, values[each.name])
            for each in draw.sample(able, min(5, len(able)))
        }
        with contextlib.suppress(InvalidSpec, InvalidInput):
            spec = shortened(with_settings(base, changed))
            runs.check_size(spec)
            if seconds_of(spec) < 2 * MOST_S:
                yield spec
                index += 1


def _drawn(draw: random.Random, setting: Setting, value: object) -> object:
    if setting.entry == "choice":
        return draw.choice([each for each in setting.options if each != "upload"] or [value])
    if setting.entry == "choices":
        return draw.sample(setting.options, draw.randint(1, min(2, len(setting.options))))
    if isinstance(value, tuple) and all(isinstance(each, int) for each in value):
        return sorted({max(2, round(each * 4 ** draw.uniform(-1, 1))) for each in value})[
            : draw.randint(1, 3)
        ]
    if not isinstance(value, int):
        return value
    low, high = bounds(setting.info)
    near = round(value * 4 ** draw.uniform(-1, 1))
    return min(max(near, int(low or 0)), int(high or near))


def reported_by(spec: Spec) -> list[Row]:
    """Return the points that a fresh process has finished within the limit."""
    context = multiprocessing.get_context("forkserver")
    homes = [f"linearity_lab.experiments.{name}.compute" for name in EXPERIMENTS]
    context.set_forkserver_preload(["benchmarks.estimates", "jax", *homes])
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_report, args=(there, runs.canonical_json(spec)), daemon=True)
    process.start()
    there.close()
    reported = []
    deadline = time.monotonic() + LIMIT_S
    with contextlib.suppress(EOFError):
        while here.poll(max(0.0, deadline - time.monotonic())):
            reported.append(here.recv())
    process.kill()
    process.join()
    return reported


def compared(name: str, spec: Spec, reported: list[Row]) -> Row:
    """Return measured and estimated costs of a spec and its points."""
    works = work_of_points(spec)
    points = []
    for point in reported:
        key = point["key"]
        work = works[point["key"]]
        estimated = {"estimated_s": SHIPPED.seconds(work), "estimated_bytes": _costs(spec)[key][1]}
        counted = {"work": list(work), "programs": _programs(spec, key)}
        points.append(
            {**point, "seconds": min(point["wall_s"], point["processor_s"]), **estimated, **counted}
        )
    sums = {
        each: sum(point[each] for point in points)
        for each in ("wall_s", "processor_s", "seconds", "estimated_s")
    }
    peaks = {
        each: max(point[each] for point in points) for each in ("added_bytes", "estimated_bytes")
    }
    return {"name": name, "experiment": spec.experiment, **sums, **peaks, "points": points}


def _programs(spec: Spec, key: str) -> dict[str, float]:
    """Return numbers of programs by kind, weighted by network size."""
    found: dict[str, float] = {}
    for each in runs.counts_of(spec, key):
        for kind, number in each.programs.items():
            if number:
                found[kind] = found.get(kind, 0.0) + number * each.network.program
    return found


def _report(pipe: Connection, spec: str) -> None:
    import jax.numpy as jnp

    jnp.zeros(3).sum().block_until_ready()  # the library starts before any point does
    meter = Meter()
    for event in runs.run(runs.parse_spec(json.loads(spec)), scheduler=""):
        if isinstance(event, PointStarted):
            meter.restart()
        elif isinstance(event, PointFinished):
            pipe.send({"key": event.key, **meter.read()})
