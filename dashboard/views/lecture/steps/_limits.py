"""Steps 6 to 9: what breaks linearity, what does not need it, and what does not explain it."""

from __future__ import annotations

from typing import Any

from dashboard.charts.chart import Chart, veiled
from dashboard.charts.style import output_title, width_label
from dashboard.charts.sweep import fitted, mean_line
from dashboard.views.hessian import figures as hessian
from dashboard.views.hessian import part_figures as hessian_parts
from dashboard.views.kernel_change import figures as kernel_change
from dashboard.views.lazy import figures as lazy
from dashboard.views.lecture import figures as lecture
from dashboard.views.lecture.steps._linear import LINEAR_OUTPUT, exponent
from dashboard.views.lecture.steps._step import Control, Question, Results, Step
from dashboard.views.optimization.figures import rates_of
from ntk_core.runs import mean

NONLINEAR_OUTPUT = "fully-connected-swish"
NARROW = "bottleneck"
QUADRATIC = "quadratic-bottleneck"
PLAIN_START = "random"


def _nonlinear(results: Results, view: Any, known: bool) -> Chart:
    if view == "change":
        points = results["liu-fig1-left"].points
        figure = kernel_change.change_against_width(points)
        drawn = Chart(
            figure, kernel_change.takeaway(points), kernel_change.width_rows(points), kernel_change.caption(points)[1:]
        )
        first = min(point.width for point in points)
    else:
        points = results["liu-nonlinear-output"].points
        first = min(point.wide_width for point in points)
        if view == "norm":
            drawn = hessian.against_width(points)
        else:
            found = hessian_parts.bounded(points, NONLINEAR_OUTPUT)
            if found is None:
                raise LookupError("liu-nonlinear-output has no lower bound")
            drawn = found
    if known:
        return drawn
    return Chart(veiled(drawn.figure, first), "Kernel change of three outputs at the smallest width.", [])


def _why_nonlinear(results: Results) -> str:
    points = results["liu-fig1-left"].points
    said = []
    for output in kernel_change.outputs_of(points):
        line = mean_line(points, output)
        law = fitted(points, output)
        said.append(
            f"{output_title(output)} {line[0][1].value:.2g} at $m$ = {width_label(line[0][0])}, "
            f"{line[-1][1].value:.2g} at {width_label(line[-1][0])} ({exponent(law)})"
        )
    return (
        f"$\\Delta K$: {'; '.join(said)}. The term $\\varphi''\\,\\nabla f\\,\\nabla f^\\top$ has the squared 2-norm "
        f"of the "
        "gradient in it, and that does not fall."
    )


def _bottleneck(results: Results, view: Any, known: bool) -> Chart:
    if view == "neighbors":
        points = [p for p in results["liu-table1"].points if p.line in (LINEAR_OUTPUT, NARROW)]
        drawn = hessian.against_width(points)
        first = min(point.wide_width for point in points)
    elif view == "itself":
        points = results["liu-fig2"].points
        figure = kernel_change.change_against_width(points, swept="bottleneck_width")
        drawn = Chart(
            figure, kernel_change.takeaway(points), kernel_change.width_rows(points), kernel_change.caption(points)[1:]
        )
        first = min(point.width for point in points)
    else:
        points = results["liu-theorem41"].points
        found = hessian_parts.bounded(points, QUADRATIC)
        if found is None:
            raise LookupError("liu-theorem41 has no closed form")
        drawn = found
        first = min(point.wide_width for point in points)
    return (
        drawn
        if known
        else Chart(veiled(drawn.figure, first), "‖H‖ with and without a bottleneck at the smallest width.", [])
    )


def _why_bottleneck(results: Results) -> str:
    found = {}
    for line in (LINEAR_OUTPUT, NARROW):
        own = hessian.of_line(results["liu-table1"].points, line)
        found[line] = exponent(hessian.law_of(own, hessian.VIEWS["‖H‖"].of))
    law = fitted(results["liu-fig2"].points, "linear")
    return (
        f"One neuron through which all must pass keeps $\\|H\\|$ up, {found[NARROW]}, where the same network without "
        f"it "
        f"has {found[LINEAR_OUTPUT]}. What helps is to widen the bottleneck itself: $\\Delta K$ then goes like "
        f"{exponent(law).replace('m^', 'm_b^')}. At the smallest $m_b$ few runs converge."
    )


def _optimization(results: Results, output: Any, known: bool) -> Chart:
    widest = max(results["liu-section5"].points, key=lambda point: point.width)
    return lecture.loss_and_change(widest, output, with_loss=known)


