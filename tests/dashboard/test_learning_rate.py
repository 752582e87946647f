"""The page Learning rate: its map, peaks and runs, and what the gallery shows of them."""

import pytest

from dashboard.components.gallery import gallery_result
from dashboard.views.learning_rate import figures
from tests.dashboard.open_pages import checked, open_page, words

MAP = gallery_result("catapult-map")
RUN = gallery_result("catapult-run")


@pytest.mark.parametrize("width", MAP.spec.widths)
def test_above_two_only_the_linear_model_is_lost_at_every_width(width):
    (point,) = [point for point in MAP.points if point.width == width]
    for rate in MAP.spec.rates:
        outcomes = {model: {run.outcome for run in point.of(model, rate)} for model in MAP.spec.models}
        assert outcomes["linear"] == ({"diverged"} if rate > 2 else {"monotone"})
        if rate < 4:
            assert "diverged" not in outcomes["network"] | outcomes["quadratic"]
            assert all(run.curvature < 2 for model in ("network", "quadratic") for run in point.of(model, rate))
        else:
            assert "diverged" in outcomes["quadratic"]
            assert width < 1000 or outcomes["quadratic"] == {"diverged"}


def test_final_curvatures_are_those_that_were_foreseen():
    """Two-layer ReLU, ten samples: about 1.8 from c = 2.2, near 1 from c = 3, nothing lost below 2."""
    wide = [point for point in MAP.points if point.width >= 1000]
    for point in wide:
        assert all(abs(run.curvature - 1.8) < 0.1 for run in point.of("network", 2.2))
        assert all(0.6 < run.curvature < 1.3 for run in point.of("network", 3.0))
        assert all(abs(run.curvature - 1.5) < 0.05 for model in MAP.spec.models for run in point.of(model, 1.5))


def test_every_cell_of_the_map_has_its_outcome():
    chart = figures.outcome_map(MAP.points, MAP.spec.models)
    panels = [trace for trace in chart.figure.data if trace.type == "heatmap"]
    assert len(panels) == 3
    assert all(len(panel.z) == len(MAP.spec.rates) and None not in panel.z[0] for panel in panels)
    assert len(chart.rows) == 3 * 3 * len(MAP.spec.rates) * len(MAP.spec.widths)
    assert chart.takeaway.startswith("linear model: 96 monotone, 192 diverged;")


def test_a_followed_run_crosses_the_edge_before_its_loss_comes_down():
    (point,) = RUN.points
    (run,) = point.of("network", 3.0)
    losses, curvatures = run.path.loss, run.path.curvature
    assert losses.index(max(losses)) <= next(at for at, value in enumerate(curvatures) if value < 2) + 2
    chart = figures.along_run(point, 3.0)
    assert "network: catapult" in chart.takeaway
    assert "linear model: diverged" in chart.takeaway


@pytest.mark.usefixtures("jobs", "through_the_menu")
def test_the_page_opens_with_its_map_and_follows_a_cell():
    app = checked(open_page("learning_rate"))
    assert len(app.get("plotly_chart")) == 3
    assert "Follow width 10,000 at c = 3 step by step" in words(app)
    assert len(checked(open_page("learning_rate", preset="catapult-run")).get("plotly_chart")) == 4
