"""Random programs, right to 1e-8 or refused by name.

1,000 by ``make programs``, one link per step otherwise.

A program is a chain of steps from (n, T, D) to outputs (n, C). Parameters are drawn by name, may be
shared by several steps, and enter directly or through one of ``WAYS``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from ntk_core.errors import InvalidInput
from ntk_core.hessians._operator import operator
from ntk_core.kernels import empirical_ntk, generic_ntk
from ntk_core.traced import layers_of, traced
from tests.plain_derivatives import dense_hessian, largest
from tests.tiers import EXHAUSTIVE

TIME, WIDTH, OUTPUTS, WORDS = 3, 4, 2, 5
READOUTS = ("mean", "last", "flat")
X = np.random.default_rng(1).normal(size=(3, TIME, WIDTH))
TOLERANCE = 1e-8


@dataclass
class Weights:
    """Parameters by name and shape; with a seed, new names draw new parameters."""

    values: dict[str, Any]
    seed: int | None = None

    def __call__(self, name: str, *shape: int) -> Any:
        key = f"{name}{'x'.join(map(str, shape))}"
        if self.seed is not None and key not in self.values:
            rng = np.random.default_rng([self.seed, *key.encode()])
            self.values[key] = rng.normal(size=shape) / max(1, *shape[:1]) ** 0.5
        return jnp.asarray(self.values[key])


@jax.custom_vjp
def _bent(a: Any) -> Any:
    return jnp.sin(a)


_bent.defvjp(lambda a: (jnp.sin(a), a), lambda a, t: (t * jnp.cos(a),))


@jax.custom_jvp
def _soft(a: Any) -> Any:
    return jnp.log1p(jnp.exp(a))


_soft.defjvp(
    lambda primals, tangents: (_soft(primals[0]), jax.nn.sigmoid(primals[0]) * tangents[0])
)


def _unit(a: Any) -> Any:
    return (a - a.mean(-1, keepdims=True)) / jnp.sqrt(a.var(-1, keepdims=True) + 0.1)


def _tokens(a: Any, x: Any) -> Any:
    """Token ids from the data, some outside the table."""
    return jnp.floor(3 * x[..., 0]).astype(int)


# Transformations of a matrix, of equal shape, before its use.
WAYS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda w: w,
    "scaled": lambda w: -0.5 * w / jnp.sqrt(3.0),
    "transposed": lambda w: w.T,
    "rearranged": lambda w: w.reshape(2, 8).T.reshape(-1).reshape(4, 4),
    "heads": lambda w: jnp.moveaxis(w.reshape(4, 2, 2), 1, 0).transpose(1, 0, 2).reshape(4, 4),
    "cut and joined": lambda w: jnp.concatenate([w[:, 2:], w[:, :2]], 1),
    "masked": lambda w: w * np.tri(4),
    "reversed": lambda w: w[::-1],
    "rolled": lambda w: jnp.roll(w, 1, 0),
    "rows chosen": lambda w: w[np.array([2, 0, 1, 2])],
    "rows filled": lambda w: jnp.take(
        w, np.array([2, 9, -1, 0]), axis=0, mode="fill", fill_value=0.5
    ),
    "slice clamped": lambda w: jnp.tile(lax.dynamic_slice(w, (3, 1), (2, 4)), (2, 1)),
    "unit columns": lambda w: w / jnp.linalg.norm(w, axis=0),
    "symmetric": lambda w: w + w.T,
    "squared": lambda w: w @ w,
    "stopped in part": lambda w: w + lax.stop_gradient(w),
    "remembered": lambda w: jax.jit(lambda v: 2 * v)(w),
    "complex": lambda w: (w * (1 + 2j)).imag,
}


def _scan_in_time(**settings: Any) -> Callable[..., Any]:
    def step(w: Weights, a: Any, x: Any, v: Any) -> Any:
        def one(h: Any, b: Any) -> Any:
            h = jnp.tanh(b @ v + h @ w("u", WIDTH, WIDTH))
            return h, h

        start = jnp.zeros((len(a), WIDTH))
        return jnp.moveaxis(lax.scan(one, start, jnp.moveaxis(a, 1, 0), **settings)[1], 0, 1)

    return step


def _scan_of_layers(w: Weights, a: Any, x: Any, v: Any) -> Any:
    return lax.scan(
        lambda b, u: (jnp.tanh(b @ u) + 0.5 * b @ v, None), a, w("stack", 2, WIDTH, WIDTH)
    )[0]


def _heads(w: Weights, a: Any, x: Any, v: Any) -> Any:
    q = jnp.einsum("ntd,dhe->nhte", a, w("q", WIDTH, 2, 2))
    scores = jax.nn.softmax(q @ jnp.swapaxes(q, -1, -2), -1)
    return jnp.einsum(
        "nhts,nshe,hed->ntd", scores, (a @ v).reshape(-1, TIME, 2, 2), w("o", 2, 2, WIDTH)
    )


def _convolution(**settings: Any) -> Callable[..., Any]:
    def step(w: Weights, a: Any, x: Any, v: Any) -> Any:
        groups = settings.get("feature_group_count", 1)
        how = {"window_strides": (1,), "padding": "SAME", **settings}
        kernel = w(f"conv{groups}", 2, WIDTH // groups, WIDTH)
        numbers = ("NWC", "WIO", "NWC")
        b = lax.conv_general_dilated(a @ v, kernel, dimension_numbers=numbers, **how)
        return jnp.concatenate([b, b, b], 1)[:, :TIME]

    return step


def _look_up(**settings: Any) -> Callable[..., Any]:
    def step(w: Weights, a: Any, x: Any, v: Any) -> Any:
        return a + jnp.take(w("table", WORDS, WIDTH), _tokens(a, x), axis=0, **settings) @ v

    return step


def _tied(w: Weights, a: Any, x: Any, v: Any) -> Any:
    table = w("table", WORDS, WIDTH)
    return jax.nn.softmax(a @ v @ table.T, -1) @ table


def _scatter(w: Weights, a: Any, x: Any, v: Any) -> Any:
    at = jnp.arange(len(a))[:, None], _tokens(a, x)
    return jnp.zeros((len(a), TIME, WIDTH)).at[at].add(a @ v, mode="drop")


def _hard_experts(w: Weights, a: Any, x: Any, v: Any) -> Any:
    best = jnp.argmax(x[..., :2], -1)
    return jnp.einsum("nti,ntio->nto", a @ v, w("experts", 2, WIDTH, WIDTH)[best])


def _switch(w: Weights, a: Any, x: Any, v: Any) -> Any:
    branches = [lambda b: jnp.tanh(b @ v), lambda b: b @ w("u", WIDTH, WIDTH), lambda b: b**2]
    return jax.vmap(
        lambda b, y: lax.switch((y[0, 0] > 0) + (y[1, 0] > 0).astype(int), branches, b)
    )(a, x)


def _cond(w: Weights, a: Any, x: Any, v: Any) -> Any:
    return jax.vmap(lambda b, y: lax.cond(y[0, 0] > 0, lambda c: jnp.sin(c @ v), lambda c: c, b))(
        a, x
    )


def _generated(w: Weights, a: Any, x: Any, v: Any) -> Any:
    made = jnp.tanh(a.mean(1) @ w("maker", WIDTH, WIDTH**2)).reshape(-1, WIDTH, WIDTH)
    return jnp.einsum("nti,nio->nto", a, made) @ v


def _spectral(w: Weights, a: Any, x: Any, v: Any) -> Any:
    gains = w("re", 3) + 1j * w("im", 3)
    return jnp.fft.irfft(jnp.fft.rfft(a @ v, axis=-1) * gains, WIDTH, axis=-1)


def _complex(w: Weights, a: Any, x: Any, v: Any) -> Any:
    b = lax.complex(a @ v, a) @ lax.complex(w("u", WIDTH, WIDTH), v)
    return (b * (1 - 2j)).real + jnp.abs(b) / 4


def _polynomial(w: Weights, a: Any, x: Any, v: Any) -> Any:
    c = w("powers", 3)
    return c[0] + c[1] * a @ v + c[2] ** 2 * a**2


STEPS: dict[str, Callable[..., Any]] = {
    "product": lambda w, a, x, v: a @ v,
    "scan in time": _scan_in_time(),
    "scan backwards": _scan_in_time(reverse=True),
    "scan of layers": _scan_of_layers,
    "heads": _heads,
    "convolution": _convolution(),
    "dilated, cropped": _convolution(rhs_dilation=(2,), padding=((-1, 2),)),
    "strided, grouped": _convolution(window_strides=(2,), padding=((1, 1),), feature_group_count=2),
    "transposed convolution": _convolution(lhs_dilation=(2,), padding=((1, 0),)),
    "pooling": lambda w, a, x, v: lax.reduce_window(
        a @ v, -jnp.inf, lax.max, (1, 2, 1), (1, 1, 1), "SAME"
    ),
    "fill": _look_up(mode="fill", fill_value=0.0),
    "clip": _look_up(mode="clip"),
    "tied": _tied,
    "scatter": _scatter,
    "hard experts": _hard_experts,
    "vmapped experts": lambda w, a, x, v: jax.vmap(lambda u: jnp.tanh(a @ v @ u))(
        w("experts", 2, WIDTH, WIDTH)
    ).sum(0),
    "switch": _switch,
    "cond": _cond,
    "loop": lambda w, a, x, v: lax.fori_loop(0, 2, lambda _, b: jnp.tanh(b @ v), a),
    "hypernetwork": _generated,
    "low rank": lambda w, a, x, v: a @ (v + w("left", WIDTH, 1) @ w("right", 1, WIDTH)),
    "bilinear": lambda w, a, x, v: (
        jnp.einsum("nti,oij,ntj->nto", a, w("cube", WIDTH, WIDTH, WIDTH), a @ v) / 4
    ),
    "spectral": _spectral,
    "complex": _complex,
    "remat": lambda w, a, x, v: jax.checkpoint(lambda b, u: jnp.tanh(b @ u))(a, v),
    "norm": lambda w, a, x, v: w("gain", WIDTH) * _unit(a @ v) + w("bias", WIDTH),
    "sums": lambda w, a, x, v: (
        jnp.cumsum(a @ v, 1) + lax.associative_scan(jnp.multiply, jnp.tanh(a), axis=1)
    ),
    "sort": lambda w, a, x, v: jnp.sort(a @ v, -1),
    "places": lambda w, a, x, v: (a + w("places", TIME + 2, WIDTH)[:TIME]) @ v,
    "polynomial": _polynomial,
}

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "tanh": jnp.tanh,
    "gelu": jax.nn.gelu,
    "relu": jax.nn.relu,
    "identity": lambda a: a,
    "rule": _bent,
    "soft": _soft,
    "jit": jax.jit(jnp.sin),
}

# Steps that are refused by name: interacting rows, and loops without a gradient.
REFUSED: dict[str, Callable[..., Any]] = {
    "batch norm": lambda w, a, x, v: (a @ v - (a @ v).mean(0)) / jnp.sqrt((a @ v).var(0) + 0.1),
    "while": lambda w, a, x, v: lax.while_loop(
        lambda b: jnp.sum(b**2) > 4, lambda b: 0.5 * b @ v, a
    ),
}


@dataclass(frozen=True)
class Link:
    """One step of a chain: operation, matrix, activation, and whether its input is added."""

    step: str
    way: str = "itself"
    shared: bool = False
    activation: str = "tanh"
    residual: bool = False


@dataclass(frozen=True)
class Chain:
    """A program; equal chains hash alike, as the same function."""

    links: tuple[Link, ...]
    readout: str = "mean"
    seed: int = 0

    def run(self, w: Weights, x: Any) -> Any:
        a = x
        for index, link in enumerate(self.links):
            v = WAYS[link.way](w("w" if link.shared else f"w{index}-", WIDTH, WIDTH))
            b = ACTIVATIONS[link.activation]({**STEPS, **REFUSED}[link.step](w, a, x, v))
            a = a + b if link.residual else b
        a = {
            "mean": lambda: a.mean(1),
            "last": lambda: a[:, -1],
            "flat": lambda: a.reshape(len(a), -1),
        }[self.readout]()
        return a @ w(f"out {self.readout}", a.shape[-1], OUTPUTS)

    def __call__(self, params: Any, x: Any) -> Any:
        return self.run(Weights(params), x)

    def params(self, x: Any) -> dict[str, Any]:
        """Draw the parameters of all names used in a run."""
        w = Weights({}, self.seed)
        jax.eval_shape(lambda x: self.run(w, x), x)
        return {name: jnp.asarray(value) for name, value in sorted(w.values.items())}


def sample():
    """Two links per program, so that every step, way and activation occurs."""
    ways, activations = (sorted(each) for each in (WAYS, ACTIVATIONS))
    links = [
        Link(step, ways[k % len(ways)], bool(k % 3), activations[k % len(activations)], k % 5 < 2)
        for k, step in enumerate([*sorted(STEPS), *REFUSED])
    ]
    return [
        Chain(tuple(links[k : k + 2]), READOUTS[k % 3], k % 10) for k in range(0, len(links), 2)
    ]


def random_chain(rng):
    """One or two links, some of which must be refused."""

    def link():
        step, way, activation = (
            str(rng.choice(list(each))) for each in ({**STEPS, **REFUSED}, WAYS, ACTIVATIONS)
        )
        return Link(step, way, bool(rng.integers(2)), activation, bool(rng.integers(2)))

    links = tuple(link() for _ in range(rng.integers(1, 3)))
    return Chain(links, str(rng.choice(READOUTS)), int(rng.integers(10)))


def assert_near(found, expected, chain):
    """Assert equality to the tolerance relative to the largest number,
    with non-finite numbers in equal places.
    """
    scale = np.abs(np.where(np.isfinite(expected), expected, 0)).max(initial=0)
    np.testing.assert_allclose(
        found, expected, rtol=0, atol=TOLERANCE * max(scale, 1e-3), err_msg=repr(chain)
    )


def norm(hessian):
    if not np.isfinite(hessian).all():
        return np.array(np.nan)
    return largest(hessian)


def rows_of(views, rows):
    """Views of some rows: axis 0 of outputs and inputs, axis 1 of arrays per output."""
    by_output = jax.tree.map(lambda each: each[:, rows], (views.cotangents, views.jacobians))
    first = jax.tree.map(lambda each: each[rows], (views.outputs, views.inputs))
    return type(views)(*first, *by_output)


def verdict(chain):
    """Outcome of a program, ``right`` or ``refused``; an assertion fails for a wrong one."""
    x = jnp.asarray(X)
    params = chain.params(x)
    if any(link.step in REFUSED for link in chain.links):
        try:
            kernel = empirical_ntk(chain, params, x[:2], x[1:])
        except InvalidInput:
            return "refused"
        assert_near(kernel, generic_ntk(chain, params, x[:2], x[1:]), chain)
        return "right"
    program = traced(chain, params, x)

    @jax.jit
    def both(params, x):
        """Results of the structured and of the plain route, compiled once."""
        views = program.views(program.leaves(params), x)
        left, right = (rows_of(views, rows) for rows in (slice(2), slice(1, None)))
        hessian = operator(program if program.layers else chain, params, x[-1], lambda f: f[0])
        products = jax.vmap(lambda v: hessian.matvec(hessian.project(v)))(
            jnp.eye(hessian.zero.size)
        )
        plain = generic_ntk(chain, params, x)[:2, 1:], dense_hessian(chain, params, x[-1])
        return (program.kernel(program.leaves(params), left, right), products), plain

    (kernel, small), (expected, dense) = jax.device_get(both(params, x))
    assert_near(kernel, expected, chain)
    assert_near(norm(small), norm(dense), chain)
    return "right"


# Every fourth is quick.
IN_TIERS = [
    pytest.param(
        chain,
        id=", ".join(link.step for link in chain.links),
        marks=pytest.mark.slow if k % 4 else [],
    )
    for k, chain in enumerate(sample())
]


@pytest.mark.slow
@pytest.mark.sampled(8)  # pairs of steps
@pytest.mark.first_cases(1)  # each program compiles its oracle
@pytest.mark.parametrize("chain", IN_TIERS)
def test_programs_of_two_steps_are_right_or_refused(chain, x64):
    refused = any(link.step in REFUSED for link in chain.links)
    assert verdict(chain) == ("refused" if refused else "right")


@pytest.mark.sampled(8)  # random
@pytest.mark.slow
@pytest.mark.skipif(not EXHAUSTIVE, reason="make programs runs them")
@pytest.mark.parametrize("chunk", range(20))
def test_random_programs_are_right_or_refused(chunk, x64):
    rng = np.random.default_rng(chunk)
    assert {verdict(random_chain(rng)) for _ in range(50)} == {"right", "refused"}


@pytest.mark.slow  # traces every step
def test_few_steps_need_whole_jacobians(x64):
    """All parameters of the other steps are read by their uses."""
    found = set()
    for step in STEPS:
        chain = Chain((Link(step),))
        params = chain.params(jnp.asarray(X))
        program = traced(chain, params, jnp.asarray(X))
        program.kept["kernel"] = None  # analysis only, without the comparison
        if any(
            layer.kind == "jacobian" for layer in layers_of(chain, params, jnp.asarray(X)).layers
        ):
            found.add(step)
        del program.kept["kernel"]
    assert found == {"complex", "cond", "low rank", "polynomial", "switch"}
