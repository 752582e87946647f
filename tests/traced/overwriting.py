"""Programs that reverse an array filled by a scatter, against plain ones, with XLA's default flags.

``python -m tests.traced.overwriting`` prints the errors of kernels and Hessians. Under ``jax.jit`` XLA aborts the
process for the programs themselves (docs/decisions/0005).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ntk_core import empirical_ntk, hessian_norm, linearize, train

RNG = np.random.default_rng(0)
PARAMS = {"w": jnp.asarray(RNG.standard_normal((3, 5))), "v": jnp.asarray(RNG.standard_normal((5, 2)))}
X, Y = jnp.asarray(RNG.standard_normal((4, 3))), jnp.asarray(RNG.standard_normal((4, 2)))


def reversed_after(write: Any) -> Any:
    def apply(p: Any, x: Any) -> Any:
        return jnp.tanh(lax.rev(write(x @ p["w"]), (1,))) @ p["v"]

    return apply


def plain(p: Any, x: Any) -> Any:
    return jnp.tanh(lax.rev(x @ p["w"], (1,))) @ p["v"]


def within_a_scan(p: Any, x: Any) -> Any:
    def step(carry: Any, _: Any) -> Any:
        return lax.rev(jnp.zeros_like(carry).at[:].set(carry), (1,)), None

    return jnp.tanh(lax.scan(step, x @ p["w"], None, length=3)[0]) @ p["v"]


PROGRAMS = {
    "set": reversed_after(lambda a: jnp.zeros(a.shape).at[:, 0:5].set(a)),
    "add": reversed_after(lambda a: jnp.zeros(a.shape).at[...].add(a)),
    "max": reversed_after(lambda a: jnp.full(a.shape, -99.0).at[...].max(a)),
    "multiply": reversed_after(lambda a: jnp.ones(a.shape).at[...].multiply(a)),
    "inside jit": reversed_after(jax.jit(lambda a: jnp.zeros(a.shape).at[:].set(a))),
    "row by row": jax.vmap(reversed_after(lambda a: jnp.zeros((1, 5)).at[:].set(a)), (None, 0)),
    "scan": within_a_scan,
}


def errors(name: str) -> list[float]:
    apply = PROGRAMS[name]
    if name == "row by row":

        def apply(p: Any, x: Any) -> Any:
            return PROGRAMS[name](p, x[:, None])[:, 0]

    pairs = [
        (empirical_ntk(apply, PARAMS, X), empirical_ntk(plain, PARAMS, X)),
        (hessian_norm(apply, PARAMS, X[0]).value, hessian_norm(plain, PARAMS, X[0]).value),
    ]
    return [float(np.abs(np.asarray(one) - two).max() / np.abs(two).max()) for one, two in pairs]


def main() -> None:
    for name in PROGRAMS:
        print(name, max(errors(name)), sep="\t", flush=True)
    ends = [
        train(each, PARAMS, X, Y, learning_rate=0.1, max_steps=3, num_records=2, linearized=False, kernels=False)
        for each in (PROGRAMS["set"], plain)
    ]
    apart = jax.tree.map(lambda one, two: float(jnp.abs(one - two).max()), *(end.params for end in ends))
    print("training", max(jax.tree.leaves(apart)), sep="\t", flush=True)
    moved = jax.tree.map(lambda leaf: 1.1 * leaf, PARAMS)
    one, two = (jax.jit(linearize(each, PARAMS))(moved, X) for each in (PROGRAMS["set"], plain))
    print("linear model", float(jnp.abs(one - two).max()), sep="\t", flush=True)


if __name__ == "__main__":
    main()
