"""The steps on arbitrary graphs, early training, the cost of linearity, and open questions."""

import math
from collections.abc import Sequence
from dataclasses import replace

from linearity_lab.charts.chart import Chart, veiled
from linearity_lab.charts.figure import shown_result
from linearity_lab.charts.lines import Axis, Line, width_axis
from linearity_lab.dashboard.pages.lecture import figures as lecture
from linearity_lab.dashboard.pages.lecture.steps._linear import exponent
from linearity_lab.dashboard.pages.lecture.steps._step import Results, alone, step
from linearity_lab.experiments.adding import figures as adding
from linearity_lab.experiments.adding.point import AddingPoint
from linearity_lab.experiments.dag import figures as dag
from linearity_lab.experiments.dag.point import DRAWN
from linearity_lab.experiments.early_time import figures as early_time
from linearity_lab.experiments.early_time.point import LINEAR_PHASE_SHARE, EarlyRun
from linearity_lab.experiments.generalization import figures as generalization
from linearity_lab.experiments.generalization.point import GeneralizationPoint, values
from linearity_lab.runs import mean
from ntk_core.dynamics.choices import METHODS
from ntk_core.numbers import number, percent, width_label

GRAPHS = (DRAWN, "bottleneck-layer", "bottleneck-repaired")
PLAIN = "gradient-descent"


def _graphs(results: Results, view: str) -> Chart:
    if view == "dropped":
        result = results["zhu-fig2"]
        lines = list(dag.change_lines(result.points, "in-degree").values())
        return dag.against(lines, result.spec.widths, "in-degree", "kernel change ΔK")
    return lecture.graphs_against_width(results["zhu-bottleneck-neurons"].points, GRAPHS, view)


def _why_graphs(results: Results) -> dict[str, str]:
    points = sorted(results["zhu-bottleneck-neurons"].points, key=lambda point: point.width)
    text = []
    for (graph, _), line in dag.change_lines(points).items():
        (_, first), *_, (_, last) = line.means
        text.append(f"{lecture.GRAPH_TITLES[graph]} {number(first.value)} → {number(last.value)}")
    return {
        "first": str(points[0].width),
        "last": str(points[-1].width),
        "changes": "; ".join(text),
    }


def _early(results: Results, source: str) -> Chart:
    name, _, value = source.partition(":")
    point = next(point for point in results[name].points if point.value == int(value))
    drawn = early_time.along_steps(point, point.runs, early_time.PathQuantity.TEST_LOSS)
    return replace(drawn, caption=drawn.caption[:2])


def _first_steps(results: Results, chart: Chart) -> Chart:
    run = _image_run(results)
    early = veiled(chart.figure, run.steps[run.linear_phase] / 10)
    early.layout.shapes = ()
    early.layout.annotations = early.layout.annotations[-1:]
    early.update_xaxes(range=[0, math.log10(run.steps[-1])])
    return replace(chart, figure=early)


def _image_run(results: Results) -> EarlyRun:
    (run, *_), *_ = [point.runs for point in results["hu-fig3"].points if point.width == 256]
    return run


def _why_early(results: Results) -> dict[str, str]:
    run = _image_run(results)
    phase = run.steps[run.linear_phase]
    left = (
        "does not depart within these steps"
        if run.departure_step is None
        else f"departs at step {run.departure_step:,}, when its test loss is 5% lower"
    )
    gaussian = [
        f"{sum(each.departure is not None for each in point.runs)} of {len(point.runs)} at $d$ = "
        f"{point.input_dim}"
        for point in results["hu-fig1"].points
    ]
    others = {"hu-fig3-cnn": "with convolutions", "hu-fig4": "on two digits"}
    return {
        "others": "; ".join(
            f"{title} {_leaves(results[name].points[0].runs)}" for name, title in others.items()
        ),
        "share": percent(LINEAR_PHASE_SHARE),
        "phase": f"{phase:,}",
        "gap": percent(gap_before(run)),
        "departure": left,
        "gaussian": ", ".join(gaussian),
    }


def _leaves(runs: Sequence[EarlyRun]) -> str:
    leaves = "departs at" if all(run.departure is not None for run in runs) else "stays until"
    shares = [run.share_followed for run in runs]
    text = " to ".join(dict.fromkeys(percent(share) for share in (min(shares), max(shares))))
    return f"it {leaves} {text} of the linear model's progress"


