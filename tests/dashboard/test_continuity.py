"""Pages during a job: old figures stay until the run completes; stored points are reused, figures not redrawn."""

from __future__ import annotations

import json

import plotly.graph_objects as go
import pytest
import streamlit as st

from linearity_lab.charts.chart import above
from linearity_lab.components import session
from linearity_lab.components.gallery import gallery_result
from linearity_lab.components.shown import drawn_once
from linearity_lab.views.kernel_change.figures import change_against_width
from ntk_core.experiments.architectures import ArchitecturesPoint, ArchitecturesSpec
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.runs import PRESETS, Spec
from tests.dashboard.made_results import make_points, make_result
from tests.dashboard.open_pages import bars, checked, open_page, words

PAGE = "kernel_change"
SPEC = KernelChangeSpec(widths=(10, 30, 100), outputs=("linear", "softmax"))
NEXT = SPEC.model_copy(update={"num_seeds": 2})
POINTS = make_points(SPEC.widths)


def ghosts(app) -> list[int]:
    """Number of pale curves in each figure."""
    figures = [json.loads(each.proto.spec) for each in app.get("plotly_chart")]
    return [sum((trace.get("meta") or {}).get("ghost", False) for trace in figure["data"]) for figure in figures]


def test_old_figure_stays_below_the_new_points(jobs):
    app = open_page(PAGE)
    assert ghosts(app) == [0, 0]
    assert app.button(key=f"{PAGE}.run").proto.type == "secondary", "it would change nothing"
    assert f"{len(PRESETS['liu-fig1-left'].spec.point_keys())} widths · saved result" in words(app)
    app.query_params["job"] = jobs.add(SPEC)
    checked(app.run())
    assert len(ghosts(app)) == 2, "before the first point the old figures are there, with all that belongs to them"
    assert "Settings changed (" in words(app)
    assert "Run to update" not in words(app)

    jobs.add(SPEC, points=POINTS[:1])
    checked(app.run())
    assert min(ghosts(app)) > 0
    assert "Pale curves show the previous settings (Widths m" in words(app)

    jobs.add(SPEC, points=POINTS, result=make_result(POINTS), status="completed")
    checked(app.run())
    assert ghosts(app) == [0, 0]
    assert "Settings changed" not in words(app)
    assert "3 widths · saved result" in words(app)

    app.query_params = {"job": jobs.add(NEXT, status="failed", reason="the worker process crashed")}
    checked(app.run())
    assert len(ghosts(app)) == 2, "a run without a point keeps the old figures"
    assert "the worker process crashed." in words(app)
    assert "Settings changed (" in words(app)
    assert app.button(key=f"{PAGE}.run").proto.type == "primary"


def test_while_points_arrive_only_the_tab_in_sight_is_drawn(jobs):
    result = gallery_result("beyond-gradient-descent")

    def drawn(**changes) -> set[str]:
        app.query_params["job"] = jobs.add(result.spec, points=result.points, **changes)
        return {each.proto.id.rsplit("-", 1)[-1] for each in checked(app.run()).get("plotly_chart")}

    app = open_page("dynamics")
    first = drawn()
    app.session_state["dynamics.tabs"] = app.tabs[1].label
    second = drawn()
    assert first & second
    assert first - second
    assert second - first
    assert first | second < drawn(result=result, status="completed")


def test_a_run_that_goes_on_has_no_ghost_of_itself(jobs):
    app = open_page(PAGE, job=jobs.add(SPEC, points=POINTS[:2], status="cancelled"))
    assert app.button(key=f"{PAGE}.run").label == "Resume"
    assert "2 of 3 widths are done. Resume continues from there, about" in words(app)
    jobs.add(SPEC, points=POINTS[:2])
    checked(app.run())
    assert ghosts(app) == [0, 0]
    assert app.button(key=f"{PAGE}.stop").label == "Stop"


