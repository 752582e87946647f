"""Steps 10 to 12: any graph, the first steps of training, and what is open."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from dashboard.charts.chart import Chart, veiled
from dashboard.charts.numbers import number, width_label
from dashboard.views.dag import figures as dag
from dashboard.views.early_time import figures as early_time
from dashboard.views.lecture import figures as lecture
from dashboard.views.lecture.steps._step import Control, Results, step
from ntk_core.dynamics.choices import METHODS
from ntk_core.experiments.dag.spec import DRAWN
from ntk_core.experiments.early_time.result import LINEAR_PHASE_SHARE

GRAPHS = (DRAWN, "bottleneck-layer", "bottleneck-repaired")
PLAIN = "gradient-descent"


def _graphs(results: Results, view: Any, known: bool) -> Chart:
    if view == "dropped":
        result = results["zhu-fig2"]
        lines = list(dag.change_lines(result.points, "in-degree").values())
        return dag.against(lines, result.spec.widths, "in-degree", "kernel change ΔK")
    points = results["zhu-bottleneck-neurons"].points
    drawn = lecture.graphs_against_width(points, GRAPHS, view)
    if known:
        return drawn
    first = min(point.width for point in points)
    return Chart(veiled(drawn.figure, first), "Kernel change of three graphs at the smallest width.", [])


def _why_graphs(results: Results) -> dict[str, str]:
    points = sorted(results["zhu-bottleneck-neurons"].points, key=lambda point: point.width)
    said = []
    for (graph, _), line in dag.change_lines(points).items():
        (_, first), *_, (_, last) = line.means
        said.append(f"{lecture.GRAPH_TITLES[graph]} {number(first.value)} → {number(last.value)}")
    return {"first": str(points[0].width), "last": str(points[-1].width), "changes": "; ".join(said)}


def _early(results: Results, source: Any, known: bool) -> Chart:
    name, _, value = source.partition(":")
    point = next(point for point in results[name].points if point.value == int(value))
    runs = point.runs
    drawn = early_time.along_steps(point, runs, "test loss")
    if known:
        return replace(drawn, caption=drawn.caption[:2])
    phase = runs[0].steps[runs[0].linear_phase]
    early = veiled(drawn.figure, phase / 10)
    # The vertical lines and their words name the moments that are asked for.
    early.layout.shapes, early.layout.annotations = (), early.layout.annotations[-1:]
    early.update_xaxes(range=[0, math.log10(runs[0].steps[-1])])
    return Chart(early, "Test loss of network and linear model in the first steps.", [])


def _why_early(results: Results) -> dict[str, str]:
    (run, *_), *_ = [point.runs for point in results["hu-fig3"].points if point.width == 256]
    phase = run.steps[run.linear_phase]
    left = (
        "does not leave it in these steps"
        if run.departure_step is None
        else f"departs at step {run.departure_step:,}, when its test loss is 5% lower"
    )
    gaussian = [
        f"{sum(each.departure is not None for each in point.runs)} of {len(point.runs)} at $d$ = {point.input_dim}"
        for point in results["hu-fig1"].points
    ]
    return {
        "share": f"{LINEAR_PHASE_SHARE:.0%}",
        "phase": f"{phase:,}",
        "gap": f"{gap_before(run):.1%}",
        "departure": left,
        "gaussian": ", ".join(gaussian),
    }


def gap_before(run: Any) -> float:
    """Largest |L − L_lin| / L_lin of the test losses until the linear model has made most of its way."""
    pairs = zip(run.network.test_loss, run.linear.test_loss, strict=True)
    return max(abs(net - lin) / lin for net, lin in list(pairs)[: run.linear_phase + 1])


def _methods(results: Results, width: Any, known: bool) -> Chart:
    point = next(point for point in results["beyond-gradient-descent"].points if point.width == width)
    shown = lecture.methods_in_the_plane(point, "linear", () if known else (PLAIN,))
    if known:
        return shown
    return Chart(shown.figure, "Distance and kernel change of gradient descent alone.", [])


def _why_methods(results: Results) -> dict[str, str]:
    point = max(results["beyond-gradient-descent"].points, key=lambda point: point.width)
    runs = {method: point.of("linear", method)[0] for method in (PLAIN, "adam", "beyond-stable")}
    said = "; ".join(
        f"{METHODS[method].title} {number(run.sup_distance)} and {number(run.sup_change)}"
        for method, run in runs.items()
    )
    return {"width": width_label(point.width), "methods": said}


BEYOND = (
    step(
        "graphs",
        Control(
            "Show",
            {"change": "kernel change", "hessian": "Hessian norm", "dropped": "edges dropped at random"},
            "change",
        ),
        _graphs,
        _why_graphs,
    ),
    step(
        "early-time",
        Control(
            "Data",
            {
                "hu-fig3:256": "cats and horses",
                "hu-fig1:25": "Gaussian, d = 25",
                "hu-fig1:50": "d = 50",
                "hu-fig1:100": "d = 100",
            },
            "hu-fig3:256",
        ),
        _early,
        _why_early,
    ),
    step(
        "open-questions",
        Control("Width m", {30: "m = 30", 300: "m = 300", 3000: "m = 3,000"}, 3000),
        _methods,
        _why_methods,
    ),
)
