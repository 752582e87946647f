"""Hessian norms in the small space against three full-space ways, on the same weights and input.

curvlinops' operator under SciPy's ARPACK, hessian-eigenthings' Lanczos, and plain Hessian-vector products in JAX (jvp
of grad) under ARPACK. Every side gets a network with 3 hidden tanh layers, one input, and a relative tolerance of 1e-2
(ours: residual; ARPACK: ``eigsh(k=1, which="LM", tol=1e-2)``; hessian-eigenthings knows no stopping and gets the fewest
of some numbers of steps that converge, found before its clock starts). Peak memory above the weights comes with a call
of each, and from processes of their own at widths that the others cannot reach.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy.sparse.linalg import LinearOperator, eigsh

from benchmarks.measure import Settings, alternate, fitted, own, peak_of, ratio
from benchmarks.peers.process import Peer
from benchmarks.peers.side import forget_peak, resident_bytes
from ntk_core import FullyConnected, hessian_norm

INPUT_DIM, DEPTH, TOLERANCE = 10, 3, 1e-2
WIDTHS, MEMORY_WIDTHS = (100, 300, 1_000, 3_000), (3_000, 10_000, 22_361)  # up to 10⁹ parameters
QUICK_WIDTHS = (6,)
PLAIN = "jax hvp + arpack"
PUBLIC = ("curvlinops", "hessian-eigenthings")


def network(width: int, depth: int = DEPTH) -> tuple[FullyConnected, Any, jax.Array]:
    net = FullyConnected(width=width, depth=depth, activation="tanh", use_bias=False)
    params = jax.jit(net.init, static_argnums=1)(jax.random.key(0), (INPUT_DIM,))
    return net, jax.block_until_ready(params), jax.random.normal(jax.random.key(1), (INPUT_DIM,))


def plain_products(net: FullyConnected, params: Any, x: jax.Array) -> Callable[[], float]:
    """‖H‖ as one would write it in an afternoon: v ↦ jvp(grad f)(v), compiled, under ARPACK."""
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


def compare(peer: Peer | None, width: int, quick: bool) -> dict[str, Any]:
    """Times and norms of every side at one width."""
    net, params, x = network(width)
    plain = plain_products(net, params, x)
    found: dict[str, Any] = {}
    answers: dict[str, dict[str, Any]] = {}

    def ours() -> Any:
        found["ours"] = hessian_norm(net, params, x, tolerance=TOLERANCE)
        return found["ours"].value

    competitors = {"ours": own(ours), PLAIN: own(lambda: found.update(plain=plain()))}
    with tempfile.TemporaryDirectory() as folder:
        if peer is not None:
            path = Path(folder) / "weights.npz"
            arrays: dict[str, Any] = {f"w{k}": np.asarray(params[name]["weight"]) for k, name in enumerate(net.layers)}
            np.savez(path, x=np.asarray(x), **arrays)
            peer.ask({"what": "hessians", "file": str(path), "tolerance": TOLERANCE, "implementations": PUBLIC})
            competitors |= {name: peer.competitor(name, answers) for name in PUBLIC}
    rows = alternate(competitors, repeats=2 if quick else 15, budget_s=6, least=3 if width < 2_000 else 2)
    estimate = found["ours"]
    norms = {PLAIN: found["plain"], **{name: answer["norm"] for name, answer in answers.items()}}
    best = min(norms, key=lambda name: rows[name]["median_s"])
    return {
        "width": width,
        "hidden_layers": DEPTH,
        "num_params": net.num_params((INPUT_DIM,)),
        "times": rows,
        "compile_s": rows["ours"]["first_s"] - rows["ours"]["median_s"],
        "norm": float(estimate.value),
        "residual": float(estimate.residual),
        "num_matvecs": int(estimate.num_matvecs),
        "lanczos_steps_of_peer": answers.get("hessian-eigenthings", {}).get("lanczos_steps"),
        "best_of_peers": best,
        "times_faster": ratio(rows, best, "ours"),
        "relative_differences": {name: abs(norm / float(estimate.value) - 1) for name, norm in norms.items()},
    }


def memory_at(width: int) -> dict[str, Any]:
    """For a process of its own: what one norm adds to the memory of the weights, its warm time, and compilation."""
    net, params, x = network(width)
    before = forget_peak()
    began = time.perf_counter()
    hessian_norm(net, params, x, tolerance=TOLERANCE)
    first_s = time.perf_counter() - began
    compiling = resident_bytes("VmHWM") - before
    row = alternate({"ours": own(lambda: hessian_norm(net, params, x, tolerance=TOLERANCE).value)}, repeats=3)["ours"]
    num_params = net.num_params((INPUT_DIM,))
    sizes = {"width": width, "num_params": num_params, "weights_bytes": 4 * num_params}
    spent = {"median_s": row["median_s"], "compile_s": first_s - row["median_s"]}
    added = {"added_bytes": row["added_bytes"], "added_bytes_with_compiling": compiling}
    return {**sizes, **spent, **added}


def measure(settings: Settings) -> dict[str, Any]:
    """Every width in turn, then memory."""
    python = settings.interpreter("torch")
    with ExitStack() as stack:
        peer = stack.enter_context(Peer(python, "torch_side.py")) if python else None
        packages = {"torch": peer.packages()} if peer else {}
        rows = [compare(peer, width, settings.quick) for width in (QUICK_WIDTHS if settings.quick else WIDTHS)]
    if settings.quick:
        memory = [memory_at(QUICK_WIDTHS[0])]
    else:
        memory = [peak_of("benchmarks.hessian", str(width)) for width in MEMORY_WIDTHS]
    sizes = [row["num_params"] for row in rows]
    exponents = {name: fitted(sizes, [row["times"][name]["median_s"] for row in rows]) for name in rows[0]["times"]}
    data = {"tolerance": TOLERANCE, "peers": packages, "cases": rows, "memory": memory}
    return {**data, "growth_exponents_in_num_params": exponents}


if __name__ == "__main__":
    print(json.dumps(memory_at(int(sys.argv[1]))))