def test_ghosts_are_pale_and_inside_the_axes_of_both():
    new = change_against_width(make_points((30, 100)), (30, 100)).figure
    old = change_against_width(make_points((10, 1000), exponents={"swish": 2.0}), (10, 1000)).figure
    both = above(new, old)
    for name in ("xaxis", "yaxis"):
        low, high = both.layout[name].range
        for figure in (new, old):
            assert low <= figure.layout[name].range[0] < figure.layout[name].range[1] <= high
    assert {10, 30, 100, 1000} <= set(both.layout.xaxis.tickvals)
    assert both.data[: len(new.data)] == new.data
    assert {trace.zorder for trace in both.data} == {None}, "Plotly clips the texts of all layers but the lowest"
    pale = both.data[len(new.data) :]
    assert pale
    assert all(trace.opacity < 0.25 and not trace.showlegend and trace.hoverinfo == "skip" for trace in pale)
    assert not any("swish" in (trace.name or "") and trace.showlegend is not False for trace in both.data)


def test_ticks_of_nearly_equal_widths_do_not_overlap():
    new, old = (change_against_width(make_points(widths), widths).figure for widths in ((30, 99, 1000), (30, 95, 1000)))
    assert above(new, old).layout.xaxis.ticktext == ("30", "99", "1,000")


@pytest.mark.parametrize(
    ("axis", "titles", "has_ghost"),
    [
        ("yaxis", ("loss", "kernel change ΔK"), False),
        ("yaxis", ("loss", "loss"), True),
        ("xaxis", ("width m", "width m, or n"), True),
    ],
)
def test_there_is_no_ghost_of_another_quantity(axis, titles, has_ghost):
    new, old = (go.Figure(go.Scatter(x=[1], y=[2]), {f"{axis}.title.text": each}) for each in titles)
    assert len(above(new, old).data) == 1 + has_ghost


@pytest.mark.parametrize(("page", "finished"), [("kernel_change", 0), ("architectures", 1)])
def test_trained_runs_are_drawn_while_others_train(jobs, page, finished):
    whole, part = make_points((30, 100), exponents={"linear": -1.0})
    part = part.model_copy(update={"runs": part.runs[:1]})
    spec: Spec = KernelChangeSpec(widths=(30, 100, 1000))
    points = [whole, part]
    if page == "architectures":
        spec = ArchitecturesSpec(widths=(30, 100))
        points = [ArchitecturesPoint.model_validate({**dict(p), "kind": page, "network": "A"}) for p in points]
    app = open_page(page, job=jobs.add(spec, points=tuple(points[:1] * finished), growing=(points[1],), grown=1))
    drawn = [trace for chart in app.get("plotly_chart") for trace in json.loads(chart.proto.spec)["data"]]
    seeds = [trace for trace in drawn if (trace.get("meta") or {}).get("seeds")]
    assert sum(len(trace["text"]) for trace in seeds) == len(whole.runs) * finished + 1
    assert f"{finished} of {len(spec.point_keys())} " in bars(app)[0]
    assert "Computing the first point…" not in words(app)


def test_late_address_of_a_click_reverts_nothing(jobs, monkeypatch):
    app = open_page("kernel_change", num_seeds="3")
    earlier = dict(app.query_params)
    app.number_input(key="kernel_change.num_seeds").set_value(4).run()
    app.query_params = earlier  # from a browser before the URL changed
    app.number_input(key="kernel_change.seed").set_value(7).run()
    shown = [app.number_input(key=f"kernel_change.{name}").value for name in ("num_seeds", "seed")]
    assert shown == [4, 7]
    assert app.query_params["num_seeds"] in ("4", ["4"])
    monkeypatch.setattr(session, "LATE_S", 0.0)
    app.query_params = earlier
    assert checked(app.run()).number_input(key="kernel_change.num_seeds").value == 3


def test_what_was_drawn_is_not_drawn_again():
    st.cache_resource.clear()
    drawn: list[tuple] = []

    def draw(*chosen):
        drawn.append(chosen)
        return object()

    first = drawn_once("page.figure", ("job", "a"), draw, 10, "by step")
    assert drawn_once("page.figure", ("job", "a"), draw, 10, "by step") is first
    others = [
        drawn_once("page.other", ("job", "a"), draw, 10, "by step"),
        drawn_once("page.figure", ("job", "b"), draw, 10, "by step"),
        drawn_once("page.figure", ("job", "a"), draw, 10, "by step²"),
        drawn_once("page.figure", ("job", "a"), draw, "10", "by step"),
        drawn_once("page.figure", ("job", "a", 10), draw, "by step"),
    ]
    assert first not in others
    assert len({*map(id, others)}) == 5
    assert drawn == [(10, "by step"), *[(10, "by step")] * 2, (10, "by step²"), ("10", "by step"), ("by step",)]
