"""Programs with rules, spectra, low precision, and algebra of their weights."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.traced.more_programs import WUV, WV, X
from tests.traced.programs import RNG, Case, draw, normalized

# Custom derivatives


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


def rule_alone(p, x):
    return bent(x * p["w"][0, :3]) @ p["v"][:3]


def remat_by_policy(p, x):
    block = jax.checkpoint(
        lambda w, a: jnp.tanh(a @ w), policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable
    )
    return block(p["u"], block(p["w"], x)) @ p["v"]


# Spectra and complex numbers


def spectral(p, x):
    a = jnp.fft.rfft(x @ p["w"], axis=-1) * (p["re"] + 1j * p["im"])
    return jnp.tanh(jnp.fft.irfft(a, 8, axis=-1)) @ p["v"]


def complex_constant(p, x):
    a = (x @ p["w"]).astype(complex) * (1 + 2j) + p["u"][0] * (0.5 - 1j)
    return (jnp.abs(a) + jnp.exp(1j * a.real).imag) @ p["v"]


def complex_product(p, x):
    a = lax.complex(x @ p["w"], jnp.sin(x @ p["w"])) @ lax.complex(p["u"], 2 * p["u"].T)
    return (a * a.conj()).real @ p["v"]


# Precision


def computed_in(dtype):
    def apply(p, x):
        p = jax.tree.map(lambda leaf: leaf.astype(dtype), p)
        a = jnp.tanh(normalized(x.astype(dtype) @ p["w"]) @ p["u"])
        return (a @ p["v"]).astype(float)

    return apply


# Shapes of parameters, algebra of weights


class Model:
    """A callable object with a constant mask."""

    def __init__(self) -> None:
        self.mask = np.arange(8) % 3 > 0

    def __call__(self, p: Any, x: Any) -> Any:
        return jnp.tanh(x @ p["w"] * self.mask) @ p["v"]


def closure(factor):
    return lambda p, x: jnp.tanh(factor * x @ p["w"]) @ p["v"]


def tied_autoencoder(p, x):
    return jnp.tanh(x @ p["w"] + p["b"]) @ p["w"].T


def bilinear(p, x):
    return jnp.einsum("ni,oij,nj->no", x, p["w"], x)


def polynomial(p, x):
    return p["c"][0] + p["c"][1] * x + p["c"][2] * x**2 + p["c"][3] ** 2 * x**3


def hypernetwork(p, x):
    w = (jnp.tanh(p["code"] @ p["maker"])).reshape(3, 8)
    return jnp.tanh(x @ w) @ p["v"]


def hypernetwork_of_rows(p, x):
    return jnp.einsum("ni,nio->no", x, jnp.tanh(x @ p["maker"]).reshape(len(x), 3, 2))


def low_rank_change(p, x):
    return jnp.tanh(x @ (p["w"] + p["a"] @ p["b"])) @ p["v"]


def symmetric(p, x):
    return jnp.tanh(jnp.tanh(x @ p["w"]) @ (p["u"] + p["u"].T)) @ p["v"]


def circulant(p, x):
    kernel = p["w"][0]
    return jnp.tanh((x @ p["w"]) @ jnp.stack([jnp.roll(kernel, k) for k in range(8)])) @ p["v"]


def toeplitz(p, x):
    return jnp.tanh(x @ p["c"][np.arange(3)[:, None] - np.arange(8) + 7]) @ p["v"]


def strided_and_reversed(p, x):
    return jnp.tanh(x @ p["w"][:, ::2]) @ p["v"][::-1][:4]


def joined(p, x):
    return jnp.tanh(x @ jnp.concatenate([p["w"], p["w2"]], 1)) @ jnp.pad(p["v"], [(0, 8), (0, 0)])


def from_one_vector(p, x):
    w, v = p[:24].reshape(3, 8), p[24:].reshape(8, 2)
    return jnp.tanh(x @ w) @ v


def solved(p, x):
    a = x @ p["w"]
    return jnp.linalg.solve(jnp.eye(8) + p["u"] @ p["u"].T / 8, a.T).T @ p["v"]


def matrix_power(p, x):
    return jnp.tanh(x @ p["w"] @ jnp.linalg.matrix_power(p["u"], 3)) @ p["v"]


def stopped(p, x):
    return jnp.tanh(x @ p["w"] + x @ lax.stop_gradient(p["w"])) @ p["v"]


def sorted_units(p, x):
    return jnp.sort(x @ p["w"], -1)[:, 2:] @ p["v"][2:]


def top_units(p, x):
    return lax.top_k(jnp.sin(x @ p["w"]), 3)[0] @ p["v"][:3]


def running_sums(p, x):
    a = x @ p["w"]
    return (jnp.tanh(jnp.cumsum(a, -1)) + 0.1 * jnp.cumprod(a, -1) + jax.nn.logsumexp(a, -1, keepdims=True)) @ p["v"]


def maxout(p, x):
    return (x @ p["w"]).reshape(len(x), 4, 2).max(-1) @ p["v"][:4]


def dropout_with_key(p, x):
    keep = jax.random.bernoulli(jax.random.key(3), 0.5, (8,))
    return (jnp.tanh(x @ p["w"]) * keep) @ p["v"]


def jitted_twice(p, x):
    layer = jax.jit(lambda a, w: jax.jit(jnp.tanh)(a @ w))
    return layer(layer(x, p["w"]), p["u"]) @ p["v"]


def small_shapes(p, x):
    return p["one"] * jnp.tanh(x @ p["w"]) @ p["v"] + p["scalar"] + p["none"].sum()


def integers(p, x):
    return jnp.tanh((x % 5) @ p["w"]) @ p["v"] + x[:, :2]


EXACT = {"oracle": computed_in(float)}

FORMULAS = [
    Case("derivatives by rules", with_rules, WUV, X, "jpp"),
    Case("a rule alone", rule_alone, WV, X, "pg"),
    Case("remat by policy", remat_by_policy, WUV, X, "ppp"),
    Case("spectral", spectral, {**WV, "re": draw(5), "im": draw(5)}, X, "gapp"),
    Case("complex constant", complex_constant, WUV, X, "gpp"),
    Case("complex product", complex_product, WUV, X, "jpp"),
    Case("in bf16", computed_in(jnp.bfloat16), WUV, X, "ppp", 0.1, **EXACT),
    Case("in f16", computed_in(jnp.float16), WUV, X, "ppp", 1e-2, **EXACT),
    Case("in f32", computed_in(jnp.float32), WUV, X, "ppp", 1e-5, **EXACT),
    Case("callable object", Model(), WV, X, "pp"),
    Case("closure", closure(np.array([0.5, -1.0, 2.0])), WV, X, "pp"),
    Case("tied autoencoder", tied_autoencoder, {"w": draw(3, 8), "b": draw(8)}, X, "ap"),
    Case("bilinear", bilinear, {"w": draw(2, 3, 3)}, X, "p"),
    Case("polynomial", polynomial, {"c": draw(4)}, X, "j"),
    Case("hypernetwork", hypernetwork, {"code": draw(4), "maker": draw(4, 24), "v": draw(8, 2)}, X, "jjp"),
    Case("hypernetwork of rows", hypernetwork_of_rows, {"maker": draw(3, 6)}, X, "p"),
    Case("low-rank change", low_rank_change, {**WV, "a": draw(3, 2), "b": draw(2, 8)}, X, "jjpa"),
    Case("symmetric", symmetric, WUV, X, "jpp"),
    Case("circulant", circulant, WV, X, "pj"),
    Case("toeplitz", toeplitz, {"c": draw(10), "v": draw(8, 2)}, X, "lp"),
    Case("strided and reversed", strided_and_reversed, WV, X, "jj"),
    Case("joined", joined, {**WV, "w2": draw(3, 8)}, X, "jjj"),
    Case("one vector", from_one_vector, draw(40), X, "pp"),
    Case("solved", solved, WUV, X, "jpp"),
    Case("matrix power", matrix_power, WUV, X, "jpp"),
    Case("stopped", stopped, WV, X, "pj"),
    Case("sorted", sorted_units, WV, X, "pp"),
    Case("top units", top_units, WV, X, "pp"),
    Case("running sums", running_sums, WV, X, "pp"),
    Case("maxout", maxout, WV, X, "pp"),
    Case("dropout with a key", dropout_with_key, WV, X, "pp"),
    Case("jit in jit", jitted_twice, WUV, X, "ppp"),
    Case(
        "small shapes",
        small_shapes,
        {**WV, "one": draw(1), "scalar": np.array(0.3), "none": np.zeros((0, 3))},
        X,
        "gapp",
    ),
    Case("integers", integers, WV, RNG.integers(-9, 9, (4, 3)), "pp"),
]
