"""Hessians at any scale of outputs and parameters scale with them, or are refused by name."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core import InvalidInput, ball_sup, hessian_density, hessian_eigenpairs, hessian_norm
from ntk_core.hessians import hessian_block_norms, smallest_eigenvalue_in_ball, vector_hessian_norm

# NumPy reports that JAX casts a literal of 1e30 to a narrower type when it folds constants.
pytestmark = [
    pytest.mark.filterwarnings("ignore:overflow encountered in cast"),
    pytest.mark.first_cases(1),
]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 3)).astype(np.float32)
PARAMS = {
    "w": RNG.standard_normal((3, 4)).astype(np.float32) / 2,
    "v": RNG.standard_normal((4, 2)).astype(np.float32),
}
SCALES = [
    (jnp.float32, 1e-30),
    (jnp.float32, 1e30),
    (jnp.float16, 1e-4),
    (jnp.float16, 1e4),
    (jnp.bfloat16, 1e-30),
    (jnp.bfloat16, 1e30),
]


def plain(params, x):
    return jnp.tanh(x @ params["w"]) @ params["v"]


def times(scale):
    """Return a function whose outputs, and so its Hessian, are multiplied."""
    return lambda params, x: plain(params, x) * jnp.asarray(scale, params["v"].dtype)


def stretched(scale):
    """Return a function of parameters in other units, with a Hessian divided by scale²."""

    def function(params, x):
        unit = jax.tree.map(lambda leaf: leaf / jnp.asarray(scale, leaf.dtype), params)
        return plain(unit, x)

    return function


def cast(tree, dtype, scale=1.0):
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype) * jnp.asarray(scale, dtype), tree)


def dense_hessian(params, x):
    """Return the Hessian of the first output, in float64."""
    with jax.enable_x64(True):
        flat, unravel = jax.flatten_util.ravel_pytree(cast(params, jnp.float64))
        rows = jnp.asarray(x, jnp.float64)[None]
        return np.asarray(jax.hessian(lambda w: plain(unravel(w), rows)[0, 0])(flat))


def rounded(tree, dtype):
    """Return the numbers of a narrower type."""
    return jax.tree.map(lambda leaf: np.asarray(jnp.asarray(leaf, dtype), np.float64), tree)


def eigenvalues(dtype):
    """Return exact eigenvalues for the given numbers in this type, by falling absolute value."""
    values = np.linalg.eigvalsh(dense_hessian(rounded(PARAMS, dtype), rounded(X[0], dtype)))
    return values[np.argsort(-np.abs(values))]


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "scale"), SCALES)
def test_norms_and_eigenpairs_scale_with_the_output(dtype, scale):
    expected = eigenvalues(dtype)
    tolerance = 5 * float(jnp.finfo(dtype).eps) ** 0.5 / 10
    params, x = cast(PARAMS, dtype), cast(X[0], dtype)
    norm = hessian_norm(times(scale), params, x, batched=False)
    assert norm.converged
    assert norm.value == pytest.approx(scale * abs(expected[0]), rel=tolerance)
    pairs = hessian_eigenpairs(times(scale), params, x, num_wanted=2)
    np.testing.assert_allclose(
        np.asarray(pairs.eigenvalues, np.float64) / scale, expected[:2], rtol=tolerance
    )


@pytest.mark.parametrize(("dtype", "scale"), SCALES)
def test_densities_scale_with_the_output(dtype, scale):
    """Probes as long as the space find every eigenvalue, and the moments of all together."""
    expected = eigenvalues(dtype)
    params, x = cast(PARAMS, dtype), cast(X[0], dtype)
    found = hessian_density(times(scale), params, x, num_probes=64)
    nodes = np.asarray(found.nodes, np.float64) / scale
    norm = abs(expected[0])
    rounding = max(4 * float(jnp.finfo(dtype).eps), 100 * float(jnp.finfo(jnp.float32).eps)) * norm
    for probe, weights in zip(nodes, found.weights, strict=True):
        apart = np.abs(probe[:, None] - expected)  # (nodes, eigenvalues)
        assert apart.min(0).max() <= rounding  # each eigenvalue has a node
        assert apart.min(1)[weights > 1e-3].max() <= rounding  # each node is an eigenvalue
    np.testing.assert_allclose(found.weights.sum(1), 1, rtol=1e-5)
    for order in (1, 2, 3, 4):
        each = np.sum(found.weights * nodes**order, axis=1)
        error = np.std(each, ddof=1) / np.sqrt(len(each))
        assert each.mean() == pytest.approx(
            np.sum(expected**order) / found.dimension, abs=4 * error
        )


@pytest.mark.long  # computes a density without compilation
def test_equal_eigenvalues_share_the_weight_of_a_density():
    """Three eigenvalues of this space are zero; without compilation they round differently."""
    found = hessian_density(plain, PARAMS, X[0])
    with jax.disable_jit():
        other = hessian_density(plain, PARAMS, X[0])
    norm = np.abs(found.nodes).max()
    at_zero = np.abs(found.nodes) < 1e-5 * norm
    assert (at_zero.sum(1) >= 2).all()
    assert found.weights[at_zero].max() > 1e-2
    np.testing.assert_allclose(found.weights, other.weights, atol=1e-4)


@pytest.mark.parametrize("scale", [1e-10, 1e10])
def test_norms_scale_with_the_units_of_parameters(scale):
    params = cast(PARAMS, jnp.float32, scale)
    found = hessian_norm(stretched(scale), params, X[0], batched=False)
    assert found.value == pytest.approx(abs(eigenvalues(jnp.float32)[0]) / scale**2, rel=1e-4)


CALLS = {
    "norm": lambda f, w: hessian_norm(f, w, X[0], batched=False),
    "norms": lambda f, w: hessian_norm(f, w, X, batched=True),
    "eigenpairs": lambda f, w: hessian_eigenpairs(f, w, X[0], num_wanted=2),
    "density": lambda f, w: hessian_density(f, w, X[0], num_probes=1),
    "blocks": lambda f, w: hessian_block_norms(f, w, X[0]),
    "all outputs": lambda f, w: vector_hessian_norm(f, w, X[0]),
    "ball": lambda f, w: ball_sup(f, w, X[0], 0.1, num_starts=1, num_steps=1),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_hessians_beyond_their_type_are_refused(call, scale):
    with pytest.raises(InvalidInput, match="second derivatives around 1e"):
        CALLS[call](stretched(scale), cast(PARAMS, jnp.float32, scale))


def gated(params, x):
    """A closed gate beside a bias around 1e-30: second derivatives around 1e45 in both alone."""
    moved = jnp.tanh(x @ params["w"] + params["b"] / 1e-30)
    return (x @ params["w"] + params["gate"] * moved) @ params["v"] * 1e15


GATED = {**PARAMS, "b": np.float32([3e-31] * 4), "gate": np.zeros(4, np.float32)}


@pytest.mark.parametrize("call", CALLS)
def test_closed_gates_beside_small_parameters_are_refused(call):
    """The gate has no size of its own, and a step of 1 makes the product infinite."""
    assert np.isfinite(gated(GATED, X)).all()
    with pytest.raises(InvalidInput, match=r"second derivatives around 1e4[456]"):
        CALLS[call](gated, GATED)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("scale", [3e36, 1e38])
def test_norms_near_the_largest_number_are_right_or_refused(call, scale):
    """A + Aᵀ of numbers above 1.7e38 is infinite in float32."""
    if scale > 1e37:
        with pytest.raises(InvalidInput, match="second derivatives around 1e38"):
            CALLS[call](times(scale), PARAMS)
        return
    found = CALLS[call](times(scale), PARAMS)
    (name,) = [each for each in ("value", "eigenvalues", "nodes", "values") if hasattr(found, each)]
    largest = np.max(np.abs(np.asarray(getattr(found, name), np.float64)))
    plain_result = CALLS[call](plain, PARAMS)
    expected = np.max(np.abs(np.asarray(getattr(plain_result, name), np.float64)))
    assert largest / scale == pytest.approx(expected, rel=1e-3)


@pytest.mark.long_after(2)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize("call", CALLS)
def test_small_outputs_are_refused_for_their_size(call, dtype):
    """The check of the program finds rounding only and must not call that a fault."""
    with pytest.raises(InvalidInput, match="second derivatives around 1e-3"):
        CALLS[call](times(1e-37), cast(PARAMS, dtype))


@pytest.mark.parametrize("call", CALLS)
def test_saturated_networks_have_no_curvature(call):
    """Inputs around 1e30 saturate tanh, so that the output is linear in the last layer."""

    def function(params, x):
        return plain(params, x * jnp.float32(1e30))

    found = CALLS[call](function, PARAMS)
    (name,) = [each for each in ("value", "eigenvalues", "nodes", "values") if hasattr(found, each)]
    assert np.abs(np.asarray(getattr(found, name))).max(initial=0.0) == 0


def test_seeds_within_range_remain_beside_others():
    def logarithm(params, x):  # second derivatives −1/w²
        return x @ jnp.log(jnp.abs(params["w"]))

    seeds = [{"w": jnp.full((3, 1), size)} for size in (1e-30, 1.0)]
    found = hessian_norm(logarithm, seeds, X[0], batched=False)
    assert np.isfinite(found.value).tolist() == [False, True]
    assert found.converged.tolist() == [False, True]


def test_linear_functions_have_no_hessian_at_any_scale():
    for scale in (1e-30, 1.0, 1e30):
        found = hessian_norm(
            lambda params, x, s=scale: (x @ params["w"]) * s, PARAMS, X[0], batched=False
        )
        assert (found.value, bool(found.converged)) == (0.0, True)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_balls_scale_with_the_output(scale):
    options: dict[str, Any] = {"num_starts": 1, "num_steps": 3, "max_further_steps": 0}
    expected = ball_sup(plain, PARAMS, X[0], 0.5, **options)
    found = ball_sup(times(scale), PARAMS, X[0], 0.5, **options)
    assert expected.value > 1.01 * expected.at_center  # the ascent finds more than the center
    assert found.value / scale == pytest.approx(expected.value, rel=1e-3)
    np.testing.assert_allclose(found.ascent / scale, expected.ascent, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_balls_of_kernels_scale_with_the_output(scale):
    options: dict[str, Any] = {"num_starts": 1, "num_steps": 2, "max_further_steps": 0}
    expected = ball_sup(plain, PARAMS, X, 0.5, "kernel", **options)
    found = ball_sup(times(scale), PARAMS, X, 0.5, "kernel", **options)
    assert found.value == pytest.approx(expected.value, rel=1e-3)
    least = smallest_eigenvalue_in_ball(plain, PARAMS, X, 0.1, num_starts=1, num_steps=2)
    scaled = smallest_eigenvalue_in_ball(times(scale), PARAMS, X, 0.1, num_starts=1, num_steps=2)
    assert scaled.value / scale**2 == pytest.approx(least.value, rel=1e-3)
