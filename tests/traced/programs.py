"""Tiny programs of usual architectures, with the kinds of their layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

RNG = np.random.default_rng(0)


@dataclass(frozen=True)
class Case:
    """A program with the kinds of its layers in the order of its parameters.

    Attributes:
        tolerance: of its numbers, relative to the largest; by its number types.
        oracle: reference program if the program's own derivatives differ from those of its function.
    """

    name: str
    apply: Callable[[Any, Any], Any]
    params: Any
    x: Any
    kinds: str  # one letter each: p(roduct) c(onvolution) l(ook-up) a(ddition) g(ain) j(acobian)
    tolerance: float = 1e-9
    oracle: Callable[[Any, Any], Any] | None = None


def draw(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape) / max(1, shape[0]) ** 0.5


def normalized(a: Any) -> Any:
    centered = a - a.mean(-1, keepdims=True)
    return centered / jnp.sqrt((centered**2).mean(-1, keepdims=True) + 1e-3)


def mlp(p, x):
    return jnp.tanh(x @ p["w"] + p["b"]) @ p["v"]


def squared(p, x):
    return jnp.tanh(x @ p["w"]) @ p["v"] + 0.1 * jnp.sum(p["v"] ** 2)


@jax.custom_jvp
def own_product(x, w):
    return x @ w


own_product.defjvp(
    lambda primals, tangents: (primals[0] @ primals[1], tangents[0] @ primals[1] + primals[0] @ tangents[1])
)


def own_derivative(p, x):
    return jnp.tanh(own_product(x, p["w"])) @ p["v"]


def layers_scanned(p, x):
    def block(a, layer):
        return a + jnp.tanh(a @ layer["w"] + layer["b"]), None

    return lax.scan(block, x @ p["u"], p["blocks"])[0] @ p["v"]


def attention(p, x):
    def split(a):
        return a.reshape(*a.shape[:2], 2, -1)

    q, k, v = (split(x @ p[name]) for name in ("q", "k", "v"))
    scores = jax.nn.softmax(jnp.einsum("nihd,njhd->nhij", q, k) / q.shape[-1], axis=-1)
    mixed = jnp.einsum("nhij,njhd->nihd", scores, v).reshape(x.shape[0], x.shape[1], -1)
    return jnp.einsum("nthd,hdo->nto", split(mixed), p["o"]).mean(1)


def transformer(p, x):
    a = p["table"][x] + p["places"]

    def block(a, w):
        b = p["gain"] * normalized(a)
        a = a + attention({**w, "o": w["o"].reshape(2, 2, 4)}, b)[:, None]
        return a + jax.nn.gelu(b @ w["up"]) @ w["down"], None

    return lax.scan(block, a, p["blocks"])[0].mean(1) @ p["table"].T[:, :3]


def tied(p, x):
    return (jnp.tanh(p["table"][x] @ p["w"]) @ p["table"].T).mean(1)


def with_numbers(p, x):
    return jnp.tanh(x @ p["w"] * p["factor"]) @ p["v"] + p["count"]


def batch_statistics(p, x):
    a = x @ p["w"]
    return jnp.tanh((a - a.mean(0)) / jnp.sqrt(a.var(0) + 1e-3)) @ p["v"]


def default_indexing(p, x):
    return jnp.tanh(p["table"][x] @ p["v"]).sum(1)


def default_indexing_outside_constant(p, x):
    """Default indexing, whose reverse mode ignores indices outside the table."""
    rows = p["table"][x]
    inside = ((x >= -7) & (x < 7))[..., None]
    return jnp.tanh(jnp.where(inside, rows, lax.stop_gradient(rows)) @ p["v"]).sum(1)


def large_table_in_bf16(p, x):
    a = jnp.take(p["table"].astype(jnp.bfloat16), 37 * x, axis=0, mode="fill", fill_value=0)
    return (a.astype(float) @ p["v"]).sum(1)


def kept_averages(p, x):
    a = (x @ p["w"] - lax.stop_gradient(p["mean"])) / jnp.sqrt(lax.stop_gradient(p["var"]) ** 2 + 1e-3)
    return jnp.tanh(p["g"] * a + p["b"]) @ p["v"]


def while_without_weights(p, x):
    scale = lax.while_loop(lambda s: s < 4, lambda s: 1.5 * s, jnp.ones(()) * 1.0)
    return jnp.tanh(scale * x @ p["w"]) @ p["v"]


def while_with_weights(p, x):
    return lax.while_loop(lambda a: jnp.sum(a**2) > 0.1, lambda a: 0.5 * jnp.tanh(a @ p["u"]), x @ p["w"]) @ p["v"]


@jax.custom_jvp
def soft(a):
    return jnp.log1p(jnp.exp(a))


soft.defjvp(lambda primals, tangents: (soft(primals[0]), jax.nn.sigmoid(primals[0]) * tangents[0]))


@jax.custom_vjp
def product_with_rule(a, w):
    return a @ w


product_with_rule.defvjp(lambda a, w: (a @ w, (a, w)), lambda kept, t: (t @ kept[1].T, kept[0].T @ t))


@jax.custom_vjp
def bent(a):
    return jnp.sin(a)


bent.defvjp(lambda a: (jnp.sin(a), a), lambda a, t: (t * jnp.cos(a),))


def with_rules(p, x):
    return bent(product_with_rule(soft(x @ p["w"]), p["u"])) @ p["v"]


def complex_product(p, x):
    a = lax.complex(x @ p["w"], jnp.sin(x @ p["w"])) @ lax.complex(p["u"], 2 * p["u"].T)
    return (a * a.conj()).real @ p["v"]


def computed_in(dtype):
    def apply(p, x):
        p = jax.tree.map(lambda leaf: leaf.astype(dtype), p)
        a = jnp.tanh(normalized(x.astype(dtype) @ p["w"]) @ p["u"])
        return (a @ p["v"]).astype(float)

    return apply


def tied_autoencoder(p, x):
    return jnp.tanh(x @ p["w"] + p["b"]) @ p["w"].T


def from_one_vector(p, x):
    w, v = p[:24].reshape(3, 8), p[24:].reshape(8, 2)
    return jnp.tanh(x @ w) @ v


def small_shapes(p, x):
    return p["one"] * jnp.tanh(x @ p["w"]) @ p["v"] + p["scalar"] + p["none"].sum()


def integers(p, x):
    return jnp.tanh((x % 5) @ p["w"]) @ p["v"] + x[:, :2]


X, TOKENS = draw(4, 3), RNG.integers(0, 7, (4, 5))
WV = {"w": draw(3, 8), "v": draw(8, 2)}
BLOCKS = {name: draw(2, 4, 4) for name in "qkvo"} | {"up": draw(2, 4, 6), "down": draw(2, 6, 4)}
WUV = {**WV, "u": draw(8, 8)}
OUTSIDE = np.array([[0, 3, 6], [5, 1, 1], [7, -1, 2], [9, 4, -8]])  # 7 words; later rows have ids outside the table
KEPT = {name: 1 + draw(8) for name in ("b", "g", "mean", "var")}
EXACT = {"oracle": computed_in(float)}

CASES = [
    Case("mlp", mlp, {**WV, "b": draw(8)}, X, "app"),
    Case("squared", squared, WV, X, "jp"),
    Case("own derivative", own_derivative, WV, X, "pj"),
    Case(
        "scan over layers",
        layers_scanned,
        {"u": draw(3, 4), "blocks": {"w": draw(3, 4, 4), "b": draw(3, 4)}, "v": draw(4, 2)},
        X,
        "appp",
    ),
    Case(
        "transformer",
        transformer,
        {"table": draw(7, 4), "places": draw(5, 4), "gain": draw(4), "blocks": BLOCKS},
        TOKENS,
        "ppppppgaj",
    ),
    Case("tied weights", tied, {"table": draw(7, 4), "w": draw(4, 4)}, TOKENS, "lp"),
    Case("numbers", with_numbers, {**WV, "factor": np.array(0.5), "count": np.array(3)}, X, "gpp"),
    Case(
        "padding by default",
        default_indexing,
        {"table": draw(7, 4), "v": draw(4, 2)},
        OUTSIDE,
        "lp",
        oracle=default_indexing_outside_constant,
    ),
    Case("large table in bf16", large_table_in_bf16, {"table": draw(300, 4), "v": draw(4, 2)}, OUTSIDE, "lp", 3e-2),
    Case("kept averages", kept_averages, {**WV, **KEPT}, X, "agjpjp"),
    Case("while without weights", while_without_weights, WV, X, "pp"),
    Case("derivatives by rules", with_rules, WUV, X, "jpp"),
    Case("complex product", complex_product, WUV, X, "jpp"),
    Case("in bf16", computed_in(jnp.bfloat16), WUV, X, "ppp", 0.1, **EXACT),
    Case("tied autoencoder", tied_autoencoder, {"w": draw(3, 8), "b": draw(8)}, X, "ap"),
    Case("one vector", from_one_vector, draw(40), X, "pp"),
    Case(
        "small shapes",
        small_shapes,
        {**WV, "one": draw(1), "scalar": np.array(0.3), "none": np.zeros((0, 3))},
        X,
        "gapp",
    ),
    Case("integers", integers, WV, RNG.integers(-9, 9, (4, 3)), "pp"),
]
