"""The kernel without Jacobians against Jacobian contraction, n = 60, C = 3; and its memory at width 10⁶.

Run: ``python -m benchmarks.empirical_ntk`` (under a minute on two cores).
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import jax
import numpy as np

from benchmarks.measure import alternate, environment, peak_of, ratio, resident_bytes, save
from ntk_core import FullyConnected, empirical_ntk
from ntk_core.kernels import generic_ntk

NUM_SAMPLES, INPUT_DIM, NUM_OUTPUTS = 60, 10, 3
SIZES = ((1_000, 1), (3_000, 1), (10_000, 1), (300, 3), (1_000, 3))


def network(width: int, depth: int) -> tuple[Any, Any, Any]:
    net = FullyConnected(width=width, depth=depth, num_outputs=NUM_OUTPUTS, activation="relu", use_bias=True)
    params = net.init(jax.random.key(0), (INPUT_DIM,))
    return net, params, jax.random.normal(jax.random.key(1), (NUM_SAMPLES, INPUT_DIM))


def compare(width: int, depth: int) -> dict[str, Any]:
    """Times of both routes and their largest relative difference (both in float32)."""
    net, params, x = network(width, depth)
    contraction = jax.jit(lambda params, x: generic_ntk(net.apply, params, x))
    rows = alternate(
        {"ours": lambda: empirical_ntk(net, params, x), "jacobian_contraction": lambda: contraction(params, x)},
        repeats=9,
    )
    ours, theirs = np.asarray(empirical_ntk(net, params, x)), np.asarray(contraction(params, x))
    return {
        "width": width,
        "hidden_layers": depth,
        "times": rows,
        "times_faster": ratio(rows, "jacobian_contraction", "ours"),
        "relative_difference": float(np.abs(ours - theirs).max() / np.abs(theirs).max()),
    }


def memory_at(width: int) -> None:
    """In a process of its own: one kernel of one hidden layer, and the peak memory that it took."""
    net, params, x = network(width, 1)
    jax.block_until_ready(params)
    began = time.perf_counter()
    kernel = jax.block_until_ready(empirical_ntk(net, params, x))
    seconds = time.perf_counter() - began
    num_params = sum(leaf.size for leaf in jax.tree.leaves(params))
    jacobian_bytes = 4 * NUM_SAMPLES * NUM_OUTPUTS * num_params
    peak = resident_bytes("VmHWM")
    print(
        json.dumps(
            {
                "width": width,
                "first_call_s": seconds,
                "num_params": num_params,
                "peak_bytes": peak,
                "jacobian_would_need_bytes": jacobian_bytes,
                "trace": float(np.einsum("iiaa->", np.asarray(kernel))),
            }
        )
    )


def main() -> None:
    data = {"environment": environment(), "num_samples": NUM_SAMPLES, "num_outputs": NUM_OUTPUTS}
    rows = [compare(*size) for size in SIZES]
    memory = [peak_of("benchmarks.empirical_ntk", str(width)) for width in (10_000, 100_000, 1_000_000)]
    save("empirical_ntk", {**data, "against_jacobian_contraction": rows, "memory": memory})


if __name__ == "__main__":
    memory_at(int(sys.argv[1])) if len(sys.argv) > 1 else main()
