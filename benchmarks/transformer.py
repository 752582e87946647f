"""The kernel of a transformer, structured, against a contraction of its Jacobians in the same JAX."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from benchmarks.measure import Settings, alternate, own, ratio
from ntk_core import Transformer, empirical_ntk
from ntk_core.kernels import generic_ntk

BLOCKS, HEADS, HEAD_DIM, LENGTH, FEATURES, NUM_SAMPLES, NUM_OUTPUTS = 4, 8, 64, 16, 64, 60, 2
AIM = 5.0


def measure(settings: Settings) -> dict[str, Any]:
    """Both in turn, with the memory that each adds; how far the kernels differ."""
    blocks, head_dim, num_samples = (1, 2, 4) if settings.quick else (BLOCKS, HEAD_DIM, NUM_SAMPLES)
    net = Transformer(HEADS, head_dim, NUM_OUTPUTS, num_blocks=blocks)
    params = jax.jit(net.init, static_argnums=1)(jax.random.key(0), (LENGTH, FEATURES))
    x = jax.random.normal(jax.random.key(1), (num_samples, LENGTH, FEATURES))
    contraction = jax.jit(lambda params, x: generic_ntk(net.apply, params, x))
    kept: dict[str, jax.Array] = {}

    def structured() -> jax.Array:
        found = empirical_ntk(net, params, x)
        kept["ours"] = found
        return found

    def contracted() -> jax.Array:
        found = contraction(params, x)
        kept["jax"] = found
        return found

    competitors = {"ours": own(structured), "jacobian_contraction": own(contracted)}
    rows = alternate(competitors, repeats=1 if settings.quick else 5)
    own_kernel, contracted_kernel = (np.asarray(kept[name], np.float64) for name in ("ours", "jax"))
    difference = float(np.linalg.norm(own_kernel - contracted_kernel) / np.linalg.norm(contracted_kernel))
    sizes = {"blocks": blocks, "heads": HEADS, "features": HEADS * head_dim, "length": LENGTH}
    num_params = net.num_params((LENGTH, FEATURES))
    return {
        **sizes,
        "num_samples": num_samples,
        "num_outputs": NUM_OUTPUTS,
        "num_params": num_params,
        "aim": AIM,
        "times": rows,
        "times_faster": ratio(rows, "jacobian_contraction", "ours"),
        "relative_difference": difference,
        "jacobian_needs_bytes": 4 * num_samples * NUM_OUTPUTS * num_params,
    }
