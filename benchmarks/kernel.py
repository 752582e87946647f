"""Empirical kernels against neural-tangents and torch.func on the same weights.

All processes stay warm and alternate, so that a drift of the machine's speed affects each of them.
A Jacobian contraction in this project's own JAX needs no other environment. Two more parts: a
transformer, and a model of Flax, whose layers are traced.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from benchmarks.measure import (
    Comparison,
    Competitor,
    Meter,
    Row,
    Settings,
    alternate,
    isolated,
    local,
)
from benchmarks.peers.process import Peers, peers
from ntk_core import ConvNet, FullyConnected, Transformer, empirical_ntk
from ntk_core.kernels import generic_ntk
from ntk_core.networks.architectures import Network
from ntk_core.traced import Apply, Model

NUM_SAMPLES = 60
NUM_OUTPUTS = 3
INPUT_DIM = 10
NT = "neural-tangents"
TORCH = "torch"
OWN_JAX = "jax"
PLAIN = "jacobian_contraction"
Asked = dict[str, list[str]]  # peer → its implementations
STRUCTURED: Asked = {NT: ["structured"]}
EVERY: Asked = {NT: ["structured", "ntvp", PLAIN], TORCH: [PLAIN], OWN_JAX: []}
PRODUCTS_TOO: Asked = {**EVERY, TORCH: [PLAIN, "vector_products"]}


class Case(NamedTuple):
    """A network, and the implementations that fit into memory and minutes."""

    kind: str
    hidden_layers: int
    width: int
    asked: Asked

    def network(self) -> tuple[Network, PyTree, jax.Array]:
        """Return network, weights and inputs."""
        build, shape = (
            (FullyConnected, (INPUT_DIM,)) if self.kind == "dense" else (ConvNet, (8, 8, 3))
        )
        net: Network = build(
            width=self.width,
            depth=self.hidden_layers,
            num_outputs=NUM_OUTPUTS,
            activation="relu",
            use_bias=False,  # as the peers' networks
        )
        params = jax.jit(net.init, static_argnums=1)(jax.random.key(0), shape)
        return net, params, jax.random.normal(jax.random.key(1), (NUM_SAMPLES, *shape))


CASES = (
    Case("dense", 1, 1_000, PRODUCTS_TOO),
    Case("dense", 1, 10_000, EVERY),
    Case("dense", 1, 100_000, {**STRUCTURED, TORCH: [PLAIN]}),
    Case("dense", 3, 300, PRODUCTS_TOO),
    Case("dense", 3, 1_000, {NT: ["structured", "ntvp"], TORCH: [PLAIN]}),
    Case("dense", 3, 3_000, STRUCTURED),
    Case("convnet", 2, 64, EVERY),
    Case("convnet", 2, 256, STRUCTURED),
)
QUICK_CASES = (Case("dense", 1, 20, PRODUCTS_TOO), Case("convnet", 2, 3, PRODUCTS_TOO))
TRACED_CASES = tuple(
    Case(*each, STRUCTURED)
    for each in (("dense", 3, 1_000), ("dense", 3, 3_000), ("convnet", 2, 64))
)
SAME_KERNELS = 1e-3  # relative difference of norms; larger ones belong to different networks
OUTPUT_COUNTS = (10, 100, 300, 1_000)
WHOLE_COUNTS = (10, 100)
OUTPUTS_DEPTH = 3
OUTPUTS_WIDTH = 300
MEMORY_CASES = ((1, 10_000), (1, 100_000), (1, 1_000_000), (3, 10_000), (3, 30_000))


def contraction(apply: Apply, params: PyTree, x: jax.Array) -> Callable[[], jax.Array]:
    """Return the plain route: a compiled contraction of Jacobians."""
    kernel = jax.jit(lambda params, x: generic_ntk(apply, params, x))
    return lambda: kernel(params, x)


def norm_of(found: jax.Array | np.ndarray | Row) -> float:
    """Return the norm of a kernel, or a peer's report of it."""
    return (
        float(found["norm"])
        if isinstance(found, dict)
        else float(np.linalg.norm(np.asarray(found, np.float64)))
    )


def relative_difference(one: jax.Array, other: jax.Array) -> float:
    """Return ‖one − other‖ / ‖other‖ in float64."""
    return norm_of(np.asarray(one, np.float64) - np.asarray(other, np.float64)) / norm_of(other)


def largest_difference(rounds: Comparison) -> float:
    """Return the largest relative difference between the norms of all competitors' kernels.

    Raises:
        RuntimeError: if they are not the kernel of one network.
    """
    first, *others = map(norm_of, rounds.found.values())
    difference = max((abs(norm / first - 1) for norm in others), default=0.0)
    if not difference <= SAME_KERNELS:
        raise RuntimeError(f"competitors' kernels differ by {difference:.0e}")
    return difference


