"""Empirical kernels against neural-tangents' three implementations and torch.func's two ways, on the same weights.

All processes stay warm and take turns, so that a drift of the machine's speed hits each of them. A Jacobian contraction
in this project's own JAX is one more competitor: it needs no other environment.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks.measure import Competitor, Settings, alternate, own, peak_of, ratio
from benchmarks.peers.process import Peer
from benchmarks.peers.side import forget_peak, resident_bytes
from ntk_core import ConvNet, FullyConnected, empirical_ntk
from ntk_core.kernels import generic_ntk
from ntk_core.networks.architectures import Network

NUM_SAMPLES, NUM_OUTPUTS, INPUT_DIM = 60, 3, 10
SCRIPTS = {"neural-tangents": "neural_tangents_side.py", "torch": "torch_side.py"}
NT, TORCH, OWN_JAX = "neural-tangents", "torch", "jax"
EVERY = {NT: ["structured", "ntvp", "jacobian_contraction"], TORCH: ["jacobian_contraction"], OWN_JAX: []}
PRODUCTS_TOO = {**EVERY, TORCH: ["jacobian_contraction", "vector_products"]}
# Jacobians of the larger cases do not fit into memory, products of vectors take minutes: the better ones compete there.
CASES: tuple[tuple[str, int, int, dict[str, list[str]]], ...] = (
    ("dense", 1, 1_000, PRODUCTS_TOO),
    ("dense", 1, 10_000, EVERY),
    ("dense", 1, 100_000, {NT: ["structured"], TORCH: ["jacobian_contraction"]}),
    ("dense", 3, 300, PRODUCTS_TOO),
    ("dense", 3, 1_000, {NT: ["structured", "ntvp"], TORCH: ["jacobian_contraction"]}),
    ("dense", 3, 3_000, {NT: ["structured"]}),
    ("convnet", 2, 64, EVERY),
    ("convnet", 2, 256, {NT: ["structured"]}),
)
QUICK_CASES = (("dense", 1, 20, PRODUCTS_TOO), ("convnet", 2, 3, PRODUCTS_TOO))
MEMORY_CASES = ((1, 10_000), (1, 100_000), (1, 1_000_000), (3, 10_000), (3, 30_000))


def network(kind: str, depth: int, width: int) -> tuple[Network, Any, jax.Array]:
    """Network, weights and inputs of one case."""
    shape: tuple[int, ...] = (INPUT_DIM,) if kind == "dense" else (8, 8, 3)
    net: Network = (FullyConnected if kind == "dense" else ConvNet)(
        width=width, depth=depth, num_outputs=NUM_OUTPUTS, activation="relu"
    )
    params = jax.jit(net.init, static_argnums=1)(jax.random.key(0), shape)
    return net, params, jax.random.normal(jax.random.key(1), (NUM_SAMPLES, *shape))


def compare(
    peers: dict[str, Peer],
    kind: str,
    depth: int,
    width: int,
    asked: dict[str, list[str]],
    quick: bool,
    traced: bool = False,
) -> dict[str, Any]:
    """Times of ours and of each implementation, called in turn; how far the norms of the kernels differ.

    ``traced`` adds our network as a plain function, whose layers have to be found.
    """
    net, params, x = network(kind, depth, width)
    kept: dict[str, Any] = {}
    answers: dict[str, dict[str, Any]] = {}

    def keeping(name: str, work: Callable[[], jax.Array]) -> Competitor:
        def call() -> jax.Array:
            kept[name] = work()
            return kept[name]

        return own(call)

    competitors = {"ours": keeping("ours", lambda: empirical_ntk(net, params, x))}
    if traced:
        competitors["traced"] = keeping("traced", lambda: empirical_ntk(net.apply, params, x))
    if OWN_JAX in asked:
        contraction = jax.jit(lambda params, x: generic_ntk(net.apply, params, x))
        competitors["jax jacobian_contraction"] = keeping("jax", lambda: contraction(params, x))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.npz"
        weights: dict[str, Any] = {
            f"w{k}": _as_filter(kind == "convnet" and k < depth, np.asarray(params[name]["weight"]))
            for k, name in enumerate(params)
        }
        np.savez(path, x=np.asarray(x), **weights)
        for name, peer in peers.items():
            request = {"what": "kernels", "kind": kind, "hidden_layers": depth, "file": str(path)}
            peer.ask({**request, "implementations": asked.get(name, [])})
            for implementation in asked.get(name, []):
                kept_answers = answers.setdefault(name, {})
                competitors[f"{name} {implementation}"] = peer.competitor(implementation, kept_answers)
    rows = alternate(competitors, repeats=2 if quick else 15, budget_s=4)
    norms = [float(np.linalg.norm(np.asarray(found, np.float64))) for found in kept.values()]
    norms += [answer["norm"] for of_peer in answers.values() for answer in of_peer.values()]
    others = [name for name in rows if name != "ours"]
    best = min(others, key=lambda name: rows[name]["median_s"], default=None)
    return {
        "kind": kind,
        "width": width,
        "hidden_layers": depth,
        "num_params": net.num_params(x.shape[1:]),
        "times": rows,
        "best_of_peers": best,
        "times_faster": best and ratio(rows, best, "ours"),
        "relative_difference_of_norms": max(abs(norm / norms[0] - 1) for norm in norms),
    }


def _as_filter(convolution: bool, weight: np.ndarray) -> np.ndarray:
    """A convolution's weight as (height, width, channels in, channels out), as the peers' convolutions take it."""
    return weight.reshape(3, 3, -1, weight.shape[-1]) if convolution and weight.ndim == 2 else weight


def memory_at(depth: int, width: int) -> dict[str, Any]:
    """For a process of its own: time of a first and a second kernel, and what the first added to the weights."""
    net, params, x = network("dense", depth, width)
    jax.block_until_ready(params)
    before = forget_peak()
    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        jax.block_until_ready(empirical_ntk(net, params, x))
        seconds.append(time.perf_counter() - began)
    num_params = net.num_params(x.shape[1:])
    row = {"width": width, "hidden_layers": depth, "num_params": num_params, "first_s": seconds[0]}
    needs = {"weights_bytes": 4 * num_params, "jacobian_would_need_bytes": 4 * NUM_SAMPLES * NUM_OUTPUTS * num_params}
    return {**row, "warm_s": seconds[1], **needs, "added_bytes": max(0, resident_bytes("VmHWM") - before)}


def measure(settings: Settings) -> dict[str, Any]:
    """Every case in turn, then memory at widths that no Jacobian reaches."""
    with ExitStack() as stack:
        interpreters = {name: settings.interpreter(name) for name in SCRIPTS}
        peers = {name: stack.enter_context(Peer(at, SCRIPTS[name])) for name, at in interpreters.items() if at}
        packages = {name: peer.packages() for name, peer in peers.items()}
        quick_cases = QUICK_CASES if peers else QUICK_CASES[:1]
        rows = [compare(peers, *case, settings.quick) for case in (quick_cases if settings.quick else CASES)]
    if settings.quick:
        memory = [memory_at(1, 20)]
    else:
        memory = [peak_of("benchmarks.kernel", str(depth), str(width)) for depth, width in MEMORY_CASES]
    data = {"num_samples": NUM_SAMPLES, "num_outputs": NUM_OUTPUTS, "peers": packages}
    return {**data, "cases": rows, "memory": memory}


if __name__ == "__main__":
    print(json.dumps(memory_at(*map(int, sys.argv[1:]))))