def gap_before(run: EarlyRun) -> float:
    """Return the largest |L − L_lin| / L_lin of the test losses.

    Later records do not count, where the linear model has made most of its progress.
    """
    pairs = zip(run.network.test_loss, run.linear.test_loss, strict=True)
    return max(abs(net - lin) / lin for net, lin in list(pairs)[: run.linear_phase + 1])


# Option of the step → networks and outputs of its lines.
ADDED = {
    "plain": [("A", "linear")],
    "bottleneck": [("A", "linear"), ("B", "linear")],
    "swish": [("A", "linear"), ("A", "swish")],
}


def _adding(results: Results, option: str) -> Chart:
    return adding.against_width(shown_result(results["adding-networks"]), ADDED[option])


def _addition_errors(results: Results, letter: str, output: str) -> dict[int, float]:
    """Width → mean E of the converged runs."""
    points: Sequence[AddingPoint] = results["adding-networks"].points
    found = {}
    for point in sorted(points, key=lambda point: point.width):
        if point.network == letter:
            runs = [run for run in point.of(output) if run.outcome == "converged"]
            found[point.width] = mean([run.last_error for run in runs]).value
    return found


def _sum_of_dense(results: Results) -> tuple[Line, Axis]:
    shown = shown_result(results["adding-networks"])
    (line,) = adding.lines_of(shown, ADDED["plain"])
    return line, width_axis(shown.spec.widths)


def _why_adding(results: Results) -> dict[str, str]:
    plain = _addition_errors(results, "A", "linear")
    narrow, *_, wide = plain
    line, _ = _sum_of_dense(results)
    return {
        "first": number(plain[narrow]),
        "last": number(plain[wide]),
        "narrow": width_label(narrow),
        "wide": width_label(wide),
        "law": exponent(line.law),
        "bottleneck": number(_addition_errors(results, "B", "linear")[wide]),
        "swish": number(_addition_errors(results, "A", "swish")[wide]),
    }


COSTS = {"parity": "price-of-linearity", "digits": "no-price-on-digits"}


def _price(results: Results, target: str) -> Chart:
    result = results[COSTS[target]]
    return generalization.against(result.points, result.spec, "error")


def _why_price(results: Results) -> dict[str, str]:
    parity, digits = (results[name].points for name in COSTS.values())
    lazy, rich = (
        sorted(generalization.at(parity, richness=rho), key=lambda p: p.width) for rho in (0.0, 0.5)
    )
    on_digits = generalization.at(digits, richness=0.5)
    return {
        "lazy": f"{_errors(lazy[:1])} at $m$ = {width_label(lazy[0].width)} and "
        f"{_errors(lazy[-1:])} at {width_label(lazy[-1].width)}",
        "rich": f"at most {number(max(_error(point, 'network') for point in rich))} at every width",
        "kernel": _errors(lazy[-1:], "first_kernel"),
        "digits": _errors(on_digits[-1:]),
        "digits_kernel": _errors(on_digits[-1:], "first_kernel"),
    }


def _error(point: GeneralizationPoint, model: str) -> float:
    return mean(values(point.runs, model, "error")).value


def _errors(points: Sequence[GeneralizationPoint], model: str = "network") -> str:
    return ", ".join(number(_error(point, model)) for point in points)


def _methods(results: Results, width: int) -> Chart:
    point = next(
        point for point in results["beyond-gradient-descent"].points if point.width == width
    )
    return lecture.methods_in_the_plane(point, "linear")


def _why_methods(results: Results) -> dict[str, str]:
    point = max(results["beyond-gradient-descent"].points, key=lambda point: point.width)
    runs = {
        method: point.of("linear", method)[0]
        for method in (PLAIN, "adam", "momentum", "beyond-stable")
    }
    text = "; ".join(
        f"{METHODS[method].title} {number(run.sup_distance)} and {number(run.sup_change)}"
        for method, run in runs.items()
    )
    apart = {method: percent(runs[method].sup_difference) for method in ("momentum", "adam")}
    return {"width": width_label(point.width), "methods": text, **apart}


BEYOND = (
    step("graphs", _graphs, _why_graphs),
    step("early-time", _early, _why_early, _first_steps),
    step("adding", _adding, _why_adding, measured=_sum_of_dense),
    step("price-of-linearity", _price, _why_price),
    step("open-questions", _methods, _why_methods, alone(METHODS[PLAIN].title)),
)
