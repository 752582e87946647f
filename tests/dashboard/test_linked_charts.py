"""Linked figures: clicks set the page's choices, which survive a change of widths."""

from __future__ import annotations

from typing import Any

import pytest

from linearity_lab.charts.chart import led_by
from linearity_lab.components.gallery import gallery_result
from linearity_lab.views.dynamics.frames import moving
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.runs import PRESETS
from tests.dashboard.made_results import make_points, make_result
from tests.dashboard.open_pages import checked, open_page

PAGE = "kernel_change"


@pytest.fixture
def browser(monkeypatch, jobs) -> dict[str, Any]:
    """Data of the browser component in ``at``; ``clicked`` is its value at the next run."""
    there: dict[str, Any] = {"at": {}, "clicked": []}

    def linked(key, at, clicked, land, answer):
        there["answer"] = answer
        there["at"] = at
        for values in there.pop("clicked", []):
            clicked(values)

    monkeypatch.setattr("linearity_lab.components.chart.linked", linked)
    return there


def charts(app) -> dict[str, str]:
    """Caption of each figure → the figure."""
    return {proto.alt: proto.spec for proto in (each.proto for each in app.get("plotly_chart"))}


def test_click_on_a_seed_shows_its_run_and_syncs_choices(browser):
    app = open_page(PAGE)
    assert browser["at"] == {"m": 10_000, "seed": None}
    browser["clicked"] = [{"m": 101, "seed": "2"}, {"m": [100], "seed": {}}, {"m": None}]
    checked(checked(app.run()).run())
    assert browser["at"] == {"m": 10_000, "seed": None}, "what no figure shows is no click"
    browser["clicked"] = [{"m": 100.0, "seed": 2}]
    checked(checked(app.run()).run())
    assert browser["at"] == {"m": 100, "seed": 2}
    assert (app.selectbox(key=f"{PAGE}.shown_width").value, app.selectbox(key=f"{PAGE}.one_seed").value) == (100, 2)
    assert any("along training at width 100." in words for words in charts(app))
    assert "along training at width 100." in browser["answer"]["words"]
    assert [each["title"] for each in browser["answer"]["pictures"]] == ["kernel change ΔK(t)", "loss"]
    checked(app.selectbox(key=f"{PAGE}.shown_width").select(1000).run())
    assert browser["at"] == {"m": 1000, "seed": 2}


def test_a_choice_outlasts_the_run_that_has_not_come_to_it_yet(browser, jobs):
    spec = KernelChangeSpec(widths=(30, 100, 1000), outputs=("linear", "softmax"))
    points = make_points(spec.widths)
    app = open_page(PAGE)
    checked(app.selectbox(key=f"{PAGE}.shown_width").select(100).run())
    job = jobs.add(spec, points=points[:1])
    app.query_params["job"] = job
    checked(app.run())
    assert browser["at"]["m"] == 30
    jobs.add(spec, points=points, result=make_result(points), status="completed")
    checked(app.run())
    assert browser["at"]["m"] == 100


DRIVEN = {
    "liu-fig1-left": ["m"],
    "kernel-convergence-pair": ["m"],
    "liu-section5": ["m"],
    "catapult-map": ["m"],
    "hu-fig1": ["d"],
    "liu-true-and-linearized": ["step"],
}


def test_figures_over_widths_drive_pages_of_one_width(browser):
    driven = {}
    for name in DRIVEN:
        app = open_page(PRESETS[name].spec.experiment, opened=False, preset=name)
        shown = "".join(charts(app).values()).replace(" ", "")
        driven[name] = sorted(axis for axis in browser["at"] if f'"cursor":"{axis}"' in shown)
    assert driven == DRIVEN


@pytest.mark.parametrize("axis", ["step", "time"])
def test_moving_figure_shows_the_record_at_the_cursor(axis):
    point = gallery_result("liu-true-and-linearized").points[0]
    run = point.runs[0]
    middle, unit = run.steps[len(run.steps) // 2], run.learning_rate if axis == "time" else 1
    figure = moving(point, run.output, run.method, axis, unit * (middle + 0.2)).figure
    active = figure.layout.sliders[0].active
    assert run.steps[active] == middle
    assert figure.layout.meta["frames"]["at"][figure.frames[active].name] == pytest.approx(middle * unit)
    for trace, data in zip(figure.frames[active].traces, figure.frames[active].data, strict=True):
        assert list(figure.data[trace].y) == list(data.y)


def test_the_chosen_seed_leads_and_no_run_is_lost():
    (point,) = make_points((30,))
    assert led_by([point], None) == [point]
    (led,) = led_by([point], 2)
    assert [run.seed for run in led.of("linear")] == [2, 0, 1]
    assert sorted(map(repr, led.runs)) == sorted(map(repr, point.runs))