def _why_optimization(results: Results) -> str:
    points = sorted(results["liu-section5"].points, key=lambda point: point.width)
    said = []
    for point in points:
        runs = point.of("leaky_softplus", min(rates_of([point])))
        said.append(f"{mean([run.sup_change for run in runs]).value:.2g} at $m$ = {width_label(point.width)}")
    runs = points[-1].of("leaky_softplus", min(rates_of(points)))
    return (
        f"$\\Delta K$ is {', '.join(said)}, and the loss falls nearly along a straight line on its logarithmic "
        f"axis, to {max(run.loss[-1] for run in runs):.1g} in {max(run.num_steps for run in runs)} steps, below both "
        "bounds. What is needed is that the kernel stays well conditioned on the path, not that it stays."
    )


def _lazy(results: Results, view: Any, known: bool) -> Chart:
    points = results["liu-lazy"].points
    if view == "outputs":
        output = lazy.nonlinear(points)
        figure = lazy.same_parameters(points, output, PLAIN_START)
        words = lazy.width_takeaway(points, output, PLAIN_START, (lazy.BEHIND_F, lazy.CHANGE))
    elif view == "moves":
        figure = lazy.distances(points, "linear", PLAIN_START)
        words = lazy.width_takeaway(points, "linear", PLAIN_START, (lazy.DISTANCE, lazy.LARGEST))
    else:
        road: lazy.Road = "scale" if view == "scale" else "width"
        figure = lazy.against(points, road, "linear", lazy.KAPPA)
        words = lazy.takeaway(points, road, "linear", lazy.KAPPA)
    if known:
        caption = lazy.caption(points, "scale" if view == "scale" else "width", "linear", lazy.KAPPA)
        return Chart(figure, words, lazy.rows(points), caption)
    return Chart(veiled(figure, keep=("kernel of α f",)), "Kernel change of f against width.", [])


def _why_lazy(results: Results) -> str:
    points = results["liu-lazy"].points
    output = lazy.nonlinear(points)
    laws = [lazy.fitted(points, "width", output, PLAIN_START, each) for each in (lazy.BEHIND_F, lazy.CHANGE)]
    moves = [lazy.fitted(points, "width", "linear", PLAIN_START, each) for each in (lazy.DISTANCE, lazy.LARGEST)]
    return (
        f"On the same path of weights the kernel of $f$ goes like {exponent(laws[0])}, that of $\\varphi(f)$ like "
        f"{exponent(laws[1])}. How far the weights went is the same for both, so it cannot be the reason. And in the "
        f"2-norm they do not go less far in a wide network: {exponent(moves[0])}; only the largest single move "
        f"shrinks, {exponent(moves[1])}."
    )


