"""A linearity report of a PyTorch model of ten million parameters, and the first point and the end of ``horizon``.

``python -m benchmarks --only linearity`` takes some two minutes on two cores. Every row is a process of its own, once,
with all that is compiled; processor seconds are of that process. The report needs torchax, in the environment of
``--peer torchax=PYTHON``; without it the same layers are a plain function.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from typing import Any

import numpy as np

from benchmarks.measure import Settings
from benchmarks.peers.side import forget_peak, resident_bytes

AIMS = {"report": {"end_s": 10.0, "added_bytes": 1.5 * 2**30}, "horizon": {"first_s": 1.5, "end_s": 60.0}}
NUM_INPUTS = 20
WIDTH, INPUT = 2046, 784  # three hidden layers: ten million parameters


def measure(settings: Settings) -> dict[str, Any]:
    """Wall and processor seconds of both, and the memory that the report adds."""
    at = settings.interpreter("torchax")
    way = "torch" if at else "function"
    report = _in_a_process(at or sys.executable, way, "30" if settings.quick else str(WIDTH))
    horizon = _in_a_process(sys.executable, "horizon", "quick" if settings.quick else "default")
    return {"rows": [{"case": "report", "way": way, **report}, {"case": "horizon", "way": "preset", **horizon}],
            "aims": AIMS, "num_inputs": NUM_INPUTS}  # fmt: skip


def _in_a_process(interpreter: str, *case: str) -> dict[str, float]:
    command = [interpreter, "-m", "benchmarks.linearity", *case]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _report(way: str, width: int) -> dict[str, float]:
    """The report's time and memory, after the weights of both checkpoints are there."""
    import jax
    import jax.numpy as jnp

    import ntk_core

    x = np.random.default_rng(0).standard_normal((NUM_INPUTS, INPUT)).astype(np.float32)
    sizes = [INPUT, width, width, width, 10]
    if way == "torch":
        import torch
        from torch import nn

        torch.manual_seed(0)
        pairs = [(nn.Linear(a, b), nn.Tanh()) for a, b in itertools.pairwise(sizes)]
        apply, params = ntk_core.from_torch(nn.Sequential(*[each for pair in pairs for each in pair][:-1]), x)
    else:
        keys = jax.random.split(jax.random.key(0), len(sizes) - 1)
        params = {str(k): jax.random.normal(keys[k], sizes[k : k + 2]) / sizes[k] ** 0.5 for k in range(len(keys))}

        def apply(params: Any, x: Any) -> Any:
            for name in list(params)[:-1]:
                x = jnp.tanh(x @ params[name])
            return x @ params[list(params)[-1]]

    after = jax.block_until_ready(jax.tree.map(lambda w: 1.01 * w, params))
    before, began, busy = forget_peak(), time.perf_counter(), time.process_time()
    found = ntk_core.linearity_report(apply, params, after, x)
    return {
        "end_s": time.perf_counter() - began,
        "busy_s": time.process_time() - busy,
        "added_bytes": max(0, resident_bytes("VmHWM") - before),
        "num_params": found.num_params,
    }


def _horizon(size: str) -> dict[str, float]:
    """Seconds from the start of the run, JAX already imported as in a warm worker, to its first point and its end."""
    import jax

    from ntk_core import presets
    from ntk_core.runs import run
    from ntk_core.settings.grammar import with_settings

    jax.block_until_ready(jax.numpy.ones(1))
    small = {"widths": [4], "regimes": ["large-rate"], "num_seeds": 1}
    spec = with_settings(presets()["horizon"], small) if size == "quick" else presets()["horizon"]
    began, busy = time.perf_counter(), time.process_time()
    found: dict[str, float] = {}
    for event in run(spec):
        if event.kind == "point_finished" and not found:
            found = {"first_s": time.perf_counter() - began, "first_busy_s": time.process_time() - busy}
    end = {"end_s": time.perf_counter() - began, "busy_s": time.process_time() - busy}
    return {**found, **end, "points": len(spec.point_keys())}


if __name__ == "__main__":
    way, given = sys.argv[1:]
    print(json.dumps(_horizon(given) if way == "horizon" else _report(way, int(given))))
