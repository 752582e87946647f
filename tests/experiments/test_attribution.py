"""Attribution: predictions and retrainings against explicit ones in float64, ranks,
and refusals.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import spearmanr

from linearity_lab.charts.figure import Shown
from linearity_lab.experiments.attribution import page
from linearity_lab.experiments.attribution.compute import rank_correlation
from linearity_lab.experiments.attribution.figures import (
    EVERY_POINT,
    changes,
    chosen_point,
    training_point,
)
from linearity_lab.experiments.attribution.point import AttributionSpec
from linearity_lab.runs import load_data
from linearity_lab.settings.grammar import InvalidSpec, with_settings
from linearity_lab.words.pages import figure_words
from tests import running
from tests.naive_network import NaiveTanh

SMALL = {
    "widths": [8],
    "num_seeds": 1,
    "num_test": 5,
    "architectures": 1,
    "outputs": ["linear"],
    "dataset.num_samples": 4,
    "num_removed": 3,
    "training.learning_rate": 0.3,
    "training.max_steps": 60,
    "training.loss_threshold": 1e-9,
}


@pytest.fixture(scope="module")
def result():
    return running.result_of(with_settings(AttributionSpec(), SMALL))


def without(values, point):
    return np.delete(values, point, axis=0)


def test_errors_are_those_of_retraining_in_float64(result):
    (run,) = result.points[0].runs
    data = load_data(result.spec)
    naive = NaiveTanh(result.spec.architectures[0], data, 8, 0)
    x, y, at = (np.asarray(each, np.float64) for each in (data.x, data.y, data.x_test))

    def trained(x, y):
        return naive.trained(x, y, 0.3, 60)

    with_all = trained(x, y)
    retrained = []
    for point in range(3):
        w = trained(without(x, point), without(y, point))
        retrained.append(naive.outputs(w, at) - naive.outputs(with_all, at))
    np.testing.assert_allclose(run.changes, retrained, rtol=2e-2, atol=2e-4)

    residuals = (y - naive.outputs(naive.start, x)).reshape(-1)
    for weights, found in ((naive.start, run.before), (with_all, run.after)):
        rows = naive.jacobian(weights, x)  # (n, C, p)
        across = naive.jacobian(weights, at).reshape(10, -1)

        def predicted(rows, residuals, across=across):
            jacobian = rows.reshape(len(residuals), -1)
            return across @ np.linalg.lstsq(jacobian, residuals, rcond=None)[0]

        whole = predicted(rows, residuals)
        moved = []
        for point in range(3):
            left = without(residuals.reshape(4, 2), point).reshape(-1)
            moved.append((predicted(without(rows, point), left) - whole).reshape(5, 2))
        error = np.linalg.norm(np.subtract(moved, retrained)) / np.linalg.norm(retrained)
        assert found.error == pytest.approx(error, rel=1e-2)
        ranks = [
            spearmanr(np.asarray(moved)[:, test, output], np.asarray(retrained)[:, test, output])
            for test in range(5)
            for output in range(2)
        ]
        assert found.rank == pytest.approx(np.mean([each.statistic for each in ranks]), abs=1e-6)
    assert run.outcome == "over-budget"
    assert run.steps == (60, 60, 60, 60)


@pytest.mark.slow
def test_kernel_predicts_models_that_are_linear_in_their_weights():
    settings = {**SMALL, "architectures.0.trained": "last", "widths": [64]}
    settings |= {"training.learning_rate": "auto", "training.max_steps": 5000}
    settings |= {"training.loss_threshold": 1e-8}
    (run,) = running.result_of(with_settings(AttributionSpec(), settings)).points[0].runs
    assert run.outcome == "converged"
    assert run.error < 5e-3
    assert run.error_after == pytest.approx(run.error, abs=1e-4)  # its kernel is constant
    assert run.rank > 0.9


def test_ranks_are_those_of_scipy():
    rng = np.random.default_rng(0)
    one, two = rng.normal(size=(2, 7, 3, 2))
    expected = [
        spearmanr(one[:, test, output], two[:, test, output]).statistic
        for test in range(3)
        for output in range(2)
    ]
    assert rank_correlation(one, two) == pytest.approx(np.mean(expected))
    assert np.isnan(rank_correlation(np.zeros((4, 1)), np.ones((4, 1))))
    assert np.isnan(rank_correlation(np.full((4, 1), np.nan), np.ones((4, 1))))


@pytest.mark.parametrize(
    ("settings", "field", "words"),
    [
        ({"dataset.num_samples": 1}, "dataset.num_samples", "at least 2"),
        ({"dataset.num_samples": 6, "num_removed": 7}, "num_removed", "at most 6"),
        ({"architectures.0.kind": "convnet"}, "architectures.0.kind", ""),
    ],
)
def test_points_that_cannot_be_removed_are_refused(settings, field, words):
    with pytest.raises(InvalidSpec, match=field) as caught:
        with_settings(AttributionSpec(), settings)
    assert words in str(caught.value)


def test_a_chosen_point_is_shown_with_its_place(result):
    shown = Shown(result.spec, result.points)
    (all_points,) = changes(shown, "A", "linear", 8, "before", EVERY_POINT)
    assert len(all_points.rows) == 3 * 5 * 2
    (scatter,) = changes(shown, "A", "linear", 8, "before", 1)
    one = chosen_point(shown, "A", "linear", 8, "before", 1)
    assert chosen_point(shown, "A", "linear", 8, "before", EVERY_POINT) is None
    for trace in scatter.figure.data[1:]:
        bold = [opacity == 1 for opacity in trace.marker.opacity]
        assert bold == [note[0] == 2 for note in trace.customdata]
    (point,) = result.points
    (run,) = point.runs
    sizes = np.linalg.norm(np.asarray(run.changes).reshape(3, -1), axis=1)
    place = 1 + int((sizes > sizes[1]).sum())
    assert one.finding.startswith("Training point 2,")
    assert figure_words(f"attribution.{one.name}").see  # a click shows it, no preset does
    assert f"number {place} of 3" in one.finding
    image = point.model_copy(
        update={"input_shape": (2, 3, 1), "removed": ((0.0, 1.0, 2.0, 3.0, 4.0, 5.0),)}
    )
    (heatmap,) = training_point(image, run, run.before, 0).figure.data
    np.testing.assert_array_equal(heatmap.z, [[0, 1, 2], [3, 4, 5]])


def test_click_on_a_mark_chooses_its_training_point(monkeypatch, result):
    """The customdata of a mark begins with its training point; a cleared click keeps the choice."""
    state: dict = {}
    monkeypatch.setattr(page, "st", SimpleNamespace(session_state=state))
    (chart,) = changes(Shown(result.spec, result.points), "A", "linear", 8, "before", EVERY_POINT)
    mark = chart.figure.data[1].customdata[-1]
    for points in ([{"customdata": mark}], []):
        state["attribution.changes"] = SimpleNamespace(selection=SimpleNamespace(points=points))
        page.choose_clicked()
    assert state["attribution.point"] == mark[0] - 1 != EVERY_POINT
