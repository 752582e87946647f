"""Kernels too large for memory.

Sums and products against dense kernels in float64, coverage of estimates.
"""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.errors import InvalidInput
from ntk_core.kernels import (
    KernelOperator,
    alignment,
    empirical_ntk,
    kernel_change,
    kernel_change_between,
    kernel_distance,
    kernel_regression,
)
from ntk_core.kernels._estimated import estimated_sums
from ntk_core.networks.architectures import FullyConnected
from ntk_core.traced import checked
from tests.cases import Case, inputs, random_params

CASE = Case(
    "softmax",
    FullyConnected(
        width=5, depth=2, num_outputs=2, activation="tanh", output="softmax", use_bias=True
    ),
    (3,),
)
NET, N, C = CASE.net, 7, 2


def own_function(params, x):
    """A callable, not a network, with an integer parameter."""
    return jnp.tanh(x @ params["a"]) @ params["b"] * params["step"]


def limit_of(net, params, x):
    """Memory limit for blocks of three rows (three blocks of 7).

    Views on both sides, work space, one block.
    """
    return 3 * (2 if net is NET else 4) * checked(net, params, x).row_bytes + 9 * 6 * 8 * C**2


def problem(net):
    """(w₀, w₁, x, y)."""
    x, y = inputs(CASE, N), np.random.default_rng(5).standard_normal((N, C))
    if net is NET:
        return random_params(CASE, 0), random_params(CASE, 3), x, y
    rng = np.random.default_rng(0)
    weights = [
        {"a": rng.standard_normal((3, 4)), "b": rng.standard_normal((4, C)), "step": 2}
        for _ in range(2)
    ]
    return *weights, x, y


def dense(net, params, x, x2=None):
    """Dense kernel with rows ordered by (i, a)."""
    kernel = np.asarray(empirical_ntk(net, params, x, x2))
    return kernel.transpose(0, 2, 1, 3).reshape(kernel.shape[0] * C, -1)


@pytest.mark.slow
def test_streamed_sums_are_those_of_the_dense_kernels(x64):
    for net in (NET, own_function):
        w0, w1, x, y = problem(net)
        found = kernel_change_between(net, w0, w1, x, targets=y, memory_limit=limit_of(net, w0, x))
        assert found.num_pairs == 6
        k0, k1 = dense(net, w0, x), dense(net, w1, x)
        expected = {
            "change": kernel_change(k1, k0),
            "norm0": np.linalg.norm(k0),
            "norm1": np.linalg.norm(k1),
            "distance": kernel_distance(k0, k1),
            "alignment0": alignment(k0, y.ravel()),
            "alignment1": alignment(k1, y.ravel()),
        }
        for name, value in expected.items():
            assert getattr(found, name) == pytest.approx(float(value), rel=1e-10), name
        assert found.error == found.interval == 0


def test_nearly_equal_kernels_do_not_cancel(x64):
    w0, _, x, _ = problem(NET)
    w1 = jax.tree.map(lambda w: w + 1e-7 * jnp.cos(jnp.arange(w.size)).reshape(w.shape), w0)
    found = kernel_change_between(NET, w0, w1, x)
    assert found.change == pytest.approx(
        float(kernel_change(dense(NET, w1, x), dense(NET, w0, x))), rel=1e-6
    )
    assert found.distance == pytest.approx(
        kernel_distance(dense(NET, w0, x), dense(NET, w1, x)), rel=1e-4
    )
    assert 0 < found.distance < found.change**2
    assert np.isnan(found.alignment0)


def test_pairs_are_stopped_kept_resumed_and_divided(x64, tmp_path):
    w0, w1, x, y = problem(NET)
    limit = limit_of(NET, w0, x)
    whole = kernel_change_between(NET, w0, w1, x, targets=y, memory_limit=limit)
    kept, reported, asked = tmp_path / "pairs.jsonl", [], []

    def stop(share):
        reported.append(share)
        if len(reported) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kernel_change_between(
            NET, w0, w1, x, targets=y, memory_limit=limit, kept=kept, progress=stop
        )
    assert reported == pytest.approx([1 / 6, 2 / 6, 3 / 6, 4 / 6])
    kept.write_text(kept.read_text()[:-9])  # the machine failed while writing the last line

    def counted(function, pairs):
        asked.extend(pairs)
        return map(function, pairs)

    # Other memory limits keep the file's blocks.
    again = kernel_change_between(
        NET, w0, w1, x, targets=y, memory_limit=1e9, kept=kept, mapped=counted
    )
    assert again == whole
    assert asked == [(1, 1), (1, 2), (2, 2)][-len(asked) :]
    assert len(asked) == 3
    with pytest.raises(InvalidInput, match="of the same kernels"):
        kernel_change_between(NET, w1, w0, x, targets=y, kept=kept)
    with ThreadPoolExecutor(2) as pool:
        futures: list = []

        def submitted(function, pairs):  # as a dask client does
            futures.extend(pool.submit(function, pair) for pair in pairs)
            return futures

        for mapped in (pool.map, submitted):
            assert (
                kernel_change_between(NET, w0, w1, x, memory_limit=limit, targets=y, mapped=mapped)
                == whole
            )


