"""Typical research programs: tables and padding, sequences, images, norms, routing."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.traced.programs import Case, conv, draw, normalized

# Tables, with look-ups outside their range


def looked_up(mode, **settings):
    def apply(p, x):
        return jnp.tanh(jnp.take(p["table"], x, axis=0, mode=mode, **settings) @ p["v"]).sum(1)

    return apply


def default_indexing(p, x):
    return jnp.tanh(p["table"][x] @ p["v"]).sum(1)


def default_indexing_outside_constant(p, x):
    """Default indexing, whose reverse mode ignores indices outside the table."""
    rows = p["table"][x]
    inside = ((x >= -7) & (x < 7))[..., None]
    return jnp.tanh(jnp.where(inside, rows, lax.stop_gradient(rows)) @ p["v"]).sum(1)


def at_get(p, x):
    return jnp.tanh(p["table"].at[x].get(mode="fill", fill_value=0.5) @ p["v"]).sum(1)


def tied_with_padding(p, x):
    a = jnp.take(p["table"], x, axis=0, mode="fill", fill_value=0)
    return (jnp.tanh(a @ p["w"]) @ p["table"].T).mean(1)[:, :3]


def looked_up_over_time(p, x):
    def step(h, token):
        return jnp.tanh(jnp.take(p["table"], token, axis=0, mode="fill", fill_value=0) + h @ p["u"]), None

    return lax.scan(step, jnp.zeros((x.shape[0], 4)), x.T)[0] @ p["v"]


def masked_mean(p, x):
    mask = (x < 7)[..., None]
    return (jnp.tanh(p["table"].at[x].get(mode="clip")) * mask).sum(1) / mask.sum(1) @ p["v"]


def matrix_of_each_token(p, x):
    return jnp.tanh(jnp.einsum("tio,nti->nto", p["w"], jnp.take(p["maps"], x, axis=0, mode="clip")[..., 0])).mean(1)


def large_table_in_bf16(p, x):
    a = jnp.take(p["table"].astype(jnp.bfloat16), 37 * x, axis=0, mode="fill", fill_value=0)
    return (a.astype(float) @ p["v"]).sum(1)


def one_hot_outside(p, x):
    return jnp.tanh(jax.nn.one_hot(x, 7, dtype=float) @ p["table"]).sum(1) @ p["v"]


def scattered(p, x):
    a = x @ p["w"]
    sums = jnp.zeros((len(x), 4)).at[:, np.array([0, 1, 1, 9, -1, 3, 2, 0])].add(a, mode="drop")
    return jnp.tanh(sums) @ p["v"]


def segments(p, x):
    a = jnp.sin(x @ p["w"])
    sums = jax.vmap(lambda row: jax.ops.segment_sum(row, np.array([0, 1, 1, 5, -1, 3, 2, 0]), 4))(a)
    return jnp.tanh(sums) @ p["v"]


def weights_scattered(p, x):
    w = jnp.zeros((3, 8)).at[np.array([0, 2, 5])].set(p["w"], mode="drop")
    return jnp.tanh(x @ w) @ p["v"]


def sliced_at_data(p, x):
    def row(a):
        start = (4 * a[0]).astype(int)  # clamped to the valid range
        return jnp.tanh(a @ lax.dynamic_slice(p["w"], (0, start), (3, 4))) @ lax.dynamic_slice(p["v"], (7, 0), (4, 2))

    return jax.vmap(row)(x)


# Sequences


def lstm(p, x):
    def step(carry, a):
        h, c = carry
        i, f, g, o = jnp.split(a @ p["w"] + h @ p["u"] + p["b"], 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    start = (jnp.zeros((len(x), 3)),) * 2
    return lax.scan(step, start, jnp.moveaxis(x, 1, 0))[0][0] @ p["v"]


def rnn_with_lengths(p, x):
    lengths = 2 + (x[:, 0, 0] > 0)

    def step(h, both):
        time, a = both
        return jnp.where((time < lengths)[:, None], jnp.tanh(a @ p["w"] + h @ p["u"]), h), None

    series = (jnp.arange(x.shape[1]), jnp.moveaxis(x, 1, 0))
    return lax.scan(step, jnp.zeros((len(x), 4)), series)[0] @ p["v"]


def causal_attention(p, x):
    q, k, v = jnp.moveaxis((x @ p["qkv"]).reshape(*x.shape[:2], 3, 4), 2, 0)
    scores = jnp.where(np.tri(x.shape[1], dtype=bool), jnp.einsum("nid,njd->nij", q, k) / 2, -jnp.inf)
    return (jax.nn.softmax(scores, -1) @ v)[:, -1] @ p["o"]


def learned_queries(p, x):
    scores = jax.nn.softmax(jnp.einsum("qd,njd->nqj", p["queries"], x @ p["k"]), -1)
    return jnp.einsum("nqj,njd->nqd", scores, x @ p["v"]).reshape(len(x), -1) @ p["o"]


def places(p, x):
    time = np.arange(x.shape[1])[:, None]
    waves = np.concatenate([np.sin(time / 3.0 ** np.arange(2)), np.cos(time / 3.0 ** np.arange(2))], 1)
    return jnp.tanh((x + waves + p["places"][: x.shape[1]]) @ p["w"]).mean(1)


def state_space(p, x):
    a = jax.nn.sigmoid(p["decay"]) * jnp.ones_like(x)

    def join(one, two):
        return one[0] * two[0], two[0] * one[1] + two[1]

    return jnp.tanh(lax.associative_scan(join, (a, x @ p["w"]), axis=1)[1])[:, -1] @ p["v"]


def scan_in_scan(p, x):
    def outer(h, a):
        inner = lax.scan(lambda g, _: (jnp.tanh(g @ p["u"] + a @ p["w"]), None), h, None, length=2)[0]
        return inner, None

    return lax.scan(outer, jnp.zeros((len(x), 4)), jnp.moveaxis(x, 1, 0))[0] @ p["v"]


# Images


def dilated(p, x):
    return jnp.tanh(conv(x, p["w1"], rhs_dilation=(2, 2))).mean((1, 2)) @ p["v"]


def transposed_convolution(p, x):
    a = jnp.tanh(conv(x, p["w1"], window_strides=(2, 2)))
    return lax.conv_transpose(a, p["w2"], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")).mean((1, 2))


def group_normalized(p, x):
    a = conv(x, p["w1"])
    groups = a.reshape(*a.shape[:3], 2, -1)
    centered = groups - groups.mean((1, 2, 4), keepdims=True)
    a = (centered / jnp.sqrt((centered**2).mean((1, 2, 4), keepdims=True) + 1e-3)).reshape(a.shape)
    return jnp.tanh(p["g"] * a + p["b"]).mean((1, 2)) @ p["v"]


def cropped_and_pooled(p, x):
    a = conv(x, p["w1"], padding=((-1, 2), (1, -1)))
    return lax.reduce_window(a, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 1, 1, 1), "VALID").mean((1, 2)) @ p["v"]


def not_shared(p, x):
    a = lax.conv_general_dilated_local(x, p["w1"], (1, 1), "VALID", (2, 2), dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jnp.tanh(a).mean((1, 2))


def patches_as_tokens(p, x):
    a = x.reshape(len(x), 2, 2, 2, 2, 2).transpose(0, 1, 3, 2, 4, 5).reshape(len(x), 4, 8)
    return jnp.tanh(normalized(a @ p["w"])).mean(1) @ p["v"]


# Norms


def layer_norm(p, x):
    return jnp.tanh(p["g"] * normalized(x @ p["w"]) + p["b"]) @ p["v"]


def rms_norm(p, x):
    a = x @ p["w"]
    return jnp.tanh(p["g"] * a * lax.rsqrt((a**2).mean(-1, keepdims=True) + 1e-3)) @ p["v"]


def kept_averages(p, x):
    a = (x @ p["w"] - lax.stop_gradient(p["mean"])) / jnp.sqrt(lax.stop_gradient(p["var"]) ** 2 + 1e-3)
    return jnp.tanh(p["g"] * a + p["b"]) @ p["v"]


# Routing


def hard_experts(p, x):
    expert = jnp.argmax(x @ p["gate"], -1)
    return jnp.tanh(jnp.einsum("ni,nio->no", x, p["w"][expert])) @ p["v"]


def top_two_experts(p, x):
    scores, experts = lax.top_k(jax.nn.softmax(x @ p["gate"]), 2)
    each = jnp.tanh(jnp.einsum("ni,eio->neo", x, p["w"]))
    return jnp.einsum("nk,nko->no", scores, jnp.take_along_axis(each, experts[..., None], 1)) @ p["v"]


def vmapped_experts(p, x):
    each = jax.vmap(lambda w, v: jnp.tanh(x @ w) @ v)(p["w"], p["v"])
    return jnp.einsum("ne,enc->nc", jax.nn.softmax(x @ p["gate"]), each)


def switched(p, x):
    branches = [lambda a: jnp.tanh(a @ p["w"]), lambda a: jnp.sin(a @ p["w"]), lambda a: (a @ p["w"]) ** 2]
    return jax.vmap(lambda a: lax.switch((a[0] > 0) + (a[1] > 0).astype(int), branches, a))(x) @ p["v"]


def cond_on_data(p, x):
    return jax.vmap(lambda a: lax.cond(a[0] > 0, lambda b: jnp.tanh(b @ p["w"]), lambda b: b @ p["w"], a))(x) @ p["v"]


def fixed_loop(p, x):
    return lax.fori_loop(0, 3, lambda _, a: jnp.tanh(a @ p["u"]), x @ p["w"]) @ p["v"]


def while_without_weights(p, x):
    scale = lax.while_loop(lambda s: s < 4, lambda s: 1.5 * s, jnp.ones(()) * 1.0)
    return jnp.tanh(scale * x @ p["w"]) @ p["v"]


def while_with_weights(p, x):
    return lax.while_loop(lambda a: jnp.sum(a**2) > 0.1, lambda a: 0.5 * jnp.tanh(a @ p["u"]), x @ p["w"]) @ p["v"]


X, IMAGES, SERIES = draw(4, 3), draw(3, 4, 4, 2), draw(3, 3, 3)
TOKENS = np.array([[0, 3, 6], [5, 1, 1], [7, -1, 2], [9, 4, -8]])  # 7 words; later rows have ids outside the table
WUV = {"w": draw(3, 8), "u": draw(8, 8), "v": draw(8, 2)}
WV = {name: WUV[name] for name in "wv"}
TABLE = {"table": draw(7, 4), "v": draw(4, 2)}
NORMED = {**WV, "g": 1 + draw(8), "b": draw(8)}
EXPERTS = {"gate": draw(3, 2), "w": draw(2, 3, 4), "v": draw(4, 2)}
FILTERS = {"w1": draw(2, 2, 2, 4), "v": draw(4, 2)}
TIME = {"w": draw(3, 4), "u": draw(4, 4), "v": draw(4, 2)}

MORE_CASES = [
    Case("padding filled", looked_up("fill", fill_value=0), TABLE, TOKENS, "lp"),
    Case("padding clipped", looked_up("clip"), TABLE, TOKENS, "lp"),
    Case("padding wrapped", looked_up("wrap"), TABLE, TOKENS, "lp"),
    Case("padding by default", default_indexing, TABLE, TOKENS, "lp", oracle=default_indexing_outside_constant),
    Case("at and get", at_get, TABLE, TOKENS, "lp"),
    Case("tied with padding", tied_with_padding, {"table": draw(7, 4), "w": draw(4, 4)}, TOKENS, "lp"),
    Case("look-ups over time", looked_up_over_time, {**TABLE, "u": draw(4, 4)}, TOKENS, "lpp"),
    Case("masked mean", masked_mean, TABLE, TOKENS, "lp"),
    Case("matrices looked up", matrix_of_each_token, {"maps": draw(7, 4, 1), "w": draw(3, 4, 2)}, TOKENS, "lp"),
    Case("large table in bf16", large_table_in_bf16, {"table": draw(300, 4), "v": draw(4, 2)}, TOKENS, "lp", 3e-2),
    Case("one-hot outside", one_hot_outside, TABLE, TOKENS, "pp"),
    Case("scatter", scattered, {"w": draw(3, 8), "v": draw(4, 2)}, X, "pp"),
    Case("segment sum", segments, {"w": draw(3, 8), "v": draw(4, 2)}, X, "pp"),
    Case("weights scattered", weights_scattered, WV, X, "pj"),
    Case("dynamic slices", sliced_at_data, WV, X, "pj"),
    Case("lstm", lstm, {"w": draw(3, 12), "u": draw(3, 12), "b": draw(12), "v": draw(3, 2)}, SERIES, "appp"),
    Case("lengths", rnn_with_lengths, TIME, SERIES, "ppp"),
    Case("causal attention", causal_attention, {"qkv": draw(3, 12), "o": draw(4, 2)}, SERIES, "pp"),
    Case(
        "learned queries",
        learned_queries,
        {"queries": draw(2, 4), "k": draw(3, 4), "v": draw(3, 4), "o": draw(8, 2)},
        SERIES,
        "pppp",
    ),
    Case("places", places, {"places": draw(5, 4), "w": draw(4, 2)}, draw(3, 3, 4), "ap"),
    Case("state space", state_space, {"decay": draw(4), "w": draw(4, 4), "v": draw(4, 2)}, draw(3, 3, 4), "jpp"),
    Case("scan in scan", scan_in_scan, TIME, SERIES, "ppp"),
    Case("dilated", dilated, FILTERS, IMAGES, "pc"),
    Case("transposed convolution", transposed_convolution, {**FILTERS, "w2": draw(2, 2, 4, 2)}, IMAGES, "cc"),
    Case("group norm", group_normalized, {**FILTERS, "g": draw(4), "b": draw(4)}, IMAGES, "agpc"),
    Case("cropped and pooled", cropped_and_pooled, FILTERS, IMAGES, "pc"),
    Case("not shared", not_shared, {"w1": draw(3, 3, 8, 2)}, IMAGES, "p"),
    Case("patches", patches_as_tokens, {"w": draw(8, 4), "v": draw(4, 2)}, IMAGES, "pp"),
    Case("layer norm", layer_norm, NORMED, X, "agpp"),
    Case("rms norm", rms_norm, {**WV, "g": draw(8)}, X, "gpp"),
    Case("kept averages", kept_averages, {**NORMED, "mean": draw(8), "var": draw(8)}, X, "agjpjp"),
    Case("hard experts", hard_experts, EXPERTS, X, "ppl"),
    Case("two experts", top_two_experts, {**EXPERTS, "gate": draw(3, 3), "w": draw(3, 3, 4)}, X, "ppp"),
    Case("vmapped experts", vmapped_experts, {**EXPERTS, "v": draw(2, 4, 2)}, X, "ppp"),
    Case("switch", switched, WV, X, "pj"),
    Case("cond on data", cond_on_data, WV, X, "pj"),
    Case("fixed loop", fixed_loop, WUV, X, "ppp"),
    Case("while without weights", while_without_weights, WV, X, "pp"),
]
