"""Lanczos against matrices with a prescribed spectrum."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.hessians._lanczos import _orthogonal, lanczos_extreme, lanczos_quadrature

SPECTRA = {
    "separated": np.linspace(1, 2, 60) ** 8,
    "both signs, negative wins": np.concatenate([np.linspace(-3, -1, 20) ** 3, np.linspace(0.1, 20, 40)]),
    "plus and minus pairs": np.concatenate([np.geomspace(1, 1e-3, 30), -np.geomspace(1, 1e-3, 30)]),
    "low rank": np.concatenate([[5.0, -4.0, 3.0], np.zeros(57)]),
    "rising over nine decades": np.geomspace(1e-9, 1, 60),
}


def with_spectrum(spectrum, seed=0):
    dense = np.random.default_rng(seed).normal(size=(len(spectrum), len(spectrum)))
    q, _ = np.linalg.qr(dense)
    return jnp.asarray(q * spectrum @ q.T)


def start_of(size, seed=1):
    return jax.random.normal(jax.random.key(seed), (size,))


def spare_of(size):
    return start_of(size, seed=2)


def largest(spectrum, k=1):
    return spectrum[np.argsort(-np.abs(spectrum), kind="stable")][:k]


def extreme_of_scaled(scale: float):
    """The leading eigenvalue of ``scale`` times a matrix of norm 2, in float32."""
    rng = np.random.default_rng(0)
    basis, _ = np.linalg.qr(rng.normal(size=(40, 40)))
    matrix = jnp.asarray((basis * np.linspace(-1, 2, 40)) @ basis.T, jnp.float32)
    start, spare = jax.random.normal(jax.random.key(0), (2, 40), jnp.float32)
    return lanczos_extreme(lambda v: jnp.float32(scale) * (matrix @ v), start, spare, max_steps=40, tolerance=1e-3)


@pytest.mark.parametrize(("rows", "num_rows"), [(5, 5), (19, 1), (19, 8), (19, 9), (19, 17), (19, 19)])
def test_a_vector_loses_its_part_in_the_rows_that_are_there(rows, num_rows, x64):
    """Blocks of eight rows: less than one, one, more than one, and a last one beyond the end."""
    orthonormal = np.linalg.qr(np.random.default_rng(0).standard_normal((40, rows)))[0].T
    basis = orthonormal * (np.arange(rows) < num_rows)[:, None]
    w = np.asarray(start_of(40))
    found = jax.jit(_orthogonal)(jnp.asarray(w), jnp.asarray(basis), jnp.asarray(num_rows))
    np.testing.assert_allclose(found, w - basis.T @ (basis @ w), rtol=0, atol=1e-14)  # sums of 40 numbers of order one


@pytest.mark.parametrize("name", SPECTRA)
def test_prescribed_spectrum_is_found_to_root_eps(name, x64):
    spectrum = SPECTRA[name]
    matrix = with_spectrum(spectrum)
    tolerance = np.finfo(float).eps ** 0.5
    found = lanczos_extreme(matrix.__matmul__, start_of(60), spare_of(60), max_steps=60, tolerance=tolerance)
    assert found.converged
    # an eigenvalue's error is at most its residual, which is √eps of the norm at the stop
    assert abs(abs(found.values[0]) - np.max(np.abs(spectrum))) <= tolerance * np.max(np.abs(spectrum))


@pytest.mark.parametrize("name", SPECTRA)
def test_stated_residual_is_the_residual_of_the_vector_found(name, x64):
    matrix = with_spectrum(SPECTRA[name])
    found = lanczos_extreme(matrix.__matmul__, start_of(60), spare_of(60), max_steps=9, tolerance=1e-12)
    y = found.vectors[0]
    actual = jnp.linalg.norm(matrix @ y - found.values[0] * y)
    scale = np.max(np.abs(SPECTRA[name]))
    assert float(jnp.linalg.norm(y)) == pytest.approx(1, rel=1e-12)
    assert float(found.residuals[0]) == pytest.approx(float(actual), abs=1e-12 * scale)


def test_leading_eigenpairs_of_both_signs_come_in_order(x64):
    spectrum = SPECTRA["both signs, negative wins"]
    matrix = with_spectrum(spectrum)
    found = lanczos_extreme(matrix.__matmul__, start_of(60), spare_of(60), max_steps=60, tolerance=1e-10, num_wanted=5)
    np.testing.assert_allclose(found.values, largest(spectrum, 5), rtol=1e-10)
    np.testing.assert_allclose(found.vectors @ found.vectors.T, np.eye(5), atol=1e-10)


def test_repeated_eigenvalues_survive_invariant_subspaces(x64):
    spectrum = np.array([2.0, 2.0, 2.0, 1.0, 1.0, 0.5] + [0.0] * 6)
    matrix = with_spectrum(spectrum)
    found = lanczos_extreme(matrix.__matmul__, start_of(12), spare_of(12), max_steps=12, tolerance=1e-10, num_wanted=6)
    # the first Krylov space has one copy of each distinct eigenvalue; random restarts find the others
    assert float(found.values[0]) == pytest.approx(2, rel=1e-12)
    assert np.sum(np.isclose(found.values, 2)) >= 2


def test_zero_matrix_has_norm_zero_and_converges(x64):
    found = lanczos_extreme(jnp.zeros_like, start_of(20), spare_of(20), max_steps=20, tolerance=1e-8)
    assert found.converged
    assert found.values[0] == 0
    assert np.all(np.isfinite(found.vectors))


@pytest.mark.parametrize("scale", [1.0, 1e-18, 1e-20, 1e-30])
def test_small_matrices_keep_their_norm_in_single_precision(scale):
    """Squares of entries below 1e-19 underflow in float32, but the entries do not."""
    found = extreme_of_scaled(scale)
    assert found.converged
    assert abs(float(found.values[0]) / scale - 2) < 1e-3


def test_underflowing_norm_never_converges():
    found = extreme_of_scaled(1e-36)
    assert float(found.values[0]) != 0
    assert not found.converged


def test_too_few_steps_are_unconverged(x64):
    matrix = with_spectrum(SPECTRA["plus and minus pairs"])
    found = lanczos_extreme(matrix.__matmul__, start_of(60), spare_of(60), max_steps=3, tolerance=1e-8)
    assert not found.converged
    assert found.num_steps == 3
    assert found.residuals[0] > 1e-8 * abs(found.values[0])


def test_projected_iteration_sees_only_the_subspace(x64):
    matrix = jnp.diag(jnp.arange(1.0, 13.0))
    kept = jnp.arange(12) < 5

    def project(v):
        return jnp.where(kept, v, 0)

    found = lanczos_extreme(
        lambda v: project(matrix @ v),
        project(start_of(12)),
        spare_of(12),
        max_steps=12,
        tolerance=1e-12,
        project=project,
    )
    assert float(found.values[0]) == pytest.approx(5, rel=1e-12)


@pytest.mark.parametrize("num_steps", [1, 4, 9])
def test_quadrature_reproduces_moments_below_twice_its_steps(num_steps, x64):
    matrix = with_spectrum(SPECTRA["both signs, negative wins"] / 27)
    start = start_of(60)
    v = start / jnp.linalg.norm(start)
    nodes, weights = lanczos_quadrature(matrix.__matmul__, start, spare_of(60), num_steps=num_steps)
    for order in range(2 * num_steps):
        exact = v @ jnp.linalg.matrix_power(matrix, order) @ v
        assert float(weights @ nodes**order) == pytest.approx(float(exact), abs=1e-12)  # eigenvalues are at most 1