def test_products_traces_and_solutions_equal_the_dense_kernel(x64):
    for net in (NET, own_function):
        w0, _, x, y = problem(net)
        others = inputs(CASE, 4, seed=9)
        matrix, operator = (
            dense(net, w0, x),
            KernelOperator(net, w0, x, memory_limit=limit_of(net, w0, x)),
        )
        assert operator.shape == matrix.shape
        np.testing.assert_allclose(
            np.ravel(operator.product(y)), matrix @ y.ravel(), rtol=1e-10, atol=1e-12
        )
        cross = dense(net, w0, others, x)
        np.testing.assert_allclose(
            np.ravel(operator.product(y, others)), cross @ y.ravel(), rtol=1e-10, atol=1e-12
        )
        assert operator.mean_diagonal == pytest.approx(np.trace(matrix) / len(matrix), rel=1e-12)
        solved = operator.solve(y, ridge=0.1, tolerance=1e-12)
        assert solved.converged
        predicted = operator.product(solved.coefficients, others)
        expected = kernel_regression(matrix, y.reshape(-1, 1), cross, ridge=0.1).outputs
        np.testing.assert_allclose(np.ravel(predicted), expected.ravel(), rtol=1e-9)


def test_spectrum_ends_are_bounded_from_inside_and_converge(x64):
    w0, _, x, _ = problem(NET)
    values = np.linalg.eigvalsh(dense(NET, w0, x))
    operator = KernelOperator(NET, w0, x)
    few = operator.extremes(max_products=4, tolerance=0)
    assert few.num_products == 4
    assert values[0] <= few.smallest <= few.largest <= values[-1] * (1 + 1e-12)
    for value, residual in (
        (few.largest, few.largest_residual),
        (few.smallest, few.smallest_residual),
    ):
        assert np.abs(values - value).min() <= residual * (1 + 1e-9)
    all_of_them = operator.extremes(tolerance=0)
    assert all_of_them.num_products <= N * C
    assert all_of_them.largest == pytest.approx(values[-1], rel=1e-10)
    assert all_of_them.smallest == pytest.approx(values[0], abs=1e-10 * values[-1])


@pytest.mark.parametrize("power", [0.5, 2.0])
def test_intervals_of_estimates_have_nominal_coverage(power):
    """Over many draws of the random vectors; kernels with flat and with steep spectra."""
    size, draws, rng = 50, 200, np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.standard_normal((size, size)))[0] for _ in range(2))
    spectrum = np.arange(1.0, size + 1) ** -power
    k0 = left * spectrum @ left.T
    k1 = k0 + 0.1 * (
        left * spectrum @ left.T @ right * spectrum @ right.T + right * spectrum**2 @ right.T
    )
    k1 = (k1 + k1.T) / 2
    truth = np.linalg.norm(k1 - k0) / np.linalg.norm(k0)
    found = []
    for seed in range(draws):
        found.append(estimated_sums(lambda v: k0 @ v, lambda v: k1 @ v, size, None, 32, seed))
    changes = np.array([np.sqrt(each.sums[2] / each.sums[0]) for each in found])
    errors, halves = (
        np.array([getattr(each, name) for each in found]) for name in ("error", "interval")
    )
    covered = np.mean(np.abs(changes - truth) <= halves)
    # 95% ± two standard deviations of 200 draws; steep spectra have one skewed direction,
    # with 92% coverage.
    assert (0.92 if power < 1 else 0.88) <= covered <= 0.98
    assert np.std(changes) == pytest.approx(np.sqrt(np.mean(errors**2)), rel=0.15)
    assert abs(np.mean(changes) - truth) <= 3 * np.std(changes) / np.sqrt(draws)


def test_an_estimate_is_near_the_exact_change_by_its_own_error(x64):
    w0, w1, x, y = problem(NET)
    exact = kernel_change_between(NET, w0, w1, x, targets=y)
    shares: list[float] = []
    found = kernel_change_between(NET, w0, w1, x, targets=y, probes=8, progress=shares.append)
    assert 0 < found.error < 0.3 * exact.change
    assert abs(found.change - exact.change) <= 5 * found.error
    # Student's t, 7 degrees of freedom.
    assert found.interval == pytest.approx(2.3646 * found.error, rel=1e-4)
    assert found.alignment0 * found.norm0 == pytest.approx(
        exact.alignment0 * exact.norm0, rel=1e-10
    )
    assert shares == sorted(shares)
    assert shares[-1] == 1


@pytest.mark.slow
def test_a_dask_client_divides_the_pairs(x64, monkeypatch):
    from distributed import Client, LocalCluster

    w0, w1, x, y = problem(NET)
    asked = {"targets": y, "memory_limit": limit_of(NET, w0, x)}
    sent, of_dask = [], Client.map

    def watched(client, *given, **named):
        sent.append(len(pickle.dumps(given)))
        return of_dask(client, *given, **named)

    monkeypatch.setattr(Client, "map", watched)
    with (
        LocalCluster(
            processes=False, n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
    ):
        divided = kernel_change_between(NET, w0, w1, x, **asked, mapped=client.map)
    assert divided == kernel_change_between(NET, w0, w1, x, **asked)
    assert max(sent) < 500 < sum(leaf.nbytes for leaf in jax.tree.leaves((w0, w1, x))), (
        "weights are sent once"
    )
