"""Whole runs in fresh processes, compilation included.

Maps and presets against their aims; kernels beside a network at n = 5,000; one linearity report
and the preset ``horizon``; the default sweep against a plain JAX script of the same science, whose
numbers must agree.
"""

import itertools
import os
import statistics
import sys
import tempfile
import time

import cyclopts
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

import ntk_core
from benchmarks.measure import ROOT, Meter, Row, Settings, Watch, earlier, environment, isolated
from benchmarks.plain_sweep import sweep_widths
from linearity_lab import load_dataset, presets
from linearity_lab.experiments.generalization.point import GeneralizationResult
from linearity_lab.experiments.kernel_change.point import KernelChangeResult, KernelChangeSpec
from linearity_lab.runs import Result, Spec, canonical_json, estimate, parse_spec, run
from linearity_lab.runs.compiled_code import VARIABLE, keep_compiled_code
from linearity_lab.runs.events import Ended, PointFinished
from linearity_lab.settings.grammar import with_settings
from linearity_lab.settings.part import Values

# Seconds on two cores.
MOST_S = {"catapult-map": 90.0, "depth-width": 180.0}
QUICK: dict[str, Values] = {
    "catapult-map": {"widths": [4], "rates": [1.0], "num_seeds": 1, "max_steps": 2},
    "depth-width": {"depths": [1], "widths": [4], "num_kernels": 20, "trained_depth": 0},
    "price-of-linearity": {
        "widths": [8],
        "richness": [0.0],
        "num_seeds": 1,
        "num_test": 4,
        "dataset.num_samples": 6,
    },
    "horizon": {"widths": [4], "regimes": ["large-rate"], "num_seeds": 1},
    "point-worth": {"widths": [8], "num_seeds": 1, "num_removed": 2, "training.max_steps": 9},
    "liu-fig1-left": {
        "widths": [10],
        "num_seeds": 1,
        "outputs": ["linear"],
        "training.max_steps": 9,
        "training.num_records": 2,
    },
}


def spec_of(preset: str, settings: Settings, changes: Values | None = None) -> Spec:
    """Return a preset with changes, tiny in a quick run."""
    return with_settings(
        presets()[preset], {**(changes or {}), **(QUICK[preset] if settings.quick else {})}
    )


def whole_run(spec: Spec) -> tuple[Row, Result | None]:
    """Run in this process; return times, costs and the result."""
    meter = Meter()
    points = dict[str, float]()
    costs = []
    result = None
    for event in run(spec):
        if isinstance(event, PointFinished):
            costs.append(meter.read())
            points[event.key.partition("=")[2]] = costs[-1]["wall_s"]
        elif isinstance(event, Ended):
            result = event.result
    end = meter.read()
    return {"total_s": end["wall_s"], "point_s": points, "first": costs[0], "end": end}, result


def fresh_run(spec: Spec, is_jax_started: bool, cache: str = "") -> Row:
    """Run in a fresh process, with a folder of compiled code."""
    return isolated(
        _fresh_run, canonical_json(spec), is_jax_started, **({VARIABLE: cache} if cache else {})
    )


def _fresh_run(spec: str, is_jax_started: bool) -> Row:
    if VARIABLE in os.environ:
        keep_compiled_code()
    if is_jax_started:
        jax.numpy.ones(1).block_until_ready()
    found, result = whole_run(parse_spec(spec))
    if isinstance(result, GeneralizationResult):
        runs = [each for point in result.points for each in point.runs]
        found["condition"] = max(each.condition[0] for each in runs)
        found["steps"] = max(each.num_steps for each in runs)
    return found


def maps(settings: Settings) -> Row:
    """Seconds of every map, the start of JAX included."""
    rows = []
    for name, most_s in MOST_S.items():
        spec = spec_of(name, settings)
        found = {
            "points": len(spec.point_keys()),
            "most_s": most_s,
            "total_s": fresh_run(spec, False)["total_s"],
        }
        rows.append({"preset": name, **found})
    return {"rows": rows}


# Presets whose first mark and end have aims, each in a process that is warmed up like a worker.
COLD = (
    "adding-networks",
    "adding-curves",
    "adding-adapters",
    "adding-many",
    "point-worth",
    "point-worth-swish",
    "point-worth-width",
    "edge-of-stability",
)
COLD_AIMS_S = {"first": 1.5, "last": 60.0}


