"""Figures during a job, which keep the old ones until its end, and figures linked by clicks."""

import json
import math
from itertools import pairwise
from typing import Any

import pytest
import streamlit as st
from plotly.io import to_json

from linearity_lab.charts.axes import LABEL, is_marked
from linearity_lab.charts.chart import above
from linearity_lab.charts.labels import LABEL_SIZE
from linearity_lab.dashboard import session
from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.dashboard.shown import drawn_once
from linearity_lab.experiments.kernel_change.figures import change_against_width
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from tests.dashboard.made_results import make_points, make_result
from tests.dashboard.open_pages import bars, checked, open_page, words

PAGE = "kernel_change"
OUTSIDE = 50  # pixels above and below the plot, more than there are
SPEC = KernelChangeSpec(widths=(10, 30, 100), outputs=("linear", "softmax"))
POINTS = make_points(SPEC.widths)


def ghosts(app) -> list[int]:
    """Number of pale curves in each figure."""
    figures = [json.loads(each.proto.spec) for each in app.get("plotly_chart")]
    return [
        sum((trace.get("meta") or {}).get("ghost", False) for trace in figure["data"])
        for figure in figures
    ]


@pytest.mark.slow
def test_old_figure_stays_below_the_new_points(jobs):
    app = open_page(PAGE)
    assert ghosts(app) == [0, 0]
    assert app.button(key=f"{PAGE}.run").proto.type == "secondary", "it would change nothing"
    app.query_params["job"] = jobs.add(SPEC)
    assert len(ghosts(checked(app.run()))) == 2, "before the first point the old figures stay"
    assert "Settings changed (" in words(app)
    assert "Run to update" not in words(app)

    jobs.add(SPEC, points=POINTS[:1])
    assert min(ghosts(checked(app.run()))) > 0
    assert "Pale curves show the previous settings (Widths m" in words(app)

    jobs.add(SPEC, points=POINTS, result=make_result(POINTS), status="completed")
    assert ghosts(checked(app.run())) == [0, 0]
    assert "Settings changed" not in words(app)
    assert "3 widths · saved result" in words(app)

    failed = SPEC.model_copy(update={"num_seeds": 2})
    app.query_params = {
        "job": jobs.add(failed, status="failed", reason="the worker process crashed")
    }
    assert len(ghosts(checked(app.run()))) == 2, "a run without a point keeps the old figures"
    assert "the worker process crashed." in words(app)
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


def test_ghosts_are_pale_and_inside_the_axes_of_both():
    new = change_against_width(make_points((30, 100)), (30, 100)).figure
    old = change_against_width(make_points((10, 1000), exponents={"swish": 2.0}), (10, 1000)).figure
    both = above(new, old)
    for name in ("xaxis", "yaxis"):
        low, high = both.layout[name].range
        for figure in (new, old):
            assert low <= figure.layout[name].range[0] < figure.layout[name].range[1] <= high
    assert {trace.zorder for trace in both.data} == {None}, (
        "Plotly clips the texts of all layers but the lowest"
    )
    pale = both.data[len(new.data) :]
    assert pale
    assert all(
        trace.opacity < 0.25 and not trace.showlegend and trace.hoverinfo == "skip"
        for trace in pale
    )
    assert len(above(new, old.update_layout(xaxis_title="step")).data) == len(new.data), (
        "of another quantity"
    )


def test_trained_runs_are_drawn_while_others_train(jobs):
    whole, part = make_points((30, 100), exponents={"linear": -1.0})
    part = part.model_copy(update={"runs": part.runs[:1]})
    app = open_page(PAGE, job=jobs.add(SPEC, points=(whole,), growing=(part,), grown=1))
    drawn = [
        trace for chart in app.get("plotly_chart") for trace in json.loads(chart.proto.spec)["data"]
    ]
    seeds = [trace for trace in drawn if (trace.get("meta") or {}).get("seeds")]
    assert sum(len(trace["text"]) for trace in seeds) == len(whole.runs) + 1
    assert bars(app)[0].startswith("1 of 3 ")


def test_labels_stand_beside_both_figures_without_overlap():
    new = change_against_width(make_points((30, 100)), (30, 100)).figure
    old = change_against_width(make_points((10, 1000), exponents={"swish": 9.0}), (10, 1000)).figure
    both = above(new, old)
    low, high = both.layout.yaxis.range
    pixels = (both.layout.height - 2 * OUTSIDE) / (high - low)
    labels = [trace for trace in both.data if is_marked(trace, LABEL)]
    assert len(labels) > 1
    assert {trace.x[-1] for trace in labels} == {10 ** both.layout.xaxis.range[1]}
    centers = sorted(math.log10(trace.y[-1]) * pixels for trace in labels)
    assert min(after - before for before, after in pairwise(centers)) > LABEL_SIZE