def compare(running: Peers, case: Case, quick: bool, traced: bool = False) -> Row:
    """Time ours and each implementation; compare the norms of the kernels.

    ``traced`` adds our network as a plain function, whose layers are traced.
    """
    net, params, x = case.network()
    competitors = {"ours": local(lambda: empirical_ntk(net, params, x))}
    if traced:
        competitors["traced"] = local(lambda: empirical_ntk(net.apply, params, x))
    if OWN_JAX in case.asked:
        competitors[f"jax {PLAIN}"] = local(contraction(net.apply, params, x))
    arrays = {
        f"w{k}": _as_filter(np.asarray(layer["weight"]), case, k)
        for k, layer in enumerate(params.values())
    }
    for name in running:
        request = {"what": "kernels", "implementations": case.asked.get(name, []), **case._asdict()}
        competitors |= running.competitors(
            name, request, {"x": np.asarray(x), **arrays}, f"{name} {{}}"
        )
    rounds = alternate(competitors, repeats=2 if quick else 15, budget_s=4)
    difference = largest_difference(rounds)
    shape = {"kind": case.kind, "width": case.width, "hidden_layers": case.hidden_layers}
    found = {"num_params": net.num_params(x.shape[1:]), "relative_difference_of_norms": difference}
    return {**shape, **found, **rounds.row()}


def _as_filter(weight: np.ndarray, case: Case, index: int) -> np.ndarray:
    """Return convolution weights as (height, width, channels in, channels out)."""
    is_filter = case.kind == "convnet" and index < case.hidden_layers and weight.ndim == 2
    return weight.reshape(3, 3, -1, weight.shape[-1]) if is_filter else weight


def memory_at(depth: int, width: int) -> Row:
    """Measure a first and a second kernel, and their memory."""
    net, params, x = Case("dense", depth, width, {}).network()
    jax.block_until_ready(params)
    meter = Meter()
    seconds = []
    for _ in range(2):
        meter.restart()
        jax.block_until_ready(empirical_ntk(net, params, x))
        seconds.append(meter.read()["wall_s"])
    num_params = net.num_params(x.shape[1:])
    jacobian = 4 * NUM_SAMPLES * NUM_OUTPUTS * num_params
    shape = {"width": width, "hidden_layers": depth, "num_params": num_params}
    needs = {"weights_bytes": 4 * num_params, "jacobian_would_need_bytes": jacobian}
    times = dict(zip(("first_s", "warm_s"), seconds, strict=True))
    return {**shape, **needs, **times, "added_bytes": meter.read()["added_bytes"]}


def measure(settings: Settings) -> Row:
    """Every case, then memory at widths that no Jacobian reaches."""
    with peers(settings, NT, TORCH) as running:
        packages = running.packages()
        cases = QUICK_CASES[: 2 if running else 1] if settings.quick else CASES
        rows = [compare(running, case, settings.quick) for case in cases]
    memory = (
        [memory_at(1, 20)]
        if settings.quick
        else [isolated(memory_at, *case) for case in MEMORY_CASES]
    )
    data = {"num_samples": NUM_SAMPLES, "num_outputs": NUM_OUTPUTS, "peers": packages}
    return {**data, "cases": rows, "memory": memory}


def equal_outputs(settings: Settings) -> Row:
    """Time the mean over equal outputs of our network and of a compiled function of its form.

    Below it whole kernels, with all pairs of outputs.
    """
    counts = (2, 5) if settings.quick else OUTPUT_COUNTS
    of_whole = (2,) if settings.quick else WHOLE_COUNTS
    width = 20 if settings.quick else OUTPUTS_WIDTH
    rows = []
    whole = []
    with peers(settings, NT) as running:
        packages = running.packages()
        for count in counts:
            rows.append(_compare_outputs(running, count, width, settings.quick, traced=True))
        for count in of_whole:
            whole.append(_compare_outputs(running, count, width, settings.quick, traced=False))
    shape = {"hidden_layers": OUTPUTS_DEPTH, "width": width, "num_samples": NUM_SAMPLES}
    return {**shape, "peers": packages, "cases": rows, "whole": whole}


def _compare_outputs(running: Peers, count: int, width: int, quick: bool, *, traced: bool) -> Row:
    net = FullyConnected(
        width=width, depth=OUTPUTS_DEPTH, num_outputs=count, activation="relu", use_bias=False
    )
    params = jax.jit(net.init, static_argnums=1)(jax.random.key(0), (INPUT_DIM,))
    x = jax.random.normal(jax.random.key(1), (NUM_SAMPLES, INPUT_DIM))

    def kernel(model: Model, w: PyTree, x: jax.Array) -> jax.Array:
        if traced:
            return empirical_ntk(model, w, x, trace_outputs=True)
        return empirical_ntk(model, w, x)

    compiled = jax.jit(partial(kernel, net.apply))  # as the peer's function
    competitors = {
        "ours": local(lambda: kernel(net, params, x)),
        "function": local(lambda: compiled(params, x)),
    }
    arrays = {f"w{k}": np.asarray(layer["weight"]) for k, layer in enumerate(params.values())}
    request = {
        "what": "kernels",
        "kind": "dense",
        "implementations": ["structured"],
        "traced_outputs": traced,
    }
    arrays["x"] = np.asarray(x)
    competitors |= running.competitors(NT, request, arrays, "neural-tangents {}")
    rounds = alternate(competitors, repeats=2 if quick else 25, budget_s=6)
    apart = largest_difference(rounds)
    row: Row = {"num_outputs": count, "times": rounds.times, "relative_difference_of_norms": apart}
    if running:
        row["times_faster"] = rounds.ratio("neural-tangents structured")
        row["function_faster"] = rounds.ratio("neural-tangents structured", "function")
    return row