def cold_presets(settings: Settings) -> Row:
    """Seconds to the first and the last mark of presets, all that is compiled included."""
    rows = []
    for name in ["point-worth"] if settings.quick else settings.wanted(COLD):
        spec = spec_of(name, settings)
        found = isolated(_cold_run, canonical_json(spec))
        rows.append({"preset": name, "points": len(spec.point_keys()), **found})
        print(rows[-1], flush=True)
    return {"rows": rows, "aims_s": COLD_AIMS_S}


def _cold_run(spec: str) -> Row:
    # Earlier commits, against which the default sweep is measured, have no Explore.
    from benchmarks.explore import timed
    from linearity_lab.dashboard.jobs.worker import warm_up

    warm_up()
    return timed(parse_spec(spec))


PRICE = "price-of-linearity"
LARGE: Values = {
    "widths": [1000],
    "richness": [0.0],
    "num_seeds": 1,
    "dataset.num_samples": 5000,
    "training": {"max_steps": 500, "loss_threshold": 0.01, "num_records": 3},
}


def generalization(settings: Settings) -> Row:
    """Time and peak memory of the preset and of one large point."""
    rows = []
    for name, changes in {PRICE: {}, "n = 5,000, m = 1,000": LARGE}.items():
        spec = spec_of(PRICE, settings, changes)
        found = fresh_run(spec, True)
        measured = {each: found[each] for each in ("total_s", "condition", "steps")}
        foreseen = {"points": len(spec.point_keys()), "foreseen_bytes": estimate(spec).peak_bytes}
        rows.append(
            {"case": name, **foreseen, "added_bytes": found["end"]["added_bytes"], **measured}
        )
    return {"rows": rows}


AIMS = {
    "report": {"end_s": 10.0, "added_bytes": 1.5 * 2**30},
    "horizon": {"first_s": 1.5, "end_s": 60.0},
}
NUM_INPUTS = 20
# Three hidden layers: ten million parameters.
WIDTH = 2046
INPUT = 784


def linearity(settings: Settings) -> Row:
    """A report of ten million parameters, and the preset ``horizon``.

    The report needs torchax; without it the same layers are a plain function.
    """
    python = settings.interpreters.get("torchax")
    way = "torch" if python else "function"
    report = isolated(
        report_of_a_model, way, 30 if settings.quick else WIDTH, python=python or sys.executable
    )
    spec = spec_of("horizon", settings)
    found = fresh_run(spec, True)  # as in a warm worker
    end = {
        "end_s": found["end"]["wall_s"],
        "busy_s": found["end"]["processor_s"],
        "points": len(spec.point_keys()),
    }
    horizon = {"case": "horizon", "way": "preset", "first_s": found["first"]["wall_s"], **end}
    rows = [{"case": "report", "way": way, **report}, horizon]
    return {"rows": rows, "aims": AIMS, "num_inputs": NUM_INPUTS}


def report_of_a_model(way: str, width: int) -> Row:
    """Measure a linearity report, once the weights of both checkpoints exist."""
    x = np.random.default_rng(0).standard_normal((NUM_INPUTS, INPUT)).astype(np.float32)
    sizes = [INPUT, width, width, width, 10]
    if way == "torch":
        import torch
        from torch import nn

        torch.manual_seed(0)
        layers = [
            layer for a, b in itertools.pairwise(sizes) for layer in (nn.Linear(a, b), nn.Tanh())
        ]
        apply, params = ntk_core.from_torch(nn.Sequential(*layers[:-1]), x)
    else:
        keys = jax.random.split(jax.random.key(0), len(sizes) - 1)
        params = {
            str(k): jax.random.normal(keys[k], sizes[k : k + 2]) / sizes[k] ** 0.5
            for k in range(len(keys))
        }

        def apply(params: PyTree, x: jax.Array) -> jax.Array:
            *hidden, last = params.values()
            for weight in hidden:
                x = jnp.tanh(x @ weight)
            return x @ last

    after = jax.block_until_ready(jax.tree.map(lambda w: 1.01 * w, params))
    meter = Meter()
    found = ntk_core.linearity_report(apply, params, after, x)
    cost = meter.read()
    spent = {
        "end_s": cost["wall_s"],
        "busy_s": cost["processor_s"],
        "added_bytes": cost["added_bytes"],
    }
    return {**spent, "num_params": found.num_params}


