"""Kernels beside a network at n = 5,000: training, kernels of training and test points, Cholesky, and their memory."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from benchmarks.measure import Settings
from ntk_core import presets
from ntk_core.runs import canonical_json, estimate
from ntk_core.settings.grammar import with_settings

PRESET = "price-of-linearity"
LARGE: dict[str, Any] = {
    "widths": [1000],
    "richness": [0.0],
    "num_seeds": 1,
    "dataset.num_samples": 5000,
    "training": {"max_steps": 500, "loss_threshold": 0.01, "num_records": 3},
}
QUICK: dict[str, Any] = {"widths": [8], "richness": [0.0], "num_seeds": 1, "num_test": 4, "dataset.num_samples": 6}
CASES = {PRESET: {}, "n = 5,000, m = 1,000": LARGE}


def measure(settings: Settings) -> dict[str, Any]:
    """Seconds and peak memory of the preset and of one large point, each in a process of its own."""
    rows = []
    for name, changes in CASES.items():
        spec = with_settings(presets()[PRESET], changes | (QUICK if settings.quick else {}))
        command = [sys.executable, "-m", "benchmarks.generalization", canonical_json(spec)]
        found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        rows.append(
            {"case": name, "points": len(spec.point_keys()), "foreseen_bytes": estimate(spec).peak_bytes, **found}
        )
    return {"rows": rows}


if __name__ == "__main__":
    import resource
    import time

    import jax.numpy as jnp

    from ntk_core.experiments.generalization import GeneralizationResult
    from ntk_core.runs import parse_spec, run
    from ntk_core.runs.events import Ended

    wanted = parse_spec(json.loads(sys.argv[1]))
    jnp.zeros(1).block_until_ready()  # JAX itself counts neither in time nor in memory
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    *_, ended = run(wanted)
    assert isinstance(ended, Ended)
    assert isinstance(ended.result, GeneralizationResult)
    runs = [each for point in ended.result.points for each in point.runs]
    print(
        json.dumps(
            {
                "total_s": time.perf_counter() - began,
                "added_bytes": 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before),
                "condition": max(each.condition[0] for each in runs),
                "steps": max(each.num_steps for each in runs),
            }
        )
    )
