"""Depth against width: K(x, x) drawn without weights against network passes,
3/m and the general formula.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from linearity_lab.experiments.depth_width.compute import layer_by_layer, stacked
from linearity_lab.experiments.depth_width.point import GAIN, DepthWidthSpec
from linearity_lab.experiments.depth_width.random_kernels import (
    MOST_OF_ONE,
    limit_moment,
    random_kernels,
    scatter,
    second_moment,
)
from linearity_lab.runs import run_summary
from linearity_lab.settings.grammar import with_settings
from ntk_core.hessians import hessian_norm
from ntk_core.kernels import empirical_ntk
from ntk_core.networks.architectures import FullyConnected
from tests.running import result_of

DIMENSION = 4


def noise_of(params, x: np.ndarray) -> Iterator[np.ndarray]:
    """Normal numbers equivalent to these weights, from plain passes.

    z / √(2 q), then v, then Wᵀδ / |δ|.
    """
    *hidden, output = [np.asarray(layer["weight"]) for layer in params.values()]
    a, before = x, []
    for weights in hidden:
        z = math.sqrt(2 / len(a)) * (a @ weights)
        yield z / math.sqrt(2 * (a @ a) / len(a))
        before.append(z)
        a = np.maximum(z, 0)
    yield output[:, 0]
    delta = output[:, 0] * (before[-1] > 0) / math.sqrt(len(a))
    for layer in range(len(hidden) - 1, 0, -1):
        back = hidden[layer] @ delta
        yield back / np.linalg.norm(delta)
        delta = math.sqrt(2 / len(delta)) * back * (before[layer - 1] > 0)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("depth", "width"), [(1, 3), (2, 8), (5, 16)])
def test_kernels_drawn_without_weights_equal_those_of_weights(depth, width):
    net = FullyConnected(
        width=width, depth=depth, num_outputs=1, activation="relu", use_bias=False, gain=GAIN
    )
    x = np.random.default_rng(1).standard_normal(DIMENSION)
    x *= math.sqrt(DIMENSION) / np.linalg.norm(x)
    drawn = [net.init(jax.random.key(seed), (DIMENSION,)) for seed in range(4)]
    expected = [
        float(empirical_ntk(net, params, jnp.asarray(x)[None])[0, 0, 0, 0]) for params in drawn
    ]
    rows = zip(*(noise_of(params, x) for params in drawn), strict=True)
    found = random_kernels(
        depth, width, len(drawn), lambda shape: np.stack(next(rows)).reshape(shape)
    )
    assert found == pytest.approx(expected, rel=1e-12)  # rounding


@pytest.mark.parametrize("width", [2, 64])
def test_one_hidden_layer_has_three_over_m(width):
    """X = 1(z > 0)(z² + v²) has E X = 1 and E X² = 4 by the moments 1 and 3 of a
    normal number: CV² = 3/m.
    """
    first, second = (1 + 1) / 2, (3 + 2 + 3) / 2
    exact = (second - first**2) / first**2 / width
    assert exact == 3 / width
    assert second_moment(1, width) == pytest.approx(1 + exact, rel=1e-14)
    kernels = random_kernels(1, width, 200_000 // width, np.random.default_rng(0).standard_normal)
    groups = [group.var(ddof=1) / 4 for group in np.array_split(kernels, 20)]  # E K = L + 1 = 2
    error = np.std(groups, ddof=1) / math.sqrt(len(groups))
    assert abs(np.mean(groups) - exact) < 4 * error
    assert error < 0.1 * exact


@pytest.mark.parametrize(("depth", "width"), [(2, 32), (8, 64)])
def test_deep_networks_have_the_derived_moments(depth, width):
    kernels = random_kernels(
        depth, width, 6000, np.random.default_rng([depth, width]).standard_normal
    )
    assert abs(kernels.mean() - (depth + 1)) < 4 * kernels.std() / math.sqrt(len(kernels))
    ratios = [(group**2).mean() / (depth + 1) ** 2 for group in np.array_split(kernels, 20)]
    error = np.std(ratios, ddof=1) / math.sqrt(len(ratios))
    # L terms of order 1/m² are omitted, with coefficients of some units.
    assert abs(np.mean(ratios) - second_moment(depth, width)) < 4 * error + 5 * depth / width**2


def test_the_formula_goes_over_into_its_limit_along_beta():
    depth = 2**12
    for beta in (0.01, 0.25, 1.0, 2.0):  # the relative error is of order 1/L + 1/m
        found, limit = second_moment(depth, round(depth / beta)), limit_moment(beta)
        assert math.log(found) == pytest.approx(math.log(limit), rel=0.01)
    assert limit_moment(0.0) == 1
    assert limit_moment(0.99e-4) - 1 == pytest.approx(
        (limit_moment(1.01e-4) - 1) * 0.99 / 1.01, rel=1e-3
    )


def test_a_dead_layer_gives_a_kernel_of_zero():
    kernels = random_kernels(6, 1, 500, np.random.default_rng(0).standard_normal)
    assert np.isfinite(kernels).all()
    # F = 0 unless every neuron is on; parts below a live layer vanish with δ.
    assert 0.5 < (kernels == 0).mean() < 1


def test_interval_equals_resampling_and_reports_a_dominant_run():
    random = np.random.default_rng(0)
    normal = scatter(10 + random.standard_normal(2000), random)
    assert normal.low < normal.cv_squared < normal.high
    # The variance of n normal numbers has the relative error √(2/n).
    assert (normal.high - normal.low) / normal.cv_squared == pytest.approx(
        2 * 1.96 * math.sqrt(2 / 2000), rel=0.2
    )
    assert normal.largest_share < 0.01
    tail = scatter(np.array([*np.ones(100), 50.0]), random)
    assert tail.largest_share > MOST_OF_ONE
    assert math.isnan(scatter(np.zeros(20), random).cv_squared)


@pytest.mark.slow  # compiles a deep Hessian twice
@pytest.mark.usefixtures("x64")
def test_loop_over_layers_has_the_same_hessian():
    net = FullyConnected(
        width=6, depth=4, num_outputs=1, activation="relu", use_bias=False, gain=GAIN
    )
    params = net.init(jax.random.key(0), (DIMENSION,))
    x = jax.random.normal(jax.random.key(1), (2, DIMENSION))
    assert np.asarray(layer_by_layer(stacked(params), x)) == pytest.approx(
        np.asarray(net.apply(params, x)), rel=1e-12
    )
    expected = hessian_norm(net, params, x, tolerance=1e-10)
    found = hessian_norm(layer_by_layer, stacked(params), x, tolerance=1e-10)
    assert found.converged.all()
    assert found.value == pytest.approx(expected.value, rel=1e-8)


FEW = {
    "depths": [1, 3],
    "widths": [8],
    "num_kernels": 200,
    "num_seeds": 1,
    "trained_depth": 3,
    "hessian_depth": 1,
}
SHORT = {"dataset.num_samples": 4, "training.max_steps": 20, "training.num_records": 3}
SMALL = with_settings(DepthWidthSpec(), {**FEW, **SHORT})


def test_a_run_draws_every_pair_and_trains_the_small_ones():
    result = result_of(SMALL)
    shallow, deep = result.points
    for point in (shallow, deep):
        assert point.num_kernels == 200
        assert point.mean == pytest.approx(point.depth + 1, rel=0.5)
        assert point.low < point.cv_squared < point.high
        (trained,) = point.runs
        assert trained.sup_change > 0
    assert shallow.runs[0].hessian_converged
    assert shallow.runs[0].hessian > 0
    assert math.isnan(deep.runs[0].curvature)
    assert [row["hessian"] is None for row in result.rows()] == [False, True]
    assert "CV² of K" in run_summary(SMALL, result.points)
    again = result_of(SMALL.model_copy(update={"depths": (3,), "trained_depth": 0}))
    (alone,) = again.points
    assert alone.runs == ()
    assert again.rows()[0]["sup_change"] is None
    assert alone.cv_squared == deep.cv_squared  # draws of a pair do not depend on other pairs
