"""The number of rows: functions of len(x), one row, and small outputs beside large ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from ntk_core import kernel_change_between
from ntk_core.errors import InvalidInput
from ntk_core.hessians import hessian_norm
from ntk_core.kernels import empirical_ntk
from ntk_core.linearity import linearity_report
from ntk_core.traced import layers_of
from ntk_core.traced._check import checked
from ntk_core.traced._trace import Independence, traced_batch
from tests.plain_derivatives import normal, plain_kernel

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

P = normal(w=(3, 6), v=(6, 2), pos=(9, 6))
X = np.random.default_rng(1).standard_normal((4, 3))


def hidden(p, x):
    return jnp.tanh(x @ p["w"])


def repeated(p, x):
    return lax.fori_loop(0, len(x), lambda _, a: 0.9 * a, hidden(p, x)) @ p["v"]


# Each is a function of len(x), which is 1 for a single row.
BY_SIZE = {
    "positions": lambda p, x: (hidden(p, x) + p["pos"][: len(x)]) @ p["v"],
    "one position": lambda p, x: (hidden(p, x) + p["pos"][len(x)]) @ p["v"],
    "columns": lambda p, x: hidden(p, x)[:, : len(x)].sum(1, keepdims=True) @ p["v"][:1],
    "loop": repeated,
    "top_k": lambda p, x: lax.top_k(hidden(p, x), len(x))[0].sum(1, keepdims=True) @ p["v"][:1],
    "power": lambda p, x: (hidden(p, x) ** (2 * len(x))) @ p["v"],
    "mean": lambda p, x: (hidden(p, x) + x.sum(1, keepdims=True) / len(x)) @ p["v"],
    "arange": lambda p, x: (hidden(p, x) + jnp.arange(len(x))[:, None]) @ p["v"],
    "sum of ones": lambda p, x: (hidden(p, x) * jnp.ones((len(x), 6)).sum(0)) @ p["v"],
    "sum of copies": lambda p, x: (
        jnp.broadcast_to(hidden(p, x)[:, None], (len(x), len(x), 6)).sum(1) @ p["v"]
    ),
    "tiled": lambda p, x: jnp.tile(hidden(p, x), (1, len(x))).sum(1, keepdims=True) @ p["v"][:1],
    "padded": lambda p, x: (
        jnp.cumsum(jnp.pad(hidden(p, x), ((0, 0), (len(x), 0))), 1)[:, :6] @ p["v"]
    ),
    "product of ones": lambda p, x: (
        (jnp.ones((6, len(x))) @ jnp.ones((len(x), 6)) @ hidden(p, x).T).T @ p["v"]
    ),
    "window": lambda p, x: (
        lax.reduce_window(hidden(p, x), 0.0, lax.add, (1, len(x)), (1, 1), "SAME") @ p["v"]
    ),
}
SQUARE = np.arange(36.0).reshape(6, 6) / 36


def rows_or_columns(p, x):
    """Two axes of equal size: along which one a vector is repeated depends on the
    size of the batch.
    """
    gain = p["pos"][0]
    several = jnp.broadcast_to(gain[:, None], (6, 6))
    one = jnp.broadcast_to(gain[None, :], (6, 6))
    return hidden(p, x) @ (several if len(x) > 1 else one) @ p["v"]


def repeated_or_tiled(p, x):
    gain = p["pos"][0]
    several = jnp.repeat(gain, 6).reshape(6, 6)
    one = jnp.tile(gain, 6).reshape(6, 6)
    return hidden(p, x) @ (several if len(x) > 1 else one) @ p["v"]


def along_one_of_two_axes(p, x):
    h = hidden(p, x)
    copies = h[:, :, None] if len(x) > 1 else h[:, None, :]
    return (jnp.broadcast_to(copies, (len(x), 6, 6)) * SQUARE).sum(1) @ p["v"]


def branch_in_a_call(p, x):
    @jax.jit
    def inner(h):
        copies = h[:, :, None] if len(h) > 1 else h[:, None, :]
        return (jnp.broadcast_to(copies, (len(h), 6, 6)) * SQUARE).sum(1)

    return inner(hidden(p, x)) @ p["v"]


BY_SIZE["rows or columns"] = rows_or_columns
BY_SIZE["repeated or tiled"] = repeated_or_tiled
BY_SIZE["along one of two axes"] = along_one_of_two_axes
BY_SIZE["branch in a call"] = branch_in_a_call
# Rows are independent, and the size of the batch occurs.
INDEPENDENT = {
    "repeated heads": lambda p, x: (
        jnp.repeat(hidden(p, x).reshape(len(x), 2, 3), 2, 1).reshape(len(x), 12)[:, :6] @ p["v"]
    ),
    "flattened": lambda p, x: (
        (jnp.tanh(x[:, None] + np.arange(4.0)[:, None]).reshape(len(x) * 4, 3) @ p["w"])
        .reshape(len(x), 4, 6)
        .sum(1)
        @ p["v"]
    ),
    "zeros": lambda p, x: (jnp.zeros((len(x), 6)) + hidden(p, x)) @ p["v"],
    "reshaped": lambda p, x: hidden(p, x).reshape(len(x), 2, 3).reshape(len(x), -1) @ p["v"],
    "carry": lambda p, x: (
        lax.scan(lambda h, _: (jnp.tanh(h + hidden(p, x)), None), jnp.zeros((len(x), 6)), None, 2)[
            0
        ]
        @ p["v"]
    ),
    # As attention of PyTorch: (positions, rows, features), and rows beside heads.
    "positions first": lambda p, x: (
        (jnp.tanh(x[:, None] + np.arange(4.0)[:, None]).transpose(1, 0, 2).reshape(-1, 3) @ p["w"])
        .reshape(4, len(x) * 2, 3)
        .transpose(1, 0, 2)
        .reshape(len(x), 2, 4, 3)
        .sum(2)
        .reshape(len(x), 6)
        @ p["v"]
    ),
    "sliced": lambda p, x: hidden(p, x)[:, 1:4] @ p["v"][:3],
    "ones beside": lambda p, x: (
        jnp.concatenate([hidden(p, x)[:, :5], jnp.ones((len(x), 1))], 1) @ p["v"]
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3, 4])  # 2 outputs, 3 inputs; no dimension has size 4
def test_functions_of_the_batch_size_are_refused(size, x64):
    for name, apply in BY_SIZE.items():
        with pytest.raises(InvalidInput, match="mixes the rows"):
            print(name, np.abs(empirical_ntk(apply, P, X[:size])).max())


@pytest.mark.long
def test_batch_sizes_in_shapes_of_rows_are_proven(x64):
    for name, apply in INDEPENDENT.items():
        for size in (2, 3, 4):
            found = empirical_ntk(apply, P, X[:size])
            expected = plain_kernel(apply, P, X[:size])
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12, err_msg=name)
            checked(apply, P, jnp.asarray(X[:size]))
            batch = traced_batch(apply, P, jnp.asarray(X[:size]))
            assert batch.independence is Independence.PROVEN, name


SQUEEZED = {
    "two outputs": lambda p, x: (hidden(p, x) @ p["v"]).squeeze(),
    "one output": lambda p, x: (hidden(p, x) @ p["v"][:, :1]).squeeze(),
    "time": lambda p, x: jnp.stack([hidden(p, x) @ p["v"]] * 3, 1).squeeze(),
    "first of one": lambda p, x: (
        hidden(p, x) @ p["v"] if len(x) > 1 else (hidden(p, x) @ p["v"])[0]
    ),
    "wider": lambda p, x: jnp.tile(hidden(p, x) @ p["v"], (1, 2 if len(x) == 1 else 1)),
}


def test_outputs_of_another_shape_for_one_row_are_refused(x64):
    for apply in SQUEEZED.values():
        for measure in (
            lambda apply=apply: empirical_ntk(apply, P, X),
            lambda apply=apply: kernel_change_between(apply, P, P, X),
            lambda apply=apply: layers_of(apply, P, X),
            lambda apply=apply: hessian_norm(apply, P, X[0]),
        ):
            with pytest.raises(InvalidInput, match=r"squeeze|outputs"):
                measure()


def test_an_equal_batch_hides_no_other_row(x64):
    """Programs are reused: two functions may be equal for a batch and differ for one row."""

    def rows(p, x):
        return hidden(p, x) @ p["v"]

    def twice_alone(p, x):
        return rows(p, x) * (2 if len(x) == 1 else 1)

    moved = {name: 1.1 * leaf for name, leaf in P.items()}
    assert np.isfinite(empirical_ntk(rows, P, X)).all()
    assert np.isfinite(hessian_norm(rows, P, X[0]).value)
    for apply in (SQUEEZED["two outputs"], twice_alone):
        for measure in (
            lambda apply=apply: empirical_ntk(apply, P, X),
            lambda apply=apply: linearity_report(apply, P, moved, X),
            lambda apply=apply: hessian_norm(apply, P, X[0]),
        ):
            with pytest.raises(InvalidInput):
                measure()


def test_functions_that_fail_for_one_row_are_refused(x64):
    neighbors = np.ones((4, 4)) / 4
    with pytest.raises(InvalidInput, match=r"4 inputs that fails for one.*it reports: dot_general"):
        empirical_ntk(lambda p, x: hidden(p, neighbors @ x) @ p["v"], P, X)


@pytest.mark.parametrize(
    "fails",
    [
        lambda x: jax.lax.top_k(x[:, 0], len(x) // 2)[0][-1],
        lambda x: 1 / (len(x) - 1),
        lambda x: [1.0, 2.0][-1 if len(x) > 1 else 2],
    ],
)
def test_any_error_for_one_row_is_refused(fails, x64):
    with pytest.raises(InvalidInput, match="4 inputs that fails for one"):
        empirical_ntk(lambda p, x: hidden(p, x) @ p["v"] + 0 * fails(x), P, X)


def test_errors_of_a_function_are_refused_with_their_words():
    for kind in (NotImplementedError, RuntimeError, StopIteration, NameError, OSError):

        def broken(p, x, kind=kind):
            raise kind("no such layer")

        for measure in (
            lambda broken=broken: empirical_ntk(broken, P, X),
            lambda broken=broken: hessian_norm(broken, P, X[0]),
        ):
            with pytest.raises(InvalidInput, match=f"raises {kind.__name__}.*: no such layer"):
                measure()


def test_endless_recursion_of_a_function_is_refused():
    def endless(p, x):
        return endless(p, x)

    with pytest.raises(InvalidInput, match="raises RecursionError"):
        empirical_ntk(endless, P, X)


def mixing(p, x, large=1.0, small=1.0):
    """Two outputs, of which the small one depends on other rows."""
    a = hidden(p, x) @ p["v"]
    return jnp.stack([large * a[:, 0], small * (a[:, 1] + 0.3 * (a[:, 1] ** 2).mean())], 1)


@pytest.mark.parametrize(
    "scales", [(1e3, 1.0), (1e6, 1.0), (1e30, 1e30), (1e-30, 1e-30), (1.0, 1e-30)]
)
def test_a_small_output_that_mixes_rows_is_seen(scales):
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), P)
    x = jnp.asarray(X, jnp.float32)
    with pytest.raises(InvalidInput, match="mixes the rows"):
        empirical_ntk(lambda p, x: mixing(p, x, *scales), params, x)


def test_a_closed_gate_hides_no_mixed_rows(x64):
    def gated(p, x):
        a = hidden(p, x)
        return (a + p["gate"] ** 2 * a.mean(0)) @ p["v"]

    with pytest.raises(InvalidInput, match="mixes the rows"):
        empirical_ntk(gated, {**P, "gate": np.zeros(6)}, X)

    def on_a_domain(p, x):
        a = hidden(p, x) * jnp.sqrt(1.5 - jnp.log(p["scale"]))
        return (a + p["gate"] ** 2 * a.mean(0)) @ p["v"]

    with pytest.raises(InvalidInput, match="mixes the rows"):
        empirical_ntk(on_a_domain, {**P, "gate": np.zeros(6), "scale": np.ones(6)}, X)


@pytest.mark.slow
def test_constant_outputs_are_not_taken_for_mixed_rows():
    """The derivative of Σ softmax is rounding; a scatter prevents the proof."""
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), P)
    x = jnp.asarray(X, jnp.float32)

    def apply(p, x):
        a = jax.nn.softmax(hidden(p, x) @ p["v"])
        whole = a.sum(1, keepdims=True)
        return jnp.zeros((len(x), 3)).at[jnp.arange(len(x))].set(jnp.concatenate([a, whole], 1))

    assert empirical_ntk(apply, params, x).shape == (4, 4, 3, 3)
