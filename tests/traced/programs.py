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


def conv(a: Any, w: Any, **settings: Any) -> Any:
    settings = {"window_strides": (1, 1), "padding": "SAME", **settings}
    return lax.conv_general_dilated(a, w, dimension_numbers=("NHWC", "HWIO", "NHWC"), **settings)


def mlp(p, x):
    return jnp.tanh(x @ p["w"] + p["b"]) @ p["v"]


def scaled_before(p, x):
    return jnp.tanh(x @ (p["w"] / jnp.sqrt(x.shape[-1]))) @ (-0.5 * p["v"].T.astype(float)).T


def transposed_weights(p, x):
    return jnp.einsum("oh,nh->no", p["v"], jnp.sin(jnp.einsum("hi,ni->nh", p["w"], x)))


def cut_in_three(p, x):
    q, k, v = jnp.split(p["w"], 3, axis=1)
    return jnp.tanh((x @ q) * (x @ k) + x @ v) @ p["v"]


def rows_by_number(p, x):
    a = x
    for index in range(3):
        a = jnp.tanh(a @ p["w"][index])
    return a @ p["v"]


def heads_of_a_kernel(p, x):
    return jnp.tanh(jnp.einsum("ni,ihd->nhd", x, p["w"])).reshape(x.shape[0], -1) @ p["v"].reshape(-1, 2)


def used_twice(p, x):
    a = jnp.tanh(x @ p["u"])
    for _ in range(2):
        a = jnp.tanh(a @ p["w"])
    return a @ p["v"]


def masked(p, x):
    return jnp.tanh(x @ (p["w"] * (jnp.arange(8) % 2))) @ p["v"]


def normalized_weights(p, x):
    return jnp.tanh(x @ (p["w"] / jnp.linalg.norm(p["w"], axis=0))) @ p["v"]


def squared(p, x):
    return jnp.tanh(x @ p["w"]) @ p["v"] + 0.1 * jnp.sum(p["v"] ** 2)


def low_rank(p, x):
    return jnp.tanh(x @ p["a"] @ p["b"]) @ p["v"]


def rematerialized(p, x):
    return jax.checkpoint(lambda w, a: jnp.tanh(a @ w))(p["w"], jax.jit(jnp.sin)(x)) @ p["v"]


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


def cnn(p, x):
    a = jax.nn.gelu(conv(x, p["w1"]))
    a = jax.nn.gelu(conv(a, p["w2"], window_strides=(2, 2), padding="VALID", rhs_dilation=(1, 1)))
    return a.mean((1, 2)) @ p["v"]


def resnet(p, x):
    a = conv(x, p["w1"])
    a = a + conv(jax.nn.relu(p["g"] * normalized(a) + p["b"]), p["w2"])
    return jnp.tanh(a).reshape(x.shape[0], -1) @ p["v"]


def depthwise(p, x):
    a = jnp.tanh(conv(x, p["w1"], feature_group_count=2))
    return conv(a, p["w2"]).mean((1, 2))


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


def one_hot_embedding(p, x):
    return jnp.tanh(jax.nn.one_hot(x, 7, dtype=float) @ p["table"]).mean(1) @ p["v"]


def gru(p, x):
    def step(h, a):
        z, r = jax.nn.sigmoid(a @ p["wz"] + h @ p["uz"]), jax.nn.sigmoid(a @ p["wr"] + h @ p["ur"])
        return (1 - z) * h + z * jnp.tanh(a @ p["wh"] + (r * h) @ p["uh"]), None

    start = jnp.zeros((x.shape[0], p["uz"].shape[0]))
    return lax.scan(step, start, jnp.moveaxis(x, 1, 0))[0] @ p["v"]


def backwards_in_time(p, x):
    def step(h, a):
        h = jnp.tanh(a @ p["w"] + h @ p["u"] + p["b"])
        return h, h @ p["v"]

    return lax.scan(step, jnp.zeros((x.shape[0], 4)), jnp.moveaxis(x, 1, 0), reverse=True)[1].mean(0)


def deep_in_time(p, x):
    """A scan over layers, with a scan over time in each."""

    def layer(a, w):
        def step(h, b):
            h = jnp.tanh(b @ w["w"] + h @ w["u"])
            return h, h

        return lax.scan(step, jnp.zeros(a.shape[1:]), a)[1], None

    return lax.scan(layer, jnp.moveaxis(x, 1, 0), p["layers"])[0][-1] @ p["v"]


def mixture(p, x):
    weights = jax.nn.softmax(x @ p["gate"])
    hidden = jnp.tanh(jnp.einsum("ni,eio->neo", x, p["w"]))
    return jnp.einsum("neo,eoc->nc", weights[..., None] * hidden, p["v"])


def experts_apart(p, x):
    hidden = jnp.tanh(jnp.einsum("ni,eio->neo", x, p["w"]))
    return jnp.einsum("neo,eoc->nec", hidden, p["v"]).sum(1)


def chosen(p, x):
    return lax.cond(True, lambda w: jnp.tanh(x @ w), lambda w: x @ w, p["w"]) @ p["v"]


def with_numbers(p, x):
    return jnp.tanh(x @ p["w"] * p["factor"]) @ p["v"] + p["count"]


def vmapped(p, x):
    return jax.vmap(lambda row: jnp.tanh(row @ p["w"]) @ p["v"])(x)