BLOCKS = 4
HEADS = 8
HEAD_DIM = 64
LENGTH = 16
FEATURES = 64
TRANSFORMER_AIM = 5.0
TRANSFORMER_OUTPUTS = 2


def transformer(settings: Settings) -> Row:
    """Kernel of a transformer, structured and by Jacobians, with memory."""
    blocks, head_dim, num_samples = (1, 2, 4) if settings.quick else (BLOCKS, HEAD_DIM, NUM_SAMPLES)
    net = Transformer(HEADS, head_dim, TRANSFORMER_OUTPUTS, num_blocks=blocks)
    params = jax.jit(net.init, static_argnums=1)(jax.random.key(0), (LENGTH, FEATURES))
    x = jax.random.normal(jax.random.key(1), (num_samples, LENGTH, FEATURES))
    competitors = {
        "ours": lambda: empirical_ntk(net, params, x),
        PLAIN: contraction(net.apply, params, x),
    }
    rounds = alternate(
        {name: local(work) for name, work in competitors.items()},
        repeats=1 if settings.quick else 5,
    )
    num_params = net.num_params((LENGTH, FEATURES))
    shape = {"blocks": blocks, "heads": HEADS, "features": HEADS * head_dim, "length": LENGTH}
    sizes = {
        "num_samples": num_samples,
        "num_outputs": TRANSFORMER_OUTPUTS,
        "num_params": num_params,
    }
    times = {"aim": TRANSFORMER_AIM, "times": rounds.times, "times_faster": rounds.ratio(PLAIN)}
    difference = relative_difference(rounds.found["ours"], rounds.found[PLAIN])
    jacobian = 4 * num_samples * TRANSFORMER_OUTPUTS * num_params
    return {
        **shape,
        **sizes,
        **times,
        "relative_difference": difference,
        "jacobian_needs_bytes": jacobian,
    }


FLAX_DEPTH = 3
FLAX_WIDTH = 3_000
NUM_BY_JACOBIANS = 10


def flax_model(quick: bool) -> Row:
    """Time the kernel of a Flax perceptron, of our own, and Jacobians."""
    import flax.linen as nn

    width = 20 if quick else FLAX_WIDTH
    net, own_params, x = Case("dense", FLAX_DEPTH, width, {}).network()
    hidden = [
        layer for _ in range(FLAX_DEPTH) for layer in (nn.Dense(width, use_bias=False), nn.relu)
    ]
    model = nn.Sequential([*hidden, nn.Dense(NUM_OUTPUTS, use_bias=False)])
    params = jax.jit(model.init)(jax.random.key(0), x)
    few = x[:NUM_BY_JACOBIANS]

    def apply(params: PyTree, x: jax.Array) -> jax.Array:
        return jnp.asarray(model.apply(params, x))

    repeats = 2 if quick else 9

    def kernel(rows: jax.Array) -> Competitor:
        return local(lambda: empirical_ntk(apply, params, rows))

    own = local(lambda: empirical_ntk(net, own_params, x))
    rounds = alternate({"traced": kernel(x), "own": own}, repeats=repeats)
    plain = {"traced": kernel(few), "jacobians": local(contraction(apply, params, few))}
    on_few = alternate(plain, repeats=repeats, budget_s=30)
    shape = {
        "width": width,
        "hidden_layers": FLAX_DEPTH,
        "num_samples": NUM_SAMPLES,
        "num_outputs": NUM_OUTPUTS,
    }
    num_params = sum(leaf.size for leaf in jax.tree.leaves(params))
    times = {"times": rounds.times, "slower_than_own": rounds.ratio("traced", "own")}
    by_jacobians = {
        "num_samples_by_jacobians": NUM_BY_JACOBIANS,
        "times_by_jacobians": on_few.times,
    }
    faster = {"faster_than_jacobians": on_few.ratio("jacobians", "traced")}
    difference = relative_difference(on_few.found["traced"], on_few.found["jacobians"])
    return {
        **shape,
        "num_params": num_params,
        **times,
        **by_jacobians,
        **faster,
        "relative_difference": difference,
    }


def models_of_others(settings: Settings) -> Row:
    """Flax, and our networks as functions against neural-tangents."""
    found: Row = {"flax": flax_model(settings.quick)}
    with peers(settings, NT) as running:
        if running:
            cases = (
                [each._replace(asked=STRUCTURED) for each in QUICK_CASES]
                if settings.quick
                else TRACED_CASES
            )
            found["peers"] = running.packages()
            found["same_programs"] = [
                compare(running, case, settings.quick, traced=True) for case in cases
            ]
    return found
