"""Hessian norms in the small space against three full-space routes.

curvlinops' operator under SciPy's ARPACK, hessian-eigenthings' Lanczos, and plain Hessian-vector
products in JAX (jvp of grad) under ARPACK, with 3 hidden tanh layers, one input, and a relative
tolerance of 1e-2. hessian-eigenthings cannot stop by tolerance: it gets the fewest of some numbers
of steps that converge, found before its clock starts.
"""

import itertools
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import PyTree
from scipy.sparse.linalg import LinearOperator, eigsh

from benchmarks.measure import Meter, Row, Settings, alternate, fitted, isolated, local
from benchmarks.peers.process import Peers, peers
from ntk_core import FullyConnected, hessian_norm
from ntk_core.hessians import SpectralEstimate
from ntk_core.hessians._norm import MAX_MATVECS, _leading, checked_request
from ntk_core.traced import accepted_input

INPUT_DIM = 10
DEPTH = 3
TOLERANCE = 1e-2
# Up to 10⁹ parameters.
WIDTHS = (100, 300, 1_000, 3_000)
MEMORY_WIDTHS = (3_000, 10_000, 22_361)
NARROW_WIDTHS = (300, 1_000)
QUICK_WIDTHS = (6,)
PLAIN = "jax hvp + arpack"
PUBLIC = ("curvlinops", "hessian-eigenthings")
Problem = tuple[FullyConnected, PyTree, jax.Array]  # network, weights, one input
Route = Callable[[FullyConnected, PyTree, jax.Array], tuple[float, int]]  # norm, and its products


def problem(width: int) -> Problem:
    """Draw a network and an input."""
    net = FullyConnected(width=width, depth=DEPTH, activation="tanh", use_bias=False)
    params = jax.jit(net.init, static_argnums=1)(jax.random.key(0), (INPUT_DIM,))
    return net, jax.block_until_ready(params), jax.random.normal(jax.random.key(1), (INPUT_DIM,))


def plain_products(net: FullyConnected, params: PyTree, x: jax.Array) -> Callable[[], float]:
    """Return the plain route to ‖H‖: compiled jvp of grad under ARPACK."""
    flat, unravel = ravel_pytree(params)

    @jax.jit
    def product(weights: jax.Array, v: jax.Array) -> jax.Array:
        return jax.jvp(jax.grad(lambda w: net.apply(unravel(w), x[None])[0, 0]), (weights,), (v,))[
            1
        ]

    def multiply(v: np.ndarray) -> np.ndarray:
        return np.asarray(product(flat, jnp.asarray(v.ravel())))

    operator = LinearOperator((flat.size, flat.size), multiply, dtype=np.float32)
    seeds = itertools.count()

    def norm() -> float:
        start = np.random.default_rng(next(seeds)).normal(size=flat.size).astype(np.float32)
        values = eigsh(
            operator, k=1, which="LM", tol=TOLERANCE, return_eigenvectors=False, v0=start
        )
        return abs(float(values[0]))

    return norm


def compare(running: Peers, width: int, quick: bool) -> Row:
    """Time every side at one width, and compare norms."""
    net, params, x = problem(width)

    def ours() -> tuple[jax.Array, SpectralEstimate]:
        found = hessian_norm(net, params, x, tolerance=TOLERANCE)
        return found.value, found

    competitors = {"ours": local(ours), PLAIN: local(plain_products(net, params, x))}
    arrays = {f"w{k}": np.asarray(params[name]["weight"]) for k, name in enumerate(net.layers)}
    request = {"what": "hessians", "tolerance": TOLERANCE, "implementations": PUBLIC}
    competitors |= running.competitors("torch", request, {"x": np.asarray(x), **arrays})
    rounds = alternate(
        competitors, repeats=2 if quick else 15, budget_s=6, least=3 if width < 2_000 else 2
    )
    _, estimate = rounds.found["ours"]
    row = rounds.times["ours"]
    value = float(estimate.value)
    norms = {PLAIN: rounds.found[PLAIN]}
    norms |= {name: rounds.found[name]["norm"] for name in PUBLIC if name in rounds.found}
    shape = {"width": width, "hidden_layers": DEPTH, "num_params": net.num_params((INPUT_DIM,))}
    found: Row = {
        "norm": value,
        "residual": float(estimate.residual),
        "num_matvecs": int(estimate.num_matvecs),
    }
    found["compile_s"] = row["first_s"] - row["median_s"]
    found["lanczos_steps_of_peer"] = rounds.found.get("hessian-eigenthings", {}).get(
        "lanczos_steps"
    )
    differences = {name: abs(norm / value - 1) for name, norm in norms.items()}
    return {**shape, **rounds.row(), **found, "relative_differences": differences}


