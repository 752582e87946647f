"""Empirical kernels against peers on the same weights: three ways of neural-tangents, two of torch.func.

All processes stay warm and take turns, so that a drift of the machine's speed hits each of them. A Jacobian contraction
in this project's own JAX is one more competitor: it needs no other environment. Two more parts: a transformer, and
models of other libraries (Flax, PyTorch) whose layers have to be found.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from benchmarks.measure import Meter, Row, Settings, alone, alternate, own
from benchmarks.peers.process import Peer, peers
from ntk_core import ConvNet, FullyConnected, Transformer, empirical_ntk
from ntk_core.kernels import generic_ntk
from ntk_core.networks.architectures import Network
from ntk_core.traced import Apply

NUM_SAMPLES, NUM_OUTPUTS, INPUT_DIM = 60, 3, 10
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


def network(kind: str, depth: int, width: int) -> tuple[Network, PyTree, jax.Array]:
    """Return network, weights and inputs of one case."""
    shape: tuple[int, ...] = (INPUT_DIM,) if kind == "dense" else (8, 8, 3)
    net: Network = (FullyConnected if kind == "dense" else ConvNet)(
        width=width, depth=depth, num_outputs=NUM_OUTPUTS, activation="relu"
    )
    params = jax.jit(net.init, static_argnums=1)(jax.random.key(0), shape)
    return net, params, jax.random.normal(jax.random.key(1), (NUM_SAMPLES, *shape))


def contraction(apply: Apply, params: PyTree, x: jax.Array) -> Callable[[], jax.Array]:
    """Return the plain route: a compiled contraction of Jacobians."""
    kernel = jax.jit(lambda params, x: generic_ntk(apply, params, x))
    return lambda: kernel(params, x)


def norm_of(found: jax.Array | np.ndarray | Row) -> float:
    """Return the norm of a kernel, or what a peer reports of it."""
    return float(found["norm"]) if isinstance(found, dict) else float(np.linalg.norm(np.asarray(found, np.float64)))


def relative_difference(one: jax.Array, other: jax.Array) -> float:
    """Return ‖one − other‖ / ‖other‖ in float64."""
    return norm_of(np.asarray(one, np.float64) - np.asarray(other, np.float64)) / norm_of(other)


def compare(
    at_hand: dict[str, Peer],
    kind: str,
    depth: int,
    width: int,
    asked: dict[str, list[str]],
    quick: bool,
    traced: bool = False,
) -> Row:
    """Time ours and each implementation, round-robin; compare the norms of the kernels.

    ``traced`` adds our network as a plain function, whose layers have to be found.
    """
    net, params, x = network(kind, depth, width)
    competitors = {"ours": own(lambda: empirical_ntk(net, params, x))}
    if traced:
        competitors["traced"] = own(lambda: empirical_ntk(net.apply, params, x))
    if OWN_JAX in asked:
        competitors["jax jacobian_contraction"] = own(contraction(net.apply, params, x))
    arrays = {
        f"w{k}": _as_filter(kind == "convnet" and k < depth, np.asarray(params[name]["weight"]))
        for k, name in enumerate(params)
    }
    for name, peer in at_hand.items():
        ways = asked.get(name, [])
        request = {"what": "kernels", "kind": kind, "hidden_layers": depth, "implementations": ways}
        peer.ask(request, {"x": np.asarray(x), **arrays})
        competitors |= peer.competitors(ways, f"{name} {{}}")
    turns = alternate(competitors, repeats=2 if quick else 15, budget_s=4)
    norms = list(map(norm_of, turns.found.values()))
    return {
        "kind": kind,
        "width": width,
        "hidden_layers": depth,
        "num_params": net.num_params(x.shape[1:]),
        **turns.row(),
        "relative_difference_of_norms": max(abs(norm / norms[0] - 1) for norm in norms),
    }


def _as_filter(convolution: bool, weight: np.ndarray) -> np.ndarray:
    """Return a convolution's weight as (height, width, channels in, channels out), as the peers take it."""
    return weight.reshape(3, 3, -1, weight.shape[-1]) if convolution and weight.ndim == 2 else weight


def memory_at(depth: int, width: int) -> Row:
    """Measure a first and a second kernel in a process of its own, and what they added to the weights."""
    net, params, x = network("dense", depth, width)
    jax.block_until_ready(params)
    meter, seconds = Meter(), []
    for _ in range(2):
        meter.restart()
        jax.block_until_ready(empirical_ntk(net, params, x))
        seconds.append(meter.read().wall_s)
    num_params = net.num_params(x.shape[1:])
    return {
        "width": width,
        "hidden_layers": depth,
        "num_params": num_params,
        "first_s": seconds[0],
        "warm_s": seconds[1],
        "weights_bytes": 4 * num_params,
        "jacobian_would_need_bytes": 4 * NUM_SAMPLES * NUM_OUTPUTS * num_params,
        "added_bytes": meter.read().added_bytes,
    }


def measure(settings: Settings) -> Row:
    """Every case, then memory at widths that no Jacobian reaches."""
    with peers(settings, NT, TORCH) as at_hand:
        packages = {name: peer.packages() for name, peer in at_hand.items()}
        cases = (QUICK_CASES if at_hand else QUICK_CASES[:1]) if settings.quick else CASES
        rows = [compare(at_hand, *case, settings.quick) for case in cases]
    memory = [memory_at(1, 20)] if settings.quick else [alone(memory_at, *case) for case in MEMORY_CASES]
    data = {"num_samples": NUM_SAMPLES, "num_outputs": NUM_OUTPUTS, "peers": packages}
    return {**data, "cases": rows, "memory": memory}


