"""Lanczos around a compiled product against matrices with a prescribed spectrum."""

import numpy as np
import pytest

from ntk_core.hessians._host_lanczos import leading
from tests.hessians.test_lanczos import SPECTRA


def found_for(spectrum, dtype=float, scale=1.0, max_matvecs=60, tolerance=None):
    """Computed eigenvalue of a matrix with this spectrum times ``scale``."""
    rng = np.random.default_rng(0)
    basis, _ = np.linalg.qr(rng.normal(size=(len(spectrum), len(spectrum))))
    matrix = ((basis * spectrum) @ basis.T).astype(dtype) * dtype(scale)
    start = rng.standard_normal(len(spectrum)).astype(dtype)
    tolerance = float(np.finfo(dtype).eps) ** 0.5 if tolerance is None else tolerance
    return leading(lambda v: (v, matrix @ v), start, max_matvecs, tolerance)


def test_prescribed_spectrum_is_found_to_root_eps():
    for dtype, scale in ((float, 1.0), (np.float32, 1.0), (np.float32, 1e-18), (np.float32, 1e-30)):
        tolerance = float(np.finfo(dtype).eps) ** 0.5
        for name, spectrum in SPECTRA.items():
            found = found_for(spectrum, dtype, scale)
            largest = np.max(np.abs(spectrum)) * scale
            assert found.converged, name
            assert found.residual <= tolerance * abs(found.value)
            # an eigenvalue's error is at most its residual; only rounding puts it above the norm
            assert abs(abs(found.value) - largest) <= tolerance * largest
            assert abs(found.value) <= largest * (1 + 60 * np.finfo(dtype).eps)


def test_residual_bounds_the_distance_before_convergence():
    for name, spectrum in SPECTRA.items():
        for most in (1, 2, 4, 9):
            found = found_for(spectrum, max_matvecs=most, tolerance=1e-12)
            nearest = np.min(np.abs(spectrum - found.value))
            assert nearest <= found.residual + 1e-12 * np.max(np.abs(spectrum)), name
            assert found.converged == (found.residual <= 1e-12 * abs(found.value))
            assert found.num_matvecs <= most


def test_an_exhausted_space_ends_the_iteration():
    """A multiple of the identity, a projection onto two dimensions, a matrix of rank one, and zero."""
    start = np.random.default_rng(1).standard_normal(30)
    kept, matrix = (np.arange(30) < 2).astype(float), np.diag(np.arange(1.0, 31))
    scaled = leading(lambda v: (v, 3 * v), start, 9, 1e-8)
    assert scaled[2:] == (True, 1)
    assert scaled.value == pytest.approx(3, rel=1e-12)
    projected = leading(lambda v: (v * kept, v * kept @ matrix), start, 9, 1e-8)
    assert projected.converged
    assert projected.value == pytest.approx(2, rel=1e-12)
    one = leading(lambda v: (v, 5 * v.mean() * np.ones(30)), start, 9, 1e-8)
    assert one.converged
    assert one.value == pytest.approx(5, rel=1e-12)
    assert leading(lambda v: (v, 0 * v), start, 9, 1e-8)[0] == 0
    assert leading(lambda v: (0 * v, 0 * v), start, 9, 1e-8) == (0, 0, True, 1)


def test_underflowing_norm_never_converges():
    found = found_for(np.linspace(-1, 2, 40), np.float32, 1e-36, tolerance=1e-3)
    assert found.value != 0
    assert not found.converged
