"""Hessian norms in the small space against three full-space ways, on the same weights and input.

curvlinops' operator under SciPy's ARPACK, hessian-eigenthings' Lanczos, and plain Hessian-vector products in JAX (jvp
of grad) under ARPACK. Every side gets a network with 3 hidden tanh layers, one input, and a relative tolerance of 1e-2
(ours: residual; ARPACK: ``eigsh(k=1, which="LM", tol=1e-2)``; hessian-eigenthings knows no stopping and gets the fewest
of some numbers of steps that converge, found before its clock starts). Peak memory above the weights comes with a call
of each, and from processes of their own at widths that the others cannot reach.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import PyTree
from scipy.sparse.linalg import LinearOperator, eigsh

from benchmarks.measure import Meter, Row, Settings, alone, alternate, fitted, own
from benchmarks.peers.process import Peer, peers
from ntk_core import FullyConnected, hessian_norm
from ntk_core.hessians import SpectralEstimate
from ntk_core.hessians._norm import MAX_MATVECS, _leading, checked_request
from ntk_core.traced import accepted_input

INPUT_DIM, DEPTH, TOLERANCE = 10, 3, 1e-2
WIDTHS, MEMORY_WIDTHS = (100, 300, 1_000, 3_000), (3_000, 10_000, 22_361)  # up to 10⁹ parameters
NARROW_WIDTHS, QUICK_WIDTHS = (300, 1_000), (6,)
PLAIN = "jax hvp + arpack"
PUBLIC = ("curvlinops", "hessian-eigenthings")


def network(width: int, depth: int = DEPTH) -> tuple[FullyConnected, PyTree, jax.Array]:
    net = FullyConnected(width=width, depth=depth, activation="tanh", use_bias=False)
    params = jax.jit(net.init, static_argnums=1)(jax.random.key(0), (INPUT_DIM,))
    return net, jax.block_until_ready(params), jax.random.normal(jax.random.key(1), (INPUT_DIM,))


def plain_products(net: FullyConnected, params: PyTree, x: jax.Array) -> Callable[[], float]:
    """Return ‖H‖ as one would write it in an afternoon: v ↦ jvp(grad f)(v), compiled, under ARPACK."""
    flat, unravel = ravel_pytree(params)

    @jax.jit
    def product(weights: jax.Array, v: jax.Array) -> jax.Array:
        return jax.jvp(jax.grad(lambda w: net.apply(unravel(w), x[None])[0, 0]), (weights,), (v,))[1]

    operator = LinearOperator(
        (flat.size, flat.size), lambda v: np.asarray(product(flat, jnp.asarray(v.ravel()))), dtype=np.float32
    )
    seeds = itertools.count()

    def norm() -> float:
        start = np.random.default_rng(next(seeds)).normal(size=flat.size).astype(np.float32)
        values = eigsh(operator, k=1, which="LM", tol=TOLERANCE, return_eigenvectors=False, v0=start)
        return abs(float(values[0]))

    return norm


def compare(peer: Peer | None, width: int, quick: bool) -> Row:
    """Time every side at one width, and compare norms."""
    net, params, x = network(width)

    def ours() -> tuple[jax.Array, SpectralEstimate]:
        found = hessian_norm(net, params, x, tolerance=TOLERANCE)
        return found.value, found

    competitors = {"ours": own(ours), PLAIN: own(plain_products(net, params, x))}
    if peer is not None:
        arrays = {f"w{k}": np.asarray(params[name]["weight"]) for k, name in enumerate(net.layers)}
        request = {"what": "hessians", "tolerance": TOLERANCE, "implementations": PUBLIC}
        peer.ask(request, {"x": np.asarray(x), **arrays})
        competitors |= peer.competitors(PUBLIC)
    turns = alternate(competitors, repeats=2 if quick else 15, budget_s=6, least=3 if width < 2_000 else 2)
    (_, estimate), row = turns.found["ours"], turns.times["ours"]
    value = float(estimate.value)
    norms = {PLAIN: turns.found[PLAIN], **{name: turns.found[name]["norm"] for name in PUBLIC if peer}}
    return {
        "width": width,
        "hidden_layers": DEPTH,
        "num_params": net.num_params((INPUT_DIM,)),
        **turns.row(),
        "compile_s": row["first_s"] - row["median_s"],
        "norm": value,
        "residual": float(estimate.residual),
        "num_matvecs": int(estimate.num_matvecs),
        "lanczos_steps_of_peer": turns.found.get("hessian-eigenthings", {}).get("lanczos_steps"),
        "relative_differences": {name: abs(norm / value - 1) for name, norm in norms.items()},
    }


def memory_at(width: int) -> Row:
    """Measure what one norm adds to the memory of the weights, its warm time, and compilation."""
    net, params, x = network(width)
    meter = Meter()
    hessian_norm(net, params, x, tolerance=TOLERANCE)
    first = meter.read()
    warm = own(lambda: hessian_norm(net, params, x, tolerance=TOLERANCE).value)
    row = alternate({"ours": warm}, repeats=3).times["ours"]
    num_params = net.num_params((INPUT_DIM,))
    return {
        "width": width,
        "num_params": num_params,
        "weights_bytes": 4 * num_params,
        "median_s": row["median_s"],
        "compile_s": first.wall_s - row["median_s"],
        "added_bytes": row["added_bytes"],
        "added_bytes_with_compiling": first.added_bytes,
    }


def measure(settings: Settings) -> Row:
    """Every width, then memory."""
    with peers(settings, "torch") as at_hand:
        packages = {name: peer.packages() for name, peer in at_hand.items()}
        widths = QUICK_WIDTHS if settings.quick else WIDTHS
        rows = [compare(at_hand.get("torch"), width, settings.quick) for width in widths]
    memory = [memory_at(6)] if settings.quick else [alone(memory_at, width) for width in MEMORY_WIDTHS]
    sizes = [row["num_params"] for row in rows]
    exponents = {name: fitted(sizes, [row["times"][name]["median_s"] for row in rows]) for name in rows[0]["times"]}
    data = {"tolerance": TOLERANCE, "peers": packages, "cases": rows, "memory": memory}
    return {**data, "growth_exponents_in_num_params": exponents}


def narrow_norms(settings: Settings) -> Row:
    """Warm norms of narrow networks, round-robin in one process: product by product, in stretches, in one whole loop.

    Product by product is what a first call does. The loop holds its own stopping, and compiles longest.
    """
    rows = []
    for width in QUICK_WIDTHS if settings.quick else NARROW_WIDTHS:
        net, params, x = network(width)

        def whole_loop(net: FullyConnected = net, params: PyTree = params, x: jax.Array = x) -> tuple[float, int]:
            model, _, _ = accepted_input(net, params, x)
            tolerance, key = checked_request(model, params, x, 1, 0, None, MAX_MATVECS, None)
            with jax.default_matmul_precision("highest"):
                found = _leading(model, params, x, 0, 1, tolerance, MAX_MATVECS, key)
            return abs(float(found.values[0])), int(found.num_steps)

        def norm(
            repeated: bool, net: FullyConnected = net, params: PyTree = params, x: jax.Array = x
        ) -> tuple[float, int]:
            found = hessian_norm(net, params, x, repeated=repeated)
            return float(found.value), int(found.num_matvecs)

        ways: dict[str, Callable[[], tuple[float, int]]] = {
            "product by product": partial(norm, False), "stretches": partial(norm, True), "one loop": whole_loop
        }  # fmt: skip
        least, first, found = dict.fromkeys(ways, np.inf), dict[str, float](), dict[str, tuple[float, int]]()
        for name, way in ways.items():
            meter = Meter()
            found[name] = way()
            first[name] = meter.read().processor_s
        for _ in range(2 if settings.quick else 200):
            for name, way in ways.items():
                start = time.perf_counter()
                way()
                least[name] = min(least[name], time.perf_counter() - start)
        counts = {name: count for name, (_, count) in found.items()}
        apart = {name: abs(value / found["one loop"][0] - 1) for name, (value, _) in found.items()}
        rows.append(
            {"width": width, "first_processor_s": first, "least_s": least, "products": counts, "differences": apart}
        )
    return {"rows": rows}
