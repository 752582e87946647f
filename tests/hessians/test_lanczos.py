"""Lanczos, compiled as one program or around a compiled product,
against matrices with a prescribed spectrum.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.hessians._host_lanczos import leading
from ntk_core.hessians._lanczos import _orthogonal, lanczos_extreme, lanczos_quadrature

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

SPECTRA = {
    "separated": np.linspace(1, 2, 60) ** 8,
    "both signs, negative wins": np.concatenate(
        [np.linspace(-3, -1, 20) ** 3, np.linspace(0.1, 20, 40)]
    ),
    "plus and minus pairs": np.concatenate([np.geomspace(1, 1e-3, 30), -np.geomspace(1, 1e-3, 30)]),
    "low rank": np.concatenate([[5.0, -4.0, 3.0], np.zeros(57)]),
    "rising over nine decades": np.geomspace(1e-9, 1, 60),
    "zero": np.zeros(20),
    "multiple of the identity": np.full(30, 3.0),
}
ROOT_EPS = {dtype: float(np.finfo(dtype).eps) ** 0.5 for dtype in (np.float64, np.float32)}


class Found(NamedTuple):
    value: float
    residual: float
    converged: bool
    num_products: int


def in_one_program(matrix, max_steps, tolerance, seed=1):
    start, spare = (start_of(len(matrix), each).astype(matrix.dtype) for each in (seed, 2))
    product = jnp.asarray(matrix).__matmul__
    found = lanczos_extreme(product, start, spare, max_steps=max_steps, tolerance=tolerance)
    return Found(
        float(found.values[0]),
        float(found.residuals[0]),
        bool(found.converged),
        int(found.num_steps),
    )


def around_a_product(matrix, max_steps, tolerance, seed=1):
    start = np.asarray(start_of(len(matrix), seed), matrix.dtype)
    return Found(*leading(lambda v: (v, matrix @ v), start, max_steps, tolerance))


def with_spectrum(spectrum, dtype=np.float64, scale=1.0):
    q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(len(spectrum), len(spectrum))))
    return (q * spectrum @ q.T).astype(dtype) * dtype(scale)


def start_of(size, seed=1):
    return jax.random.normal(jax.random.key(seed), (size,))


both = pytest.mark.parametrize("method", [in_one_program, around_a_product])


@both
@pytest.mark.parametrize(("dtype", "scale"), [(np.float64, 1.0), (np.float32, 1e-30)])
def test_prescribed_spectrum_is_found_to_root_eps(method, dtype, scale, x64):
    """Squares of entries below 1e-19 underflow in float32, but the entries do not."""
    tolerance = ROOT_EPS[dtype]
    for name, spectrum in SPECTRA.items():
        found = method(with_spectrum(spectrum, dtype, scale), len(spectrum), tolerance)
        norm = np.max(np.abs(spectrum)) * scale
        assert found.converged, name
        # an eigenvalue's error is at most its residual; only rounding puts it above the norm
        assert abs(abs(found.value) - norm) <= tolerance * norm, name
        assert abs(found.value) <= norm * (1 + 60 * np.finfo(dtype).eps), name


@both
@pytest.mark.parametrize("seed", [206, 281, 322, 346])
def test_the_smaller_end_waits_for_one_that_may_be_larger(method, seed, x64):
    """From these starts 1.1 reaches its residual first.

    The other end with its residual still allows more.
    """
    spectrum = np.concatenate([np.linspace(-0.9, 0.9, 98), [1.1, -1.2]])
    found = method(with_spectrum(spectrum), 100, 0.05, seed)
    assert found.converged
    assert abs(found.value + 1.2) <= 0.05 * 1.2


@pytest.mark.slow
@both
def test_residual_bounds_the_distance_before_convergence(method, x64):
    for name, spectrum in SPECTRA.items():
        for most in (1, 9):
            found = method(with_spectrum(spectrum), most, 1e-12)
            assert np.min(np.abs(spectrum - found.value)) <= found.residual + 1e-12 * np.max(
                np.abs(spectrum)
            ), name
            assert found.converged == (found.residual <= 1e-12 * abs(found.value))
            assert found.num_products <= most


@both
def test_underflowing_norm_never_converges(method):
    found = method(with_spectrum(np.linspace(-1, 2, 40), np.float32, 1e-36), 40, 1e-3)
    assert found.value != 0
    assert not found.converged


def test_directions_outside_the_space_end_the_iteration():
    start, kept = start_of(30), np.arange(30) < 2
    projected = leading(
        lambda v: (v * kept, v * kept * np.arange(1.0, 31)), np.asarray(start, float), 9, 1e-8
    )
    assert projected.converged
    assert projected.value == pytest.approx(2, rel=1e-12)
    assert leading(lambda v: (0 * v, 0 * v), np.asarray(start), 9, 1e-8) == (0, 0, True, 1)


@pytest.mark.parametrize(
    ("rows", "num_rows"), [(5, 5), (19, 1), (19, 8), (19, 9), (19, 17), (19, 19)]
)
def test_a_vector_loses_its_part_in_the_rows_that_are_there(rows, num_rows, x64):
    """Blocks of eight rows: less than one, one, more than one, and a last one beyond the end."""
    orthonormal = np.linalg.qr(np.random.default_rng(0).standard_normal((40, rows)))[0].T
    basis = orthonormal * (np.arange(rows) < num_rows)[:, None]
    w = np.asarray(start_of(40))
    found = jax.jit(_orthogonal)(jnp.asarray(w), jnp.asarray(basis), jnp.asarray(num_rows))
    # Sums of 40 numbers of order one.
    np.testing.assert_allclose(found, w - basis.T @ (basis @ w), rtol=0, atol=1e-14)


def test_leading_eigenpairs_of_both_signs_come_in_order(x64):
    spectrum = SPECTRA["both signs, negative wins"]
    matrix = jnp.asarray(with_spectrum(spectrum))
    asked = {"max_steps": 60, "tolerance": 1e-10, "num_wanted": 5}
    found = lanczos_extreme(matrix.__matmul__, start_of(60), start_of(60, 2), **asked)
    np.testing.assert_allclose(
        found.values, spectrum[np.argsort(-np.abs(spectrum))][:5], rtol=1e-10
    )
    np.testing.assert_allclose(found.vectors @ found.vectors.T, np.eye(5), atol=1e-10)
    np.testing.assert_allclose(matrix @ found.vectors.T, found.vectors.T * found.values, atol=1e-7)


def test_repeated_eigenvalues_survive_invariant_subspaces(x64):
    matrix = jnp.asarray(with_spectrum(np.array([2.0, 2.0, 2.0, 1.0, 1.0, 0.5] + [0.0] * 6)))
    asked = {"max_steps": 12, "tolerance": 1e-10, "num_wanted": 6}
    found = lanczos_extreme(matrix.__matmul__, start_of(12), start_of(12, 2), **asked)
    # the first Krylov space has one copy of each distinct eigenvalue; random restarts find the
    # others
    assert float(found.values[0]) == pytest.approx(2, rel=1e-12)
    assert np.sum(np.isclose(found.values, 2)) >= 2


def test_projected_iteration_sees_only_the_subspace(x64):
    def project(v):
        return jnp.where(jnp.arange(12) < 5, v, 0)

    asked = {"max_steps": 12, "tolerance": 1e-12, "project": project}
    found = lanczos_extreme(
        lambda v: project(jnp.arange(1.0, 13.0) * v),
        project(start_of(12)),
        start_of(12, 2),
        **asked,
    )
    assert float(found.values[0]) == pytest.approx(5, rel=1e-12)


@pytest.mark.parametrize("num_steps", [1, 4, 9])
def test_quadrature_reproduces_moments_below_twice_its_steps(num_steps, x64):
    matrix = jnp.asarray(with_spectrum(SPECTRA["both signs, negative wins"] / 27))
    start = start_of(60)
    v = start / jnp.linalg.norm(start)
    nodes, weights = lanczos_quadrature(
        matrix.__matmul__, start, start_of(60, 2), num_steps=num_steps
    )
    for order in range(2 * num_steps):
        exact = v @ jnp.linalg.matrix_power(matrix, order) @ v
        # Eigenvalues are at most 1.
        assert float(weights @ nodes**order) == pytest.approx(float(exact), abs=1e-12)
