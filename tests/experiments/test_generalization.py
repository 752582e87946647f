"""A network and its kernels.

One run written out in float64, Wilson's interval, refusals, a linear target.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from linearity_lab.data import Dataset, load_dataset
from linearity_lab.experiments.generalization.compute import load
from linearity_lab.experiments.generalization.point import GeneralizationSpec, wilson
from linearity_lab.runs import run_summary
from linearity_lab.settings.grammar import with_settings
from ntk_core.kernels import JITTER
from ntk_core.networks.architectures import FullyConnected
from ntk_core.networks.keys import initial_key
from tests.running import point_of, result_of

WIDTH, N, DIM = 7, 6, 4
DRAWN = {"draws": "network", "num_test": 9, "dataset.num_samples": N, "dataset.input_dim": DIM}
SHORT = {"training.max_steps": 60, "training.num_records": 4, "training.loss_threshold": 0.05}
FEW = {"widths": [WIDTH], "richness": [0.5], "num_seeds": 1, "ridge": 0.01}
SPEC = with_settings(GeneralizationSpec(), {**FEW, **DRAWN, **SHORT})


class ByHand:
    """Plain F = m^(−ρ) (f − f₀), f = v·max(Wx/√d, 0)/√m, its kernel by a Jacobian,
    descent on (1/2n) Σ (F − y)².
    """

    def __init__(self, richness: float):
        drawn = FullyConnected(
            width=WIDTH, depth=1, num_outputs=1, activation="relu", use_bias=False
        ).init(initial_key(0, WIDTH), (DIM,))
        self.w = np.asarray(drawn["hidden1"]["weight"], float).reshape(DIM, WIDTH)
        self.v = np.asarray(drawn["output"]["weight"], float).reshape(WIDTH)
        self.factor = WIDTH**-richness
        self.first = (self.w, self.v)

    def f(self, x, w=None, v=None):
        w, v = (self.w, self.v) if w is None else (w, v)
        return np.maximum(x @ w / math.sqrt(DIM), 0) @ v / math.sqrt(WIDTH)

    def outputs(self, x):
        return self.factor * (self.f(x) - self.f(x, *self.first))

    def jacobian(self, x):
        h = x @ self.w / math.sqrt(DIM)
        to_v = np.maximum(h, 0)
        to_w = np.einsum("ni,nk->nik", x / math.sqrt(DIM), (h > 0) * self.v).reshape(len(x), -1)
        return self.factor * np.concatenate([to_w, to_v], axis=1) / math.sqrt(WIDTH)

    def step(self, x, y, rate):
        gradient = self.jacobian(x).T @ (self.outputs(x) - y) / len(x)
        self.w = self.w - rate * gradient[: DIM * WIDTH].reshape(DIM, WIDTH)
        self.v = self.v - rate * gradient[DIM * WIDTH :]


@pytest.mark.usefixtures("x64")
def test_a_run_is_that_of_training_and_regression_written_out():
    """Also for ρ > 0, where f is trained toward y/α instead of α f toward y."""
    spec, richness = SPEC, 0.5
    data = load(spec)
    (found,) = point_of(spec, data=data).runs
    x, y, x_test, y_test = (
        np.asarray(getattr(data[N], name), float) for name in ("x", "y", "x_test", "y_test")
    )
    y, y_test, net = y[:, 0], y_test[:, 0], ByHand(richness)
    first_gradients, first_tests = net.jacobian(x), net.jacobian(x_test)
    kernels, taken = [], 0
    for index, step in enumerate(found.steps):
        while taken < step:
            net.step(x, y, found.learning_rate)
            taken += 1
        gradients = net.jacobian(x)
        kernel, cross = gradients @ gradients.T, net.jacobian(x_test) @ gradients.T
        kernels.append(kernel)
        matrix = kernel + (spec.ridge + JITTER) * np.trace(kernel) / N * np.eye(N)
        tests = net.outputs(x_test)
        after = cross @ np.linalg.solve(matrix, y)
        onward = tests + cross @ np.linalg.solve(matrix, y - net.outputs(x))
        for name, outputs in (("network", tests), ("after", after), ("onward", onward)):
            model = getattr(found, name)[index]
            assert model.loss == pytest.approx(np.mean((outputs - y_test) ** 2) / 2, rel=1e-7)
            assert model.error == np.mean((outputs > 0) != (y_test > 0))
        assert found.loss[index] == pytest.approx(np.mean((net.outputs(x) - y) ** 2) / 2, rel=1e-7)
        norm = np.linalg.norm(kernel)
        assert found.alignment[index] == pytest.approx(y @ kernel @ y / norm / (y @ y), rel=1e-7)
        for other, distance in (
            (kernels[0], found.distance[index]),
            (kernels[max(0, index - 1)], found.moved[index]),
        ):
            cosine = (kernel * other).sum() / norm / np.linalg.norm(other)
            assert distance == pytest.approx(1 - cosine, abs=1e-9)
        assert found.condition[index] == pytest.approx(np.linalg.cond(matrix, 1), rel=0.5)
    assert found.moved[-1] > 1e-4  # it did rotate
    # The linear model, in the span of its first gradients.
    c = np.zeros(N)
    for _ in range(found.num_steps):
        c += found.learning_rate * (y - kernels[0] @ c) / N
    linear = first_tests @ first_gradients.T @ c
    assert found.linear.loss == pytest.approx(np.mean((linear - y_test) ** 2) / 2, rel=1e-7)
    # Eigenvectors: cumulative shares, and angles between the leading spans.
    values, vectors = zip(
        *(np.linalg.eigh(each) for each in (kernels[0], kernels[-1])), strict=True
    )
    assert min(np.diff(values[0]).min(), np.diff(values[1]).min()) > 1e-6
    for shares, each in ((found.first_share, vectors[0]), (found.last_share, vectors[1])):
        expected = [np.sum((each[:, ::-1][:, :k].T @ y) ** 2) / (y @ y) for k in found.ranks]
        assert shares == pytest.approx(expected, abs=1e-6)
    assert found.angles == pytest.approx([0.0] * N, abs=1e-5)  # six of six: the same space


def test_data_are_loaded_for_every_n():
    spec = with_settings(
        GeneralizationSpec(), {"widths": [100, 10], "richness": [0.5, 0], "samples": [20, 40]}
    )
    data = load(spec)
    assert {n: (each.x.shape, each.y.shape, len(each.x_test)) for n, each in data.items()} == {
        20: ((20, 20), (20, 1), 1000),
        40: ((40, 20), (40, 1), 1000),
    }
    assert (data[20].x_test == data[40].x_test).all()
    digits = with_settings(
        spec, {"dataset": {"name": "mnist", "classes": [4, 9]}, "num_test": 10_000, "samples": []}
    )
    assert digits.data_options()["num_test"] == 400  # all test points
    assert digits.least_risk[0] != digits.least_risk[0]


def test_wilson_is_the_score_interval():
    """Its ends are the p whose distance from the observed share is z standard deviations at p."""
    for share, count in ((0.0, 50), (0.02, 50), (0.5, 7), (1.0, 9)):
        for end, at_edge in zip(wilson(share, count), (share == 0, share == 1), strict=True):
            if not at_edge:
                assert abs(end - share) == pytest.approx(
                    1.959964 * math.sqrt(end * (1 - end) / count), rel=1e-6
                )
    assert wilson(0, 50)[0] == 0
    assert wilson(1, 50)[1] == 1
    assert all(math.isnan(end) for end in (*wilson(math.nan, 5), *wilson(0, 0)))


def test_seeds_draw_separate_data_and_the_summary_reports_it():
    spec = with_settings(
        SPEC, {"num_seeds": 2, "draws": "network and data", "infinite_width": False}
    )
    result = result_of(spec)
    (point,) = result.points
    assert [each.seed for each in point.runs] == [0, 1]
    assert point.runs[0].alignment[0] != point.runs[1].alignment[0]
    assert all(each.infinite is None for each in point.runs)
    words = run_summary(spec, result.points)
    assert "test error, network" in words
    assert "95%: Wilson's interval" in words
    assert len(result.rows()) == 2


def test_dead_networks_and_missing_classes_are_reported():
    """All inputs are 0: the kernel is 0, training changes no weights, regression predicts 0."""
    spec = with_settings(
        SPEC, {"dataset": {"name": "single-index", "num_samples": N, "input_dim": DIM, "degree": 1}}
    )
    drawn = load_dataset(spec.dataset.name, **spec.data_options())
    zero = Dataset(
        "zero",
        0 * drawn.x,
        drawn.y,
        drawn.labels,
        drawn.x_test,
        drawn.y_test,
        drawn.labels_test,
        (),
        "",
    )
    (found,) = point_of(spec, data={N: zero}).runs
    assert (found.outcome, found.steps) == ("dead", (0,))
    assert math.isnan(found.network[0].error)
    assert found.after[0].loss == found.linear.loss == found.network[0].loss
    assert math.isinf(found.condition[0])