def memory_at(width: int) -> Row:
    """Measure compilation, warm time and added memory of a norm."""
    net, params, x = problem(width)
    norm = local(lambda: hessian_norm(net, params, x, tolerance=TOLERANCE).value)
    first_s = norm(False).seconds
    row = alternate({"ours": norm}, repeats=3).times["ours"]
    num_params = net.num_params((INPUT_DIM,))
    shape = {"width": width, "num_params": num_params, "weights_bytes": 4 * num_params}
    times = {"median_s": row["median_s"], "compile_s": first_s - row["median_s"]}
    return {**shape, **times, "added_bytes": row["added_bytes"]}


def measure(settings: Settings) -> Row:
    """Every width, then memory."""
    with peers(settings, "torch") as running:
        packages = running.packages()
        widths = QUICK_WIDTHS if settings.quick else WIDTHS
        rows = [compare(running, width, settings.quick) for width in widths]
    memory = (
        [memory_at(6)]
        if settings.quick
        else [isolated(memory_at, width) for width in MEMORY_WIDTHS]
    )
    sizes = [row["num_params"] for row in rows]
    exponents = {
        name: fitted(sizes, [row["times"][name]["median_s"] for row in rows])
        for name in rows[0]["times"]
    }
    data = {"tolerance": TOLERANCE, "peers": packages, "cases": rows, "memory": memory}
    return {**data, "growth_exponents_in_num_params": exponents}


def one_loop(net: FullyConnected, params: PyTree, x: jax.Array) -> tuple[float, int]:
    """Return norm and products of one compiled loop with its own stopping."""
    model, _, _ = accepted_input(net, params, x)
    tolerance, key = checked_request(model, params, x, 1, 0, None, MAX_MATVECS, None)
    with jax.default_matmul_precision("highest"):
        found = _leading(model, params, x, 0, 1, tolerance, MAX_MATVECS, key)
    return abs(float(found.values[0])), int(found.num_steps)


def norm_by(repeated: bool, net: FullyConnected, params: PyTree, x: jax.Array) -> tuple[float, int]:
    """Return norm and products of the library's own routes."""
    found = hessian_norm(net, params, x, repeated=repeated)
    return float(found.value), int(found.num_matvecs)


def narrow_norms(settings: Settings) -> Row:
    """Warm norms of narrow networks by three routes.

    A first call goes product by product. The loop compiles longest.
    """
    rows = []
    for width in QUICK_WIDTHS if settings.quick else NARROW_WIDTHS:
        given = problem(width)
        routes: dict[str, Route] = {
            "product by product": partial(norm_by, False),
            "stretches": partial(norm_by, True),
        }
        ways = {
            name: partial(route, *given) for name, route in {**routes, "one loop": one_loop}.items()
        }
        first = {}
        for name, way in ways.items():
            meter = Meter()
            way()
            first[name] = meter.read()["processor_s"]
        competitors = {name: local(way) for name, way in ways.items()}
        rounds = alternate(competitors, repeats=2 if settings.quick else 200)
        least = {name: times["min_s"] for name, times in rounds.times.items()}
        counts = {name: count for name, (_, count) in rounds.found.items()}
        apart = {
            name: abs(value / rounds.found["one loop"][0] - 1)
            for name, (value, _) in rounds.found.items()
        }
        row = {"width": width, "first_processor_s": first, "least_s": least, "products": counts}
        rows.append({**row, "differences": apart})
    return {"rows": rows}
