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
from dashboard.views.lecture.steps._step import Control, Question, Results, Step
from ntk_core.experiments.dag.spec import DRAWN
from ntk_core.experiments.early_time.result import LINEAR_PHASE_SHARE
from ntk_core.settings.vocabulary import METHODS

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


def _why_graphs(results: Results) -> str:
    points = sorted(results["zhu-bottleneck-neurons"].points, key=lambda point: point.width)
    said = []
    for (graph, _), line in dag.change_lines(points).items():
        (_, first), *_, (_, last) = line.means
        said.append(f"{lecture.GRAPH_TITLES[graph]} {number(first.value)} → {number(last.value)}")
    return (
        f"$\\Delta K$ from $m$ = {points[0].width} to {points[-1].width}: {'; '.join(said)}. A few narrow neurons "
        f"among "
        "many add a little curvature; a whole layer of them puts its curvature into everything above."
    )


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


def _why_early(results: Results) -> str:
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
    return (
        f"On the images the linear model has made {LINEAR_PHASE_SHARE:.0%} of its way at step {phase:,}; until then "
        f"the "
        f"test losses differ by at most {gap_before(run):.1%}. The network {left}. Of the runs on "
        f"Gaussian inputs {', '.join(gaussian)} depart in the steps shown."
    )


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


def _why_methods(results: Results) -> str:
    point = max(results["beyond-gradient-descent"].points, key=lambda point: point.width)
    runs = {method: point.of("linear", method)[0] for method in (PLAIN, "adam", "beyond-stable")}
    said = "; ".join(
        f"{METHODS[method].title} {run.sup_distance:.2g} and {run.sup_change:.2g}" for method, run in runs.items()
    )
    return (
        f"Farthest distance and $\\Delta K$ at $m$ = {width_label(point.width)}: {said}. Adam's path is longer, yet "
        f"the "
        "ball it needs is still one in which a wide network is linear. Beyond the stable rate the linear model "
        "diverges, and the network leaves the ball. One seed a method: a hint, no proof."
    )


BEYOND = (
    Step(
        name="graphs",
        title="On any graph, the smallest in-degree that many share decides",
        formula=(
            r"z_v=\tfrac{1}{\sqrt{\mathrm{in}(v)}}\sum_{u\to v}w_{uv}\,\alpha_u",
            r"m=\min_{v\text{ above layer }1}\mathrm{in}(v)",
            r"\|H\|=\tilde O(m^{-1/2})",
        ),
        words="Layers are not needed. On a directed acyclic graph each neuron averages over its incoming edges, and "
        "the width is the smallest *in-degree* outside the input and first layers. Edges may be missing at random, "
        "skips may be fixed, weights may be shared.",
        question=Question(
            "Two neurons with a single incoming edge; a whole layer with two each; that layer with edges added. Which "
            "graph keeps its kernel moving?",
            ("The first: its smallest in-degree is 1", "The second: a whole layer is narrow", "Both of these"),
            1,
            _why_graphs,
        ),
        control=Control(
            "Show",
            {"change": "kernel change", "hessian": "Hessian norm", "dropped": "edges dropped at random"},
            "change",
        ),
        see="The graph with a narrow layer stays; the one with two narrow neurons falls with the repaired one.",
        finite_width="The theorem asks every in-degree to grow. That a few small ones do no harm is its appendix, and "
        "what is measured here; how many are few, only the measurement says.",
        source="Zhu, Liu & Belkin 2022, Eq. 2 and 8, Theorem 3.6, Fig. 2 and 3, App. F",
        gallery=("zhu-bottleneck-neurons", "zhu-fig2"),
        terms=("graph", "in-degree"),
        page="dag",
        preset="zhu-bottleneck-neurons",
        invitation="Draw a graph and let it be judged",
        draw=_graphs,
    ),
    Step(
        name="early-time",
        title="Early on, a network is a linear model of its inputs",
        formula=(
            r"f_t(x)\approx\langle\beta_t,\psi(x)\rangle",
            r"\psi=\Big[\sqrt{\tfrac2d}\,\zeta\,x;\ \sqrt{\tfrac{3}{2d}}\,\nu;\ "
            r"\vartheta_0+\vartheta_1s+\vartheta_2s^2\Big]",
            r"s=\tfrac{\|x\|}{\sqrt d}-1",
        ),
        words="Linear in the weights is not linear in the inputs. But in high dimension the first thing that a "
        "two-layer network learns *is* linear in $x$, its norm and a constant, with weights that the activation alone "
        "decides. Deeper networks and convolutions on images do the same.",
        question=Question(
            "Four hidden layers on images of cats and horses. When does the network leave the linear model of the "
            "pixels?",
            (
                "In its very first steps",
                "When the linear model has little left to learn",
                "Never: it is wide enough",
            ),
            1,
            _why_early,
        ),
        control=Control(
            "Data",
            {
                "hu-fig3:256": "cats and horses",
                "hu-fig1:25": "Gaussian, d = 25",
                "hu-fig1:50": "d = 50",
                "hu-fig1:100": "d = 100",
            },
            "hu-fig3:256",
        ),
        see="Both curves fall together; past the dotted line the linear model flattens, and only "
        "later does the network leave it.",
        finite_width="The theorem lets $n$ and $m$ grow faster than $d$. At finite width the kernel at $w_0$ is off "
        "by "
        "about $\\sqrt{d/m}$, so the losses differ by some percent from the start; more, where they are small.",
        source="Hu, Xiao, Adlam & Pennington 2020, §3.3, Theorem D.1, Fig. 1 and 3",
        gallery=("hu-fig3", "hu-fig1"),
        terms=("psi", "zeta", "norm-feature", "departure"),
        page="early_time",
        preset="hu-fig3",
        invitation="Follow single images",
        draw=_early,
    ),
    Step(
        name="open-questions",
        title="Open: who leaves the ball?",
        formula=(
            r"w_t\in B(w_0,R)\ \text{ for all }t,\ R\text{ independent of }m",
            r"\Longrightarrow\ \Delta K=\tilde O(m^{-1/2})",
        ),
        words="How the ball is linear and how a method moves in it are two questions, and only the first one is about "
        "the network. For SGD, momentum, Adam or a second-order method it is enough to show that it stays in a ball "
        "of fixed radius. What does it take to fall out of it?",
        question=Question(
            "At width 3,000 Adam goes more than twice as far from $w_0$ as gradient descent. Its kernel changes…",
            ("hundreds of times as much", "about as little", "not at all"),
            1,
            _why_methods,
        ),
        control=Control("Width m", {30: "m = 30", 300: "m = 300", 3000: "m = 3,000"}, 3000),
        see="Marks low and to the left have stayed in the ball. Adam lies to the right, but as low; "
        "beyond the stable rate is far to the right, and high.",
        finite_width="One seed, one data set, one loss threshold: this asks the question, it does not settle it. Also "
        "open: which layer's kernel moves most, how depth and activation change the exponents, and along which "
        "directions the kernel moves.",
        source="Liu, Zhu & Belkin 2020, §1.1 and §2; methods and widths are our choice",
        gallery=("beyond-gradient-descent",),
        terms=("transition-to-linearity", "ball", "stable-rate"),
        page="dynamics",
        preset="beyond-gradient-descent",
        invitation="Try the methods yourself",
        draw=_methods,
    ),
)
