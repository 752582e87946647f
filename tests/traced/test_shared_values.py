"""Values that several equations read.

Gates, skips and masks, right at weights that first calls did not show.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from ntk_core import kernel_change_between
from ntk_core.hessians import hessian_norm
from ntk_core.kernels import empirical_ntk
from ntk_core.traced import TracingDisagrees, _program, layers_of, traced
from tests.plain_derivatives import largest, normal, plain_hessian, plain_kernel

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

Apply = Callable[[Any, Any], Any]
X = np.random.default_rng(1).standard_normal((4, 3))
IMAGES = np.random.default_rng(2).standard_normal((4, 5, 5, 2))
SHAPES = {"w": (3, 6), "b": (6,), "c": (6,), "o": (6, 6), "g": (6,), "u": (6, 6), "v": (6, 2)}
PARAMS = normal(**SHAPES, k=(3, 3, 2, 6)) | {"s": np.array(0.3)}


def read_out(hidden: Apply) -> Apply:
    """Return (p, x) ↦ hidden(p, x) V, with outputs (n, 2)."""
    return lambda p, x: hidden(p, x) @ p["v"]


def in_a_call(p: Any, x: Any) -> Any:
    @jax.jit
    def block(z: Any, b: Any) -> Any:
        return jnp.tanh(z + b) + p["g"] * z

    return block(x @ p["w"], p["b"])


def in_a_scan(p: Any, x: Any) -> Any:
    def step(a: Any, w: Any) -> Any:
        z = a @ w
        return jnp.tanh(z + p["b"]) + p["g"] * z, None

    return lax.scan(step, x @ p["w"], jnp.stack([p["u"], p["o"]]))[0]


def inside_a_scan_of_one(p: Any, x: Any) -> Any:
    def step(a: Any, w: Any) -> Any:
        z = a @ w
        return jnp.tanh(z + p["b"]) + p["g"] * z, None

    return lax.scan(step, x @ p["w"], p["u"][None])[0]


def with_a_condition(p: Any, x: Any) -> Any:
    z = x @ p["w"]
    return jnp.tanh(z + p["b"]) + lax.cond(p["s"] > 5, lambda a: a, lambda a: p["g"] * a, z)


def by_rows(p: Any, x: Any) -> Any:
    def one(row: Any) -> Any:
        z = row @ p["w"]
        return jnp.tanh(z + p["b"]) + z @ p["o"]

    return jax.vmap(one)(x)


def reshaped(p: Any, x: Any) -> Any:
    z = x @ p["w"]
    heads = z.reshape(len(x), 2, 3)
    return jnp.tanh(z + p["b"]) + p["g"] * jnp.moveaxis(heads, 1, 2).reshape(len(x), 6)


def tied_weights(p: Any, x: Any) -> Any:
    return jnp.tanh(x @ p["w"] + p["b"]) + p["g"] * (x**2 @ p["w"])


def convolved(p: Any, x: Any) -> Any:
    numbers = ("NHWC", "HWIO", "NHWC")
    z = lax.conv_general_dilated(x, p["k"], (1, 1), "VALID", dimension_numbers=numbers)
    return (jnp.tanh(z + p["b"]) + p["g"] * z).mean((1, 2))


def constant_behind_a_shared_value(p: Any, x: Any) -> Any:
    z = x @ p["w"]
    return jnp.tanh(3.0 * (2.0 * z)) + p["g"] * z


def shared_product(p: Any, x: Any) -> Any:
    y = 2.0 * (x @ p["w"])
    return jnp.tanh(3.0 * y + p["b"]) + p["g"] * y


# Every function reads z = x W at least twice, or its bias has a second use. A gate of zeros hides
# the second reader.
BLOCKS: dict[str, tuple[Apply, str]] = {
    "residual": (lambda p, x: (z := x @ p["w"], jax.nn.relu(z + p["b"]) + z @ p["o"])[1], "o"),
    "gain": (lambda p, x: (z := x @ p["w"], jnp.tanh(z + p["b"]) + p["g"] * jnp.sin(z))[1], "g"),
    "self-gated": (lambda p, x: (z := x @ p["w"], z * jax.nn.sigmoid(z + p["b"]))[1], "b"),
    "gated": (lambda p, x: (z := x @ p["w"], jax.nn.silu(z + p["b"]) * (z @ p["u"]))[1], "b"),
    "three readers": (
        lambda p, x: (
            z := x @ p["w"],
            jnp.tanh(z + p["b"]) + p["g"] * z + p["c"] * jnp.cos(z),
        )[1],
        "g",
    ),
    "bias twice": (
        lambda p, x: jnp.tanh(x @ p["w"] + p["b"]) + p["g"] * jnp.sin(x @ p["w"] @ p["u"] + p["b"]),
        "g",
    ),
    "two biases": (
        lambda p, x: (z := x @ p["w"], jnp.tanh(z + p["b"]) + p["g"] * jnp.sin(z + p["c"]))[1],
        "g",
    ),
    "scaled bias": (
        lambda p, x: (z := x @ p["w"], jnp.tanh(z + 0.3 * p["b"]) + p["g"] * z)[1],
        "g",
    ),
    "subtracted": (lambda p, x: (z := x @ p["w"], jnp.tanh(p["b"] - z) + p["g"] * z)[1], "g"),
    "number as bias": (lambda p, x: (z := x @ p["w"], jnp.tanh(z + p["s"]) + p["g"] * z)[1], "g"),
    "bias multiplies": (
        lambda p, x: jnp.tanh(x @ p["w"] + p["b"]) + (x @ p["w"] @ p["o"] @ p["b"])[:, None],
        "o",
    ),
    "bias as a row": (
        lambda p, x: jnp.tanh(x @ p["w"] + p["b"]) + p["g"] * (p["b"] @ p["u"]),
        "g",
    ),
    "output": (
        lambda p, x: (
            z := x @ p["w"],
            jnp.concatenate([jnp.tanh(z + p["b"]), p["g"] * z], 1)[:, :6],
        )[1],
        "b",
    ),
    "einsum": (
        lambda p, x: (
            z := jnp.einsum("ni,ij->nj", x, p["w"]),
            jnp.tanh(z + p["b"]) + p["g"] * z,
        )[1],
        "g",
    ),
    "call": (in_a_call, "g"),
    "scan": (in_a_scan, "g"),
    "scan of one step": (inside_a_scan_of_one, "g"),
    "condition": (with_a_condition, "g"),
    "rows": (by_rows, "o"),
    "reshaped": (reshaped, "g"),
    "tied": (tied_weights, "g"),
    "convolution": (convolved, "g"),
    "constant": (constant_behind_a_shared_value, "g"),
    "shared product": (shared_product, "g"),
}


def assert_near(found: Any, expected: Any, tolerance: float = 1e-10) -> None:
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


@pytest.mark.long_after(2)
@pytest.mark.parametrize("name", BLOCKS)
def test_values_read_twice_keep_their_kernels(name, x64):
    """The first call has a closed gate; the second call reuses the program with an open one."""
    hidden, gate = BLOCKS[name]
    apply = read_out(hidden)
    x = IMAGES if name == "convolution" else X
    closed = {**PARAMS, gate: np.zeros_like(PARAMS[gate])}
    assert_near(empirical_ntk(apply, closed, x), plain_kernel(apply, closed, x))
    assert_near(empirical_ntk(apply, PARAMS, x), plain_kernel(apply, PARAMS, x))
    parts = empirical_ntk(apply, PARAMS, x, per_layer=True)
    assert_near(sum(parts.values()), plain_kernel(apply, PARAMS, x))
    kinds = {layer.name: layer.kind for layer in layers_of(apply, PARAMS, x).layers}
    matrix = "k" if name == "convolution" else "w"
    assert kinds[matrix] in ("product", "convolution"), "W needs no Jacobian"


@pytest.mark.long_after(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["residual", "self-gated", "gain", "shared product"])
def test_values_read_twice_keep_hessians_and_changes(name, x64):
    hidden, gate = BLOCKS[name]
    apply = read_out(hidden)
    closed = {**PARAMS, gate: np.zeros_like(PARAMS[gate])}
    hessian_norm(apply, closed, X[0])
    found = hessian_norm(apply, PARAMS, X[0], tolerance=1e-9).value
    assert found == pytest.approx(largest(plain_hessian(apply, PARAMS, X[0])), rel=1e-7)
    k0 = plain_kernel(apply, closed, X)
    k1 = plain_kernel(apply, PARAMS, X)
    expected = np.linalg.norm(k1 - k0) / np.linalg.norm(k0)
    assert kernel_change_between(apply, closed, PARAMS, X).change == pytest.approx(expected)


def test_a_mask_of_ones_at_first_hides_nothing(x64):
    def masked(p: Any, x: Any) -> Any:
        rows, mask = x[:, :3], x[:, 3:]
        z = rows @ p["w"]
        return (jnp.tanh(z + p["b"]) * mask + (1 - mask) * z) @ p["v"]

    for mask in (np.ones((4, 1)), np.array([[1.0], [0.0], [1.0], [0.0]])):
        x = np.concatenate([X, mask], 1)
        assert_near(empirical_ntk(masked, PARAMS, x), plain_kernel(masked, PARAMS, x))


@pytest.mark.slow
def test_checks_do_not_trust_the_first_numbers(x64, monkeypatch):
    """A kernel that is wrong for open gates alone is seen at the first call,
    whose gate is closed.
    """
    kernels = _program.Program.kernels

    def wrong(program, leaves, *views):
        gate = leaves[list(program.names.values()).index("g")]
        parts = kernels(program, leaves, *views)
        return {name: (1 + jnp.sum(gate**2)) * part for name, part in parts.items()}

    monkeypatch.setattr(_program.Program, "kernels", wrong)
    closed = {**PARAMS, "g": np.zeros(6)}
    with pytest.raises(TracingDisagrees):
        empirical_ntk(
            lambda p, x: (jnp.tanh(5 * x @ p["w"]) + p["g"] * x[:, :1]) @ p["v"], closed, X
        )


def test_checks_are_repeated_where_random_numbers_fail(x64):
    def on_a_domain(p: Any, x: Any) -> Any:
        return jnp.tanh(x @ p["w"] * jnp.sqrt(1 - jnp.log(p["s"] / 2))) @ p["v"]

    def at_one_place(p: Any, x: Any) -> Any:
        return jnp.tanh(x @ p["w"] * jnp.where(p["s"] == 0.3, 1.0, jnp.nan)) @ p["v"]

    for apply, undecided in ((on_a_domain, set()), (at_one_place, {"kernel"})):
        for _ in range(2):
            assert_near(empirical_ntk(apply, PARAMS, X), plain_kernel(apply, PARAMS, X))
        program = traced(apply, PARAMS, X)
        assert program is not None
        assert program.only_as_given == undecided