PRESET = "liu-fig1-left"
NUM_SEEDS = 2


def sweep(settings: Settings) -> Row:
    """Ours cold, warm, and from compiled code; the plain script once."""
    spec = spec_of(PRESET, settings, {"num_seeds": NUM_SEEDS})
    cold, _ = whole_run(spec)
    # Before the script, since its compiled programs would make a run release its own.
    warm, result = whole_run(spec)
    assert isinstance(spec, KernelChangeSpec)
    assert isinstance(result, KernelChangeResult)
    data = load_dataset(spec.dataset.name, **spec.dataset.options())
    training = spec.training
    limits = training.loss_threshold, training.max_steps, training.num_records
    began = time.perf_counter()
    points = dict[str, float]()

    def note(width: int) -> None:
        points[str(width)] = time.perf_counter() - began

    found = sweep_widths(data.x, data.y, spec.widths, spec.num_seeds, *limits, on_point=note)
    script = {"total_s": time.perf_counter() - began, "point_s": points}
    with tempfile.TemporaryDirectory() as place:  # filled by one process, reused by the next
        _, from_disk = (fresh_run(spec, False, place) for _ in range(2))
    differences = [
        abs(each.sup_change - found[point.width, each.output, each.seed][0]) / each.sup_change
        for point in result.points
        for each in point.runs
        if settings.quick or each.outcome == "converged"
    ]
    runs = {
        "ours_cold": cold,
        "ours_from_disk": from_disk,
        "plain_script": script,
        "ours_warm": warm,
    }
    times = {
        name: {each: row[each] for each in ("total_s", "point_s")} for name, row in runs.items()
    }
    faster = {
        f"times_faster_{name}": script["total_s"] / row["total_s"]
        for name, row in (("cold", cold), ("warm", warm))
    }
    apart = {
        "median": float(np.median(differences)),
        "max": max(differences),
        "runs": len(differences),
    }
    summary = {"preset": PRESET, "num_seeds": spec.num_seeds, **times, **faster}
    return {**summary, "relative_difference_of_sup_change": apart}


def sweep_cost(small: bool) -> Row:
    """Return processor seconds of the default sweep in this process.

    They are with compilation and without it.
    """
    spec = spec_of(PRESET, Settings(quick=small), {"num_seeds": NUM_SEEDS})
    cold, _ = whole_run(spec)
    warm, _ = whole_run(spec)
    return {"cold": cold["end"]["processor_s"], "warm": warm["end"]["processor_s"]}


def main(revision: str, rounds: int = 5) -> None:
    """Compare the default sweep and its training steps with those of an earlier commit, in turn."""
    from benchmarks.__main__ import keep
    from benchmarks.training import step_cost

    conditions = environment()
    # Two threads of one core share its units, which adds to the processor time of both.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    watch = Watch()
    measured = {"sweep": (sweep_cost, False), "steps": (step_cost, 1_000)}
    rows = []
    with earlier(revision) as before:
        trees = {"before": before, "now": ROOT}
        for what, (work, argument) in measured.items():
            turns = []
            for _ in range(rounds):
                turns.append(
                    {side: isolated(work, argument, tree=at) for side, at in trees.items()}
                )
            for name in turns[0]["now"]:
                row: Row = {"quantity": what, "kind": name}
                for side in trees:
                    row[side] = statistics.median(turn[side][name] for turn in turns)
                ratios = [turn["now"][name] / turn["before"][name] for turn in turns]
                rows.append({**row, "ratio": statistics.median(ratios), "ratios": sorted(ratios)})
                print(rows[-1], flush=True)
    found = {"environment": conditions, "load": {**watch.note(), "forced": True}}
    keep("before_sweep", {**found, "revision": revision, "rounds": rounds, "rows": rows}, True)


if __name__ == "__main__":
    from benchmarks import whole_runs  # fresh processes find its functions by their module

    cyclopts.run(whole_runs.main)
