"""Hessian norms of convolutional programs against dense Hessians, in a process with XLA's default flags.

``python -m tests.traced.convolutions NAME...`` prints one line for each program: its name and the relative error.
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

from ntk_core.hessians import hessian_norm

RNG = np.random.default_rng(0)
NHWC, NCHW = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")


def draw(*shape: int) -> Any:
    return RNG.standard_normal(shape) / max(1, np.prod(shape[:-1])) ** 0.5


def conv(x: Any, w: Any, stride: int = 1, layout: Any = NHWC, **settings: Any) -> Any:
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=layout, **settings)


def read_out(p: Any, x: Any) -> Any:
    return x.mean((1, 2)) @ p["v"]


def two_layers(p: Any, x: Any) -> Any:
    return read_out(p, jax.nn.relu(conv(jax.nn.relu(conv(x, p["w1"])), p["w2"])))


def strided(p: Any, x: Any) -> Any:
    return read_out(p, jax.nn.relu(conv(jax.nn.relu(conv(x, p["w1"], 2) + p["b1"]), p["w2"], 2)))


def dilated(p: Any, x: Any) -> Any:
    return read_out(p, jax.nn.relu(conv(jax.nn.relu(conv(x, p["w1"], rhs_dilation=(2, 2))), p["w2"])))


def transposed(p: Any, x: Any) -> Any:
    wide = lax.conv_transpose(jax.nn.relu(conv(x, p["w1"], 2)), p["w2"], (2, 2), "SAME", dimension_numbers=NHWC)
    return read_out(p, jax.nn.relu(wide))


def depthwise(p: Any, x: Any) -> Any:
    apart = jax.nn.relu(conv(x, p["w1"], feature_group_count=x.shape[-1]))
    return read_out(p, jax.nn.relu(conv(apart, p["w2"])))


def as_in_pytorch(p: Any, x: Any) -> Any:
    """A residual block with a stride, kept batch statistics and a shortcut by a 1 × 1 convolution."""

    def normalized(x: Any, name: str) -> Any:
        return x * p[name]["gain"][:, None, None] + p[name]["bias"][:, None, None]

    x = jax.nn.relu(normalized(conv(x, p["stem"], layout=NCHW), "n0"))
    inside = jax.nn.relu(normalized(conv(x, p["w1"], 2, NCHW), "n1"))
    inside = normalized(conv(inside, p["w2"], 1, NCHW), "n2")
    x = jax.nn.relu(inside + conv(x, p["short"], 2, NCHW))
    return x.mean((2, 3)) @ p["v"].T


PLAIN = {"w1": draw(3, 3, 3, 8), "w2": draw(3, 3, 8, 8), "b1": np.zeros(8), "v": draw(8, 1)}
NORMS = {name: {"gain": 1 + 0.1 * draw(4), "bias": 0.1 * draw(4)} for name in ("n0", "n1", "n2")}
RESIDUAL = {"stem": draw(4, 3, 3, 3), "w1": draw(4, 4, 3, 3), "w2": draw(4, 4, 3, 3), "short": draw(4, 4, 1, 1)}
IMAGE = RNG.standard_normal((8, 8, 3))
PROGRAMS: dict[str, tuple[Callable[[Any, Any], Any], Any, Any]] = {
    "two layers": (two_layers, PLAIN, IMAGE),
    "strides": (strided, PLAIN, IMAGE),
    "dilation": (dilated, PLAIN, IMAGE),
    "transposed": (transposed, PLAIN, IMAGE),
    "depthwise": (depthwise, {"w1": draw(3, 3, 1, 6), "w2": draw(3, 3, 6, 8), "v": draw(8, 1)}, IMAGE),
    "PyTorch": (as_in_pytorch, {**RESIDUAL, **NORMS, "v": draw(2, 4)}, IMAGE.transpose(2, 0, 1)),
}


def relative_error(name: str) -> float:
    apply, params, x = PROGRAMS[name]
    params, x = jax.tree.map(jnp.asarray, (params, x))
    flat, unravel = ravel_pytree(params)
    dense = np.asarray(jax.jit(jax.hessian(lambda w: apply(unravel(w), x[None])[0, 0]))(flat))
    expected = np.abs(np.linalg.eigvalsh(dense)).max()
    return float(abs(hessian_norm(apply, params, x).value - expected) / expected)


if __name__ == "__main__":
    for each in sys.argv[1:]:
        print(each, relative_error(each), sep="\t", flush=True)