def gated(p, x):
    return (jax.nn.silu(x @ p["w"]) * (x @ p["u"])) @ p["v"]


def batch_statistics(p, x):
    a = x @ p["w"]
    return jnp.tanh((a - a.mean(0)) / jnp.sqrt(a.var(0) + 1e-3)) @ p["v"]


X, IMAGES, TOKENS, SERIES = draw(4, 3), draw(3, 4, 4, 2), RNG.integers(0, 7, (4, 5)), draw(4, 5, 4)
WV = {"w": draw(3, 8), "v": draw(8, 2)}
GATES = {name: draw(4, 5) for name in ("wz", "wr", "wh")}
BLOCKS = {
    "q": draw(2, 4, 4),
    "k": draw(2, 4, 4),
    "v": draw(2, 4, 4),
    "o": draw(2, 4, 4),
    "up": draw(2, 4, 6),
    "down": draw(2, 6, 4),
}

CASES = [
    Case("mlp", mlp, {**WV, "b": draw(8)}, X, "app"),
    Case("scaled before", scaled_before, WV, X, "pp"),
    Case("transposed", transposed_weights, {"w": draw(8, 3), "v": draw(2, 8)}, X, "pp"),
    Case("cut in three", cut_in_three, {"w": draw(3, 24), "v": draw(8, 2)}, X, "pppp"),
    Case("rows by number", rows_by_number, {"w": draw(3, 3, 3), "v": draw(3, 2)}, X, "pppp"),
    Case("heads", heads_of_a_kernel, {"w": draw(3, 2, 4), "v": draw(2, 4, 2)}, X, "pp"),
    Case("used twice", used_twice, {"u": draw(3, 8), "w": draw(8, 8), "v": draw(8, 2)}, X, "ppp"),
    Case("masked", masked, WV, X, "pg"),
    Case("weight norm", normalized_weights, WV, X, "pj"),
    Case("squared", squared, WV, X, "jp"),
    Case("low rank", low_rank, {"a": draw(3, 2), "b": draw(2, 8), "v": draw(8, 2)}, X, "ppp"),
    Case("checkpoint", rematerialized, WV, X, "pp"),
    Case("own derivative", own_derivative, WV, X, "pj"),
    Case(
        "scan over layers",
        layers_scanned,
        {"u": draw(3, 4), "blocks": {"w": draw(3, 4, 4), "b": draw(3, 4)}, "v": draw(4, 2)},
        X,
        "appp",
    ),
    Case("cnn", cnn, {"w1": draw(3, 3, 2, 4), "w2": draw(2, 2, 4, 3), "v": draw(3, 2)}, IMAGES, "pcc"),
    Case(
        "resnet",
        resnet,
        {"w1": draw(3, 3, 2, 3), "w2": draw(3, 3, 3, 3), "g": draw(3), "b": draw(3), "v": draw(48, 2)},
        IMAGES,
        "agpcc",
    ),
    Case("depthwise", depthwise, {"w1": draw(3, 3, 1, 4), "w2": draw(1, 1, 4, 2)}, IMAGES, "cc"),
    Case("attention", attention, {**{name: draw(4, 4) for name in "qkv"}, "o": draw(2, 2, 3)}, SERIES, "pppp"),
    Case(
        "transformer",
        transformer,
        {"table": draw(7, 4), "places": draw(5, 4), "gain": draw(4), "blocks": BLOCKS},
        TOKENS,
        "ppppppgaj",
    ),
    Case("tied weights", tied, {"table": draw(7, 4), "w": draw(4, 4)}, TOKENS, "lp"),
    Case(
        "embedding",
        lambda p, x: jnp.tanh(p["table"][x] @ p["w"]).mean(1),
        {"table": draw(7, 4), "w": draw(4, 2)},
        TOKENS,
        "lp",
    ),
    Case("one-hot embedding", one_hot_embedding, {"table": draw(7, 4), "v": draw(4, 2)}, TOKENS, "pp"),
    Case(
        "gru", gru, {**GATES, "uz": draw(5, 5), "ur": draw(5, 5), "uh": draw(5, 5), "v": draw(5, 2)}, SERIES, "ppppppp"
    ),
    Case(
        "backwards in time",
        backwards_in_time,
        {"w": draw(4, 4), "u": draw(4, 4), "b": draw(4), "v": draw(4, 2)},
        SERIES,
        "appp",
    ),
    Case(
        "layers in time",
        deep_in_time,
        {"layers": {"w": draw(2, 4, 4), "u": draw(2, 4, 4)}, "v": draw(4, 2)},
        SERIES,
        "ppp",
    ),
    Case("mixture", mixture, {"gate": draw(3, 2), "w": draw(2, 3, 4), "v": draw(2, 4, 2)}, X, "ppp"),
    Case("experts apart", experts_apart, {"w": draw(2, 3, 4), "v": draw(2, 4, 2)}, X, "pp"),
    Case("cond", chosen, WV, X, "pj"),
    Case("numbers", with_numbers, {**WV, "factor": np.array(0.5), "count": np.array(3)}, X, "gpp"),
    Case("vmap", vmapped, WV, X, "pp"),
    Case("gated", gated, {**WV, "u": draw(3, 8)}, X, "ppp"),
]
