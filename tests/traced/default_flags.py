"""Programs with XLA's default flags against plain derivatives: convolutions, and reversed scatters of whole arrays.

``python -m tests.traced.default_flags NAME...`` prints one line for each program: its name and the relative error.
Under ``jax.jit`` XLA aborts the process for some of the programs themselves (docs/decisions/0005).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree

from ntk_core import empirical_ntk, hessian_norm, linearize, train
from ntk_core.kernels import generic_ntk

RNG = np.random.default_rng(0)
NHWC, NCHW = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")


def draw(*shape: int) -> Any:
    return RNG.standard_normal(shape) / max(1, np.prod(shape[:-1])) ** 0.5


def conv(x: Any, w: Any, stride: int = 1, layout: Any = NHWC) -> Any:
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=layout)


def strided(p: Any, x: Any) -> Any:
    return jax.nn.relu(conv(jax.nn.relu(conv(x, p["w1"], 2) + p["b1"]), p["w2"], 2)).mean((1, 2)) @ p["v"]


def transposed(p: Any, x: Any) -> Any:
    wide = lax.conv_transpose(jax.nn.relu(conv(x, p["w1"], 2)), p["w2"], (2, 2), "SAME", dimension_numbers=NHWC)
    return jax.nn.relu(wide).mean((1, 2)) @ p["v"]


def as_in_pytorch(p: Any, x: Any) -> Any:
    """A residual block with a stride, kept batch statistics and a shortcut by a 1 × 1 convolution."""

    def normalized(x: Any, name: str) -> Any:
        return x * p[name]["gain"][:, None, None] + p[name]["bias"][:, None, None]

    x = jax.nn.relu(normalized(conv(x, p["stem"], layout=NCHW), "n0"))
    inside = jax.nn.relu(normalized(conv(x, p["w1"], 2, NCHW), "n1"))
    x = jax.nn.relu(normalized(conv(inside, p["w2"], 1, NCHW), "n2") + conv(x, p["short"], 2, NCHW))
    return x.mean((2, 3)) @ p["v"].T


PLAIN = {"w1": draw(3, 3, 3, 8), "w2": draw(3, 3, 8, 8), "b1": np.zeros(8), "v": draw(8, 1)}
NORMS = {name: {"gain": 1 + 0.1 * draw(4), "bias": 0.1 * draw(4)} for name in ("n0", "n1", "n2")}
RESIDUAL = {"stem": draw(4, 3, 3, 3), "w1": draw(4, 4, 3, 3), "w2": draw(4, 4, 3, 3), "short": draw(4, 4, 1, 1)}
IMAGES = RNG.standard_normal((2, 8, 8, 3))
CONVOLUTIONS: dict[str, tuple[Callable[[Any, Any], Any], Any, Any]] = {
    "strides": (strided, PLAIN, IMAGES),
    "transposed": (transposed, PLAIN, IMAGES),
    "PyTorch": (as_in_pytorch, {**RESIDUAL, **NORMS, "v": draw(2, 4)}, IMAGES.transpose(0, 3, 1, 2)),
}

PARAMS = {"w": draw(3, 5), "v": draw(5, 2)}
X, Y = draw(4, 3), draw(4, 2)


def reversed_after(write: Any) -> Any:
    return lambda p, x: jnp.tanh(lax.rev(write(x @ p["w"]), (1,))) @ p["v"]


def within_a_scan(p: Any, x: Any) -> Any:
    def step(carry: Any, _: Any) -> Any:
        return lax.rev(jnp.zeros_like(carry).at[:].set(carry), (1,)), None

    return jnp.tanh(lax.scan(step, x @ p["w"], None, length=3)[0]) @ p["v"]


plain = reversed_after(lambda a: a)
SCATTERS = {
    "set": reversed_after(lambda a: jnp.zeros(a.shape).at[:, 0:5].set(a)),
    "add": reversed_after(lambda a: jnp.zeros(a.shape).at[...].add(a)),
    "max": reversed_after(lambda a: jnp.full(a.shape, -99.0).at[...].max(a)),
    "multiply": reversed_after(lambda a: jnp.ones(a.shape).at[...].multiply(a)),
    "inside jit": reversed_after(jax.jit(lambda a: jnp.zeros(a.shape).at[:].set(a))),
    "row by row": lambda p, x: jax.vmap(
        reversed_after(lambda a: jnp.zeros((1, 5)).at[:].set(a)), (None, 0)
    )(p, x[:, None])[:, 0],
    "scan": within_a_scan,
}  # fmt: skip


def far(found: Any, expected: Any) -> float:
    return float(np.abs(np.asarray(found) - expected).max() / np.abs(expected).max())


def relative_error(name: str) -> float:
    """Of kernel and Hessian norm, or for "models" of training and the linear model."""
    if name == "models":
        asked = {"learning_rate": 0.1, "max_steps": 3, "num_records": 2, "linearized": False, "kernels": False}
        moved = jax.tree.map(lambda leaf: 1.1 * leaf, PARAMS)
        ends = [ravel_pytree(train(each, PARAMS, X, Y, **asked).params)[0] for each in (SCATTERS["set"], plain)]
        lines = [jax.jit(linearize(each, PARAMS))(moved, X) for each in (SCATTERS["set"], plain)]
        return max(far(*ends), far(*lines))
    apply, params, x = CONVOLUTIONS.get(name) or (SCATTERS[name], PARAMS, X)
    oracle = plain if name in SCATTERS else apply
    params, x = jax.tree.map(jnp.asarray, (params, x))
    flat, unravel = ravel_pytree(params)
    dense = np.asarray(jax.jit(jax.hessian(lambda w: oracle(unravel(w), x[:1])[0, 0]))(flat))
    norm = far(hessian_norm(apply, params, x[0]).value, np.abs(np.linalg.eigvalsh(dense)).max())
    return max(norm, far(empirical_ntk(apply, params, x), jax.jit(lambda p: generic_ntk(oracle, p, x))(params)))


if __name__ == "__main__":
    for each in sys.argv[1:]:
        print(each, relative_error(each), sep="\t", flush=True)