BLOCKS, HEADS, HEAD_DIM, LENGTH, FEATURES = 4, 8, 64, 16, 64
TRANSFORMER_AIM, TRANSFORMER_OUTPUTS = 5.0, 2


def transformer(settings: Settings) -> Row:
    """The kernel of a transformer, structured, against a contraction of its Jacobians, with the memory of each."""
    blocks, head_dim, num_samples = (1, 2, 4) if settings.quick else (BLOCKS, HEAD_DIM, NUM_SAMPLES)
    net = Transformer(HEADS, head_dim, TRANSFORMER_OUTPUTS, num_blocks=blocks)
    params = jax.jit(net.init, static_argnums=1)(jax.random.key(0), (LENGTH, FEATURES))
    x = jax.random.normal(jax.random.key(1), (num_samples, LENGTH, FEATURES))
    plain = "jacobian_contraction"
    competitors = {
        "ours": own(lambda: empirical_ntk(net, params, x)),
        plain: own(contraction(net.apply, params, x)),
    }
    turns = alternate(competitors, repeats=1 if settings.quick else 5)
    num_params = net.num_params((LENGTH, FEATURES))
    return {
        "blocks": blocks,
        "heads": HEADS,
        "features": HEADS * head_dim,
        "length": LENGTH,
        "num_samples": num_samples,
        "num_outputs": TRANSFORMER_OUTPUTS,
        "num_params": num_params,
        "aim": TRANSFORMER_AIM,
        "times": turns.times,
        "times_faster": turns.ratio(plain),
        "relative_difference": relative_difference(turns.found["ours"], turns.found[plain]),
        "jacobian_needs_bytes": 4 * num_samples * TRANSFORMER_OUTPUTS * num_params,
    }


FLAX_DEPTH, FLAX_WIDTH, NUM_BY_JACOBIANS = 3, 3_000, 10
SAME_PROGRAMS = (("dense", 3, 1_000), ("dense", 3, 3_000), ("convnet", 2, 64))
RESIDUAL = {"channels": 64, "blocks": 2, "size": 32, "num_outputs": 3, "num_samples": 20}
QUICK_RESIDUAL = {"channels": 4, "blocks": 1, "size": 8, "num_outputs": 2, "num_samples": 2}


def flax_model(quick: bool) -> Row:
    """Time the kernel of a Flax perceptron, that of our own network of its shape, and Jacobians on fewer inputs."""
    import flax.linen as nn

    width = 20 if quick else FLAX_WIDTH
    net, own_params, x = network("dense", FLAX_DEPTH, width)
    hidden = [layer for _ in range(FLAX_DEPTH) for layer in (nn.Dense(width, use_bias=False), nn.relu)]
    model = nn.Sequential([*hidden, nn.Dense(NUM_OUTPUTS, use_bias=False)])
    params = jax.jit(model.init)(jax.random.key(0), x)
    few = x[:NUM_BY_JACOBIANS]

    def apply(params: PyTree, x: jax.Array) -> jax.Array:
        return jnp.asarray(model.apply(params, x))

    def traced(rows: jax.Array) -> Callable[[], jax.Array]:
        return lambda: empirical_ntk(apply, params, rows)

    repeats = 2 if quick else 9
    ours = {"traced": own(traced(x)), "own": own(lambda: empirical_ntk(net, own_params, x))}
    turns = alternate(ours, repeats=repeats)
    plain = {"traced": own(traced(few)), "jacobians": own(contraction(apply, params, few))}
    on_few = alternate(plain, repeats=repeats, budget_s=30)
    return {
        "width": width,
        "hidden_layers": FLAX_DEPTH,
        "num_params": sum(leaf.size for leaf in jax.tree.leaves(params)),
        "num_samples": NUM_SAMPLES,
        "num_outputs": NUM_OUTPUTS,
        "times": turns.times,
        "slower_than_own": turns.ratio("traced", "own"),
        "num_samples_by_jacobians": NUM_BY_JACOBIANS,
        "times_by_jacobians": on_few.times,
        "faster_than_jacobians": on_few.ratio("jacobians", "traced"),
        "relative_difference": relative_difference(on_few.found["traced"], on_few.found["jacobians"]),
    }


def residual_network(settings: Settings) -> Row:
    """Time a residual network of PyTorch, traced through torchax and by vmap(jacrev), each in a process of its own."""
    sizes = QUICK_RESIDUAL if settings.quick else RESIDUAL
    found: Row = {"sizes": sizes}
    for way in ("traced", "jacobian_contraction"):
        with peers(settings, "torchax") as at_hand:
            peer = at_hand["torchax"]
            found["packages"] = peer.packages()
            peer.ask({**sizes, "way": way})
            turns = alternate({way: peer.competitor(way)}, repeats=1 if settings.quick else 3)
            found[way] = {**turns.found[way], **turns.times[way]}
    plain, traced = found["jacobian_contraction"], found["traced"]
    found["times_faster"] = plain["median_s"] / traced["median_s"]
    found["relative_difference_of_norms"] = abs(plain["norm"] / traced["norm"] - 1)
    return found


def models_of_others(settings: Settings) -> Row:
    """Flax; our networks as plain functions against neural-tangents; PyTorch: as far as environments exist."""
    found: Row = {"flax": flax_model(settings.quick)}
    with peers(settings, NT) as at_hand:
        if at_hand:
            cases = [each[:3] for each in QUICK_CASES] if settings.quick else SAME_PROGRAMS
            asked = {NT: ["structured"]}
            found["peers"] = {NT: at_hand[NT].packages()}
            found["same_programs"] = [compare(at_hand, *case, asked, settings.quick, traced=True) for case in cases]
    if "torchax" in settings.interpreters:
        found["residual"] = residual_network(settings)
    return found
