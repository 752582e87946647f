"""Models of others by the structured route: against our own network, Jacobians, neural-tangents and torch.func."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.kernel import SCRIPTS, compare, network
from benchmarks.measure import Settings, alternate, own, ratio
from benchmarks.peers.process import Peer
from ntk_core import empirical_ntk
from ntk_core.kernels import generic_ntk

DEPTH, WIDTH, NUM_OUTPUTS, INPUT_DIM, NUM_SAMPLES, NUM_BY_JACOBIANS = 3, 3_000, 3, 10, 60, 10
SLOWER_AT_MOST, FASTER_AT_LEAST = 1.3, 20.0
SAME_PROGRAMS = (("dense", 3, 1_000), ("dense", 3, 3_000), ("convnet", 2, 64))
RESIDUAL = {"channels": 64, "blocks": 2, "size": 32, "num_outputs": 3, "num_samples": 20}
TORCHAX, TORCHAX_SCRIPT = "torchax", "torchax_side.py"


class Plain(nn.Module):
    """A Flax multi-layer perceptron of the shape of ours."""

    width: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for _ in range(DEPTH):
            x = nn.relu(nn.Dense(self.width, use_bias=False)(x))
        return nn.Dense(NUM_OUTPUTS, use_bias=False)(x)


def flax_model(quick: bool) -> dict[str, Any]:
    """Kernel of a Flax model: our own network of its shape, and a contraction of its Jacobians on fewer inputs."""
    width = 20 if quick else WIDTH
    net, own_params, x = network("dense", DEPTH, width)
    model = Plain(width)
    params = jax.jit(model.init)(jax.random.key(0), x)
    few = x[:NUM_BY_JACOBIANS]
    kept: dict[str, jax.Array] = {}

    def apply(params: Any, x: jax.Array) -> jax.Array:
        return jnp.asarray(model.apply(params, x))

    def traced(rows: jax.Array) -> jax.Array:
        kept["traced"] = empirical_ntk(apply, params, rows)
        return kept["traced"]

    contraction = jax.jit(lambda params, x: generic_ntk(apply, params, x))

    def contracted() -> jax.Array:
        kept["jacobians"] = contraction(params, few)
        return kept["jacobians"]

    repeats = 2 if quick else 9
    rows = alternate(
        {"traced": own(lambda: traced(x)), "own": own(lambda: empirical_ntk(net, own_params, x))}, repeats=repeats
    )
    few_rows = alternate(
        {"traced": own(lambda: traced(few)), "jacobians": own(contracted)}, repeats=repeats, budget_s=30
    )
    one, other = (np.asarray(kept[name], np.float64) for name in ("traced", "jacobians"))
    return {
        "width": width,
        "hidden_layers": DEPTH,
        "num_params": sum(leaf.size for leaf in jax.tree.leaves(params)),
        "num_samples": NUM_SAMPLES,
        "num_outputs": NUM_OUTPUTS,
        "times": rows,
        "slower_than_own": ratio(rows, "traced", "own"),
        "num_samples_by_jacobians": NUM_BY_JACOBIANS,
        "times_by_jacobians": few_rows,
        "faster_than_jacobians": ratio(few_rows, "jacobians", "traced"),
        "relative_difference": float(np.linalg.norm(one - other) / np.linalg.norm(other)),
    }


def same_programs(peer: Peer, quick: bool) -> list[dict[str, Any]]:
    """Our networks as plain functions, traced, against neural-tangents' structured derivatives on the same weights."""
    cases = (("dense", 1, 20), ("convnet", 2, 3)) if quick else SAME_PROGRAMS
    return [
        compare({"neural-tangents": peer}, kind, depth, width, {"neural-tangents": ["structured"]}, quick, traced=True)
        for kind, depth, width in cases
    ]


def residual_network(interpreter: str, quick: bool) -> dict[str, Any]:
    """A residual network of PyTorch, by torchax and traced, against vmap(jacrev) of torch.func: each in a process."""
    sizes = {"channels": 4, "blocks": 1, "size": 8, "num_outputs": 2, "num_samples": 2} if quick else RESIDUAL
    found: dict[str, Any] = {"sizes": sizes}
    for way in ("traced", "jacobian_contraction"):
        with Peer(interpreter, TORCHAX_SCRIPT) as peer:
            found["packages"] = peer.packages()
            peer.ask({**sizes, "way": way})
            answers: dict[str, dict[str, Any]] = {}
            rows = alternate({way: peer.competitor(way, answers)}, repeats=1 if quick else 3)
            found[way] = {**answers[way], **rows[way]}
    found["times_faster"] = found["jacobian_contraction"]["median_s"] / found["traced"]["median_s"]
    found["relative_difference_of_norms"] = abs(found["jacobian_contraction"]["norm"] / found["traced"]["norm"] - 1)
    return found


def measure(settings: Settings) -> dict[str, Any]:
    """The parts whose environments are at hand."""
    found: dict[str, Any] = {"flax": flax_model(settings.quick)}
    with ExitStack() as stack:
        if at := settings.interpreter("neural-tangents"):
            peer = stack.enter_context(Peer(at, SCRIPTS["neural-tangents"]))
            found["peers"] = {"neural-tangents": peer.packages()}
            found["same_programs"] = same_programs(peer, settings.quick)
    if at := settings.interpreter(TORCHAX):
        found["residual"] = residual_network(at, settings.quick)
    return found