LIMITS = (
    Step(
        name="nonlinear-output",
        title="A nonlinear output undoes it, at every width",
        formula=(
            r"\tilde f=\varphi(f):\ \tilde H=\varphi''(f)\,\nabla f\,\nabla f^\top+\varphi'(f)\,H",
            r"\|\tilde H\|\ge|\varphi''(f)|\,\|\nabla f\|^2-|\varphi'(f)|\,\|H\|=\Omega(1)",
        ),
        words="$f$ and softmax$(f)$ share one set of weights and train together; a third network has a swish output. "
        "All three have the same hidden layer, equally wide.",
        question=Question(
            "The width goes from 30 to 10,000. Whose kernel stops moving?",
            ("All three: they are equally wide", "Only that of $f$, the linear output", "None: all of them learn"),
            1,
            _why_nonlinear,
        ),
        control=Control("Show", {"change": "kernel change", "norm": "Hessian norm", "bound": "lower bound"}, "change"),
        see="One line falls, two stay. Behind the nonlinear output the Hessian norm stays above its "
        "lower bound at every width.",
        finite_width="Behind the linear output $\\Delta K$ falls nearly like $m^{-1}$, faster than the theorem's "
        "upper "
        "bound $m^{-1/2}$. Softmax ends near 1 since it saturates: its slope, and so its kernel, dies.",
        source="Liu, Zhu & Belkin 2020, §4, Eq. 28 and 29, Fig. 1",
        gallery=("liu-fig1-left", "liu-nonlinear-output"),
        terms=("nonlinear-output", "linear-output", "kernel-change"),
        page="kernel_change",
        preset="liu-fig1-left",
        invitation="Run Figure 1 with your own outputs",
        draw=_nonlinear,
    ),
    Step(
        name="bottleneck",
        title="One narrow layer is enough to stay nonlinear",
        formula=(
            r"m_b=1:\ \Big\|\frac{\partial^2\alpha^{(l+1)}}{(\partial\alpha^{(l)})^2}\Big\|_{2,2,1}"
            r"=\sum_{i=1}^m|\sigma''(w_i\alpha^{(l)})|\,w_i^2=\Theta(m)",
        ),
        words="With one neuron between two wide layers, every neuron above bends along the *same* direction, and "
        "their "
        "curvatures add up. The bound of the deep network says nothing any more, and the norm itself stays above a "
        "positive constant, even if the narrow layer is linear.",
        question=Question(
            "All layers but one grow from 100 to 1,000 neurons; the bottleneck keeps one. What does $\\|H\\|$ do?",
            ("Falls to a third, as without it", "Falls, more slowly", "Stays"),
            2,
            _why_bottleneck,
        ),
        control=Control(
            "Show",
            {"neighbors": "widen the others", "itself": "widen the bottleneck", "exact": "one block, exactly"},
            "neighbors",
        ),
        see="The network with the bottleneck stays where the one without it falls. Widen the "
        "bottleneck instead: the line falls near the dashed guide.",
        finite_width="Drawn again, a bottleneck of one neuron gives quite another norm: the seeds scatter, and at "
        "$m_b=3$ most runs do not reach the loss threshold. The slope $m_b^{-1/2}$ needs all other layers wider "
        "still.",
        source="Liu, Zhu & Belkin 2020, §4, Eq. 30, Theorem 4.1, Fig. 2",
        gallery=("liu-table1", "liu-fig2", "liu-theorem41"),
        terms=("bottleneck", "two-two-one-norm"),
        page="kernel_change",
        preset="liu-fig2",
        invitation="Widen the bottleneck yourself",
        draw=_bottleneck,
    ),
    Step(
        name="optimization-without-linearity",
        title="Training converges without a constant kernel",
        formula=(
            r"\tfrac12\|\nabla L\|^2\ge\mu^\ast L\ (\text{PL}^\ast)\ \Longrightarrow\ L_t\le(1-\eta\mu^\ast)^tL_0",
            r"|\varphi'|\ge\rho:\ \mu^\ast\ge\tfrac{\rho^2}{n}\min_t\lambda_{\min}(K_f(w_t))",
        ),
        words="The square loss obeys PL* as long as the kernel's smallest eigenvalue stays away from 0 *along the "
        "path*; whether the kernel moves is another matter. Behind $\\varphi(f)=0.2f+0.8\\,\\mathrm{softplus}(f)$, "
        "whose slope is nowhere below 0.2, "
        "the kernel moves at every width.",
        question=Question(
            "The kernel of $\\varphi(f)$ moves by more than half of its size. What does the loss do at a small rate?",
            ("It gets stuck", "It falls exponentially all the same", "It falls, but only like $1/t$"),
            1,
            _why_optimization,
        ),
        control=Control(
            "Output φ",
            {"leaky_softplus": "0.2 f + 0.8 softplus(f)", "swish": "swish", "softmax": "softmax"},
            "leaky_softplus",
        ),
        see="The upper curves rise and stay up: the kernel has moved. The lower ones fall below both "
        "bounds all the same.",
        finite_width="The bound keeps the smallest slope and the smallest eigenvalue of the whole path, so it lies "
        "far "
        "above the loss; the measured PL* constant gives a closer one. Swish and softmax converge here too, but "
        "nothing promises it: their slopes vanish somewhere.",
        source="Liu, Zhu & Belkin 2020, §5, Theorem 5.1",
        gallery=("liu-section5",),
        terms=("pl-condition", "mu", "rho", "lambda-min"),
        page="optimization",
        preset="liu-section5",
        invitation="Try larger rates, until it breaks",
        draw=_optimization,
    ),
    Step(
        name="not-lazy-training",
        title="That weights hardly move is not the reason",
        formula=(
            r"\|w_t-w_0\|_2=\Theta(1),\quad\|w_t-w_0\|_\infty=O(m^{-1/2})",
            r"\kappa=\|f(w_0)-y\|\,\frac{\|H\|}{\|\nabla f\|^2}",
        ),
        words="“Lazy training” makes $\\kappa$ small by scaling the model up, so that the weights need not go far. A "
        "wide network makes it small by its Hessian, and is linear in a ball of *any* fixed radius. Each single "
        "weight "
        "moves little; all of them together move as far as in a narrow network.",
        question=Question(
            "Take one path of weights, and look at the kernel of $f$ and at that of swish$(f)$ along it. The first "
            "hardly moves in a wide network. The second…",
            ("hardly moves either: the weights are the same", "moves at every width", "moves in narrow networks only"),
            1,
            _why_lazy,
        ),
        control=Control(
            "Show",
            {"outputs": "one path, two outputs", "moves": "the weights", "scale": "κ by scale", "width": "κ by width"},
            "outputs",
        ),
        see="Two lines from the same weights: one falls, one stays. Among “the weights”, the 2-norm "
        "is flat and only the ∞-norm falls.",
        finite_width="The largest move is the largest of $m$ numbers: its exponent comes out a little above −1/2. And "
        "scaling helps only where $f(w_0)=0$, which networks as drawn do not have.",
        source="Liu, Zhu & Belkin 2020, §1.1 and §4; Chizat, Oyallon & Bach 2019",
        gallery=("liu-lazy",),
        terms=("lazy-training", "kappa", "two-norm", "infinity-norm"),
        page="lazy",
        preset="liu-lazy",
        invitation="Compare both roads",
        draw=_lazy,
    ),
)