def test_late_address_of_a_click_reverts_nothing(jobs, monkeypatch):
    app = open_page("kernel_change", num_seeds="3")
    earlier = dict(app.query_params)
    app.number_input(key="kernel_change.num_seeds").set_value(4).run()
    app.query_params = earlier  # from a browser before the URL changed
    app.number_input(key="kernel_change.seed").set_value(7).run()
    shown = [app.number_input(key=f"kernel_change.{name}").value for name in ("num_seeds", "seed")]
    assert shown == [4, 7]
    assert app.query_params["num_seeds"] in ("4", ["4"])
    monkeypatch.setattr(session, "_is_from_history", lambda: True)  # the back button
    app.query_params = earlier
    assert checked(app.run()).number_input(key="kernel_change.num_seeds").value == 3


@pytest.mark.parametrize("is_sent", [True, False])
def test_click_while_the_address_is_written_reverts_nothing(jobs, monkeypatch, is_sent):
    """A click stops the run just before or after the browser receives the new address."""
    app = open_page("kernel_change", num_seeds="3")
    earlier = dict(app.query_params)
    write = type(st.query_params).from_dict

    def stopped(query, values):
        if is_sent:
            write(query, values)
        st.stop()

    with monkeypatch.context() as patch:
        patch.setattr(type(st.query_params), "from_dict", stopped)
        app.number_input(key="kernel_change.num_seeds").set_value(4).run()
    assert (dict(app.query_params) != earlier) is is_sent
    app.number_input(key="kernel_change.seed").set_value(7).run()
    shown = [app.number_input(key=f"kernel_change.{name}").value for name in ("num_seeds", "seed")]
    assert shown == [4, 7]
    assert app.query_params["num_seeds"] in ("4", ["4"])


def test_what_was_drawn_is_not_drawn_again():
    st.cache_resource.clear()
    key = ("page.figure", ("job", "a"), lambda *chosen: object(), 10, "by step")
    first = drawn_once(*key)
    assert drawn_once(*key) is first
    for at, other in enumerate(("page.other", ("job", "b"), None, "10", "by step²")):
        if other:
            assert drawn_once(*key[:at], other, *key[at + 1 :]) is not first


@pytest.fixture
def browser(monkeypatch, jobs) -> dict[str, Any]:
    """Data of the browser component in ``at``; ``clicked`` is its value at the next run."""
    there: dict[str, Any] = {"at": {}, "clicked": []}

    def linked(key, at, clicked, land, answer):
        there["answer"] = answer
        there["at"] = at
        for values in there.pop("clicked", []):
            clicked(values)

    monkeypatch.setattr("linearity_lab.dashboard.chart.linked", linked)
    return there


def charts(app) -> dict[str, str]:
    """Caption of each figure → the figure."""
    return {proto.alt: proto.spec for proto in (each.proto for each in app.get("plotly_chart"))}


def test_click_on_a_seed_shows_its_run_and_syncs_choices(browser):
    app = open_page(PAGE)
    for clicked, found in (
        (
            [{"m": 101, "seed": "2"}, {"m": [100], "seed": {}}, {"m": None}],
            {"m": 10_000, "seed": None},
        ),  # not shown
        ([{"m": 100.0, "seed": 2}], {"m": 100, "seed": 2}),
    ):
        browser["clicked"] = clicked
        checked(checked(app.run()).run())
        assert browser["at"] == found
    assert (
        app.selectbox(key=f"{PAGE}.shown_width").value,
        app.selectbox(key=f"{PAGE}.one_seed").value,
    ) == (100, 2)
    assert any("along training at width 100." in words for words in charts(app))
    assert "along training at width 100." in browser["answer"]["words"]
    assert [each["title"] for each in browser["answer"]["pictures"]] == [
        "kernel change ΔK(t)",
        "loss",
    ]
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


def test_figures_are_sent_as_they_are_copied_once():
    chart = change_against_width(POINTS, SPEC.widths)
    assert to_json(chart.sent, validate=False) == to_json(chart.figure, validate=False)
    assert chart.sent.to_dict() is chart.sent.to_dict()
