"""Steps 1 to 5: what linearity is, and why wide networks behind a linear output come to it."""

from __future__ import annotations

from typing import Any

from dashboard.charts.chart import Chart, veiled
from dashboard.charts.style import width_label
from dashboard.views.hessian import figures as hessian
from dashboard.views.hessian import part_figures as hessian_parts
from dashboard.views.lecture import exact_figures as lecture_exact
from dashboard.views.lecture import figures as lecture
from dashboard.views.lecture.steps._step import Control, Question, Results, Step
from ntk_core.experiments.hessian.result import HessianPoint
from ntk_core.fits import PowerLaw
from ntk_core.runs import mean

LINEAR_OUTPUT = "fully-connected"
DEEP = (LINEAR_OUTPUT, "resnet", "densenet", "convnet", "mixed")
DIAGONAL_WIDTHS = (30, 100, 300, 1000, 3000, 10_000)


def exponent(law: PowerLaw | None) -> str:
    """LaTeX of a fitted power of m with its interval; a dash where there is none."""
    return "–" if law is None else f"$m^{{{law.exponent:.2f} \\pm {law.interval:.2f}}}$"


def _curves(results: Results, width: Any, known: bool) -> Chart:
    return lecture.curve_and_change(results["curves-in-one-dimension"].points, width, with_change=known)


def _why_constant(results: Results) -> str:
    runs = {point.width: point.runs[0] for point in results["curves-in-one-dimension"].points}
    said = ", ".join(f"{run.sup_change:.2g} at $m$ = {width_label(width)}" for width, run in runs.items())
    return f"$\\Delta K$ = {said}: as the two curves come together, the kernel comes to rest."


def largest_in_ball(points: list[HessianPoint], radius: float) -> dict[int, float]:
    """Width → mean over the seeds of the largest relative kernel change met in the ball of this radius."""
    return {
        point.wide_width: mean(
            [ball.kernel_change for run in point.runs for ball in run.balls if ball.radius == radius]
        ).value
        for point in points
    }


def _ball(results: Results, radius: Any, known: bool) -> Chart:
    result = results["liu-ball"]
    drawn = hessian_parts.ball(result.points, radius, "kernel_change", result.spec.num_starts)
    if known:
        return drawn
    first = min(point.wide_width for point in result.points)
    return Chart(veiled(drawn.figure, first), " ".join(drawn.caption), [])


def _why_ball(results: Results) -> str:
    points = hessian.of_line(results["liu-ball"].points, LINEAR_OUTPUT)
    (first, before), *_, (last, after) = largest_in_ball(points, 1.0).items()
    return (
        f"Behind a linear output the largest change met falls from {before:.2g} at $m$ = {first} to {after:.2g} at "
        f"$m$ = {width_label(last)}, at the same radius. Behind a nonlinear output it stays. Move the radius: the "
        f"change "
        "grows about in proportion to $R$, since $\\varepsilon R$ does."
    )


def _diagonal(_: Results, width: Any, known: bool) -> Chart:
    return lecture_exact.diagonal(width if known else DIAGONAL_WIDTHS[0], DIAGONAL_WIDTHS[0])


def _why_diagonal(results: Results) -> str:
    points = hessian.of_line(results["liu-shallow"].points, "shallow")
    law = hessian.law_of(points, hessian.VIEWS["‖H‖"].of)
    kernel = hessian.law_of(points, lambda _, run: run.kernel)
    return (
        f"The curve of dots keeps its form and shrinks: $\\|H\\|$ goes like {exponent(law)}, measured by Lanczos "
        f"iterations too. $K(x,x)$ is a mean over ever more neurons: {exponent(kernel)}."
    )


def _norms(results: Results, kind: Any, known: bool) -> Chart:
    if kind in lecture_exact.LAW_TITLES:
        drawn = lecture_exact.two_norms(kind)
    else:
        points = hessian.of_line(results["liu-theorem31"].points, LINEAR_OUTPUT)
        found = {name: hessian.seen(points, name, hessian_parts.QUANTITIES[name].of) for name in ("b_max", "b_norm")}
        drawn = lecture_exact.drawn_norms(
            found, "Measured: the largest over the layers of a network with two hidden layers"
        )
    if known:
        return drawn
    kept = hessian_parts.QUANTITIES["b_max"].style.title
    return Chart(veiled(drawn.figure, keep=(kept,)), "The largest entry of ∂f/∂α against width.", [])


def _why_norms(results: Results) -> str:
    points = hessian.of_line(results["liu-theorem31"].points, LINEAR_OUTPUT)
    laws = [hessian.law_of(points, hessian_parts.QUANTITIES[name].of) for name in ("b_norm", "b_max")]
    return (
        "$m$ squares of size $1/m$ add up to 1: the length stays, whatever the law of $v$. Measured in two hidden "
        f"layers: the length {exponent(laws[0])}, the largest entry {exponent(laws[1])}."
    )


def _deep(results: Results, view: Any, known: bool) -> Chart:
    if view == "architectures":
        points = [point for point in results["liu-table1"].points if point.line in DEEP]
        drawn = hessian.against_width(points)
    else:
        points = list(results["liu-theorem31"].points)
        parts = hessian_parts.bounded if view == "bound" else hessian_parts.quantities
        found = parts(points, LINEAR_OUTPUT)
        if found is None:
            raise LookupError("liu-theorem31 has no layer quantities")
        drawn = found
    if known:
        return drawn
    first = min(point.wide_width for point in points)
    return Chart(veiled(drawn.figure, first), "Hessian norm and its bound at the smallest width.", [])


def _why_deep(results: Results) -> str:
    points = hessian.of_line(results["liu-theorem31"].points, LINEAR_OUTPUT)
    norm, bound = (hessian.law_of(points, of) for of in (hessian.VIEWS["‖H‖"].of, hessian_parts.BOUNDS["bound"].of))
    gaps = [run.bound.bound / run.norm for point in points for run in point.runs if run.bound]
    return (
        f"Two hidden layers: $\\|H\\|$ goes like {exponent(norm)}, its bound like {exponent(bound)}, "
        f"{min(gaps):.0f} to {max(gaps):.0f} times higher. Residual, convolutional, dense and mixed networks do the "
        "same: choose them above."
    )


LINEAR = (
    Step(
        name="constancy-and-linearity",
        title="A kernel that never moves belongs to a linear model",
        formula=(
            r"K_w(x,x')=\langle\nabla_w f(w;x),\nabla_w f(w;x')\rangle\ \text{ constant in }w",
            r"\iff\ f(w;x)=f(w_0;x)+\langle\nabla_w f(w_0;x),\,w-w_0\rangle",
        ),
        words="The tangent kernel $K_w$ says how the outputs move when the weights do. It is the same at every $w$ "
        "exactly if $f$ is linear in $w$, however nonlinear it is in $x$. “Does the kernel move?” and “is the network "
        "a linear model?” are one question.",
        question=Question(
            "A network of width 3,000 and its linear model end as the same curve. How far has its kernel moved, "
            "beside "
            "that of width 30?",
            ("As far: it has learned as much", "Far less", "Farther: it has more weights"),
            1,
            _why_constant,
        ),
        control=Control("Width m", {30: "m = 30", 300: "m = 300", 3000: "m = 3,000"}, 3000),
        see="Below, the kernel of the widest network stays lowest at every step; above, its curve and "
        "that of its linear model are one. At width 30 they are two.",
        finite_width="At finite width the kernel moves a little, and the network leaves its linear model a little. "
        "How much of one gives how much of the other is the next step.",
        source="Liu, Zhu & Belkin 2020, Proposition 2.2",
        gallery=("curves-in-one-dimension",),
        terms=("tangent-kernel", "linear-model", "kernel-change"),
        page="dynamics",
        preset="curves-in-one-dimension",
        invitation="Watch both bend, step by step",
        draw=_curves,
    ),
    Step(
        name="hessian-and-ball",
        title="Where the Hessian is small, the kernel hardly moves",
        formula=(
            r"\|H(w)\|\le\varepsilon\ \text{ for all }\ \|w-w_0\|\le R",
            r"\Longrightarrow\ |K_w(x,x')-K_{w_0}(x,x')|=O(\varepsilon R)",
        ),
        words="$H=\\partial^2f/\\partial w^2$ is the Hessian of the *output*, never of the loss: it says how fast the "
        "gradient turns. Its spectral norm must be small in a whole ball around $w_0$, not at $w_0$ alone; a radius "
        "$R$ that does not grow with the width is enough for gradient descent to find a solution inside.",
        question=Question(
            "The radius stays 1, the width goes from 100 to 1,000. The largest kernel change anywhere in the ball, "
            "behind a linear output…",
            ("stays: the ball is as large as before", "falls to about a third", "grows: more directions to go"),
            1,
            _why_ball,
        ),
        control=Control("Radius R", {0.5: "R = 0.5", 1.0: "R = 1", 2.0: "R = 2", 4.0: "R = 4"}, 1.0),
        see="The lower solid line falls with the width, the upper one does not. Dotted: in random "
        "directions the kernel hardly changes at all, so the ball has to be searched.",
        finite_width="At $m=100$ and $R=4$ the kernel may change by nearly its own size: “wide” depends on the "
        "radius. "
        "The values are the largest that an ascent has met, so the true sup may be larger.",
        source="Liu, Zhu & Belkin 2020, Proposition 2.3 and Theorem 3.2",
        gallery=("liu-ball",),
        terms=("hessian", "ball", "spectral-norm"),
        page="hessian",
        preset="liu-ball",
        invitation="Search a ball of your own",
        draw=_ball,
    ),
    Step(
        name="diagonal-hessian",
        title="Warm-up: one hidden layer has a diagonal Hessian",
        formula=(
            r"f=\tfrac{1}{\sqrt m}\sum_i v_i\,\sigma(w_ix),\ v_i=\pm1\text{ fixed}",
            r"H_{ii}=\tfrac{1}{\sqrt m}\,v_i\,\sigma''(w_ix)\,x^2",
            r"\|H\|=\max_i|H_{ii}|\le\tfrac{\beta_\sigma x^2}{\sqrt m}",
        ),
        words="Two neurons never meet, so all off-diagonal entries are 0, and the norm is that of *one* neuron. The "
        "kernel $K(x,x)=\\frac{x^2}{m}\\sum_i\\sigma'(w_ix)^2$ is a mean over *all* neurons.",
        question=Question(
            "The width goes from 100 to 10,000. What happens to $\\|H\\|$ and to $K(x,x)$?",
            (
                "Both become ten times smaller",
                "$\\|H\\|$ becomes ten times smaller, $K$ stays",
                "$\\|H\\|$ stays, $K$ grows a hundredfold",
            ),
            1,
            _why_diagonal,
        ),
        control=Control("Width m", {m: width_label(m) for m in DIAGONAL_WIDTHS}, DIAGONAL_WIDTHS[0]),
        see="Dots lie on the curve of $\\pm\\sigma''$ over the weight; the more neurons, the flatter "
        "the curve. The norm is its highest dot.",
        finite_width="With $v=\\pm1$ the rate is exact. With Gaussian $v$ the largest of $m$ draws grows like "
        "$\\sqrt{\\log m}$, and the norm falls a little more slowly.",
        source="Liu, Zhu & Belkin 2020, §3.1",
        gallery=("liu-shallow",),
        terms=("hessian", "beta", "width"),
        page="hessian",
        preset="liu-shallow",
        invitation="Measure it with another activation",
        draw=_diagonal,
    ),
    Step(
        name="two-norms",
        title="The Hessian feels the largest neuron, the gradient all of them",
        formula=(
            r"b=\frac{\partial f}{\partial\alpha}=\frac{v}{\sqrt m}",
            r"\|H\|\lesssim\|b\|_\infty=\tilde O(m^{-1/2})",
            r"\|\nabla f\|\sim\|b\|_2=\Theta(1)",
        ),
        words="Both are sums over neurons weighted by $b$. In the Hessian each neuron acts on its own, and the "
        "largest "
        "weight counts; in the gradient the squares add up. In high dimension these two norms part: that is "
        "the whole reason.",
        question=Question(
            "$b$ has $m$ entries. When $m$ grows a hundredfold its largest entry becomes about ten times smaller. And "
            "its length $\\|b\\|_2$?",
            ("Ten times smaller too", "It stays", "Ten times larger"),
            1,
            _why_norms,
        ),
        control=Control(
            "Output weights",
            {"signs": "v = ±1", "normal": "v normal", "deep": "two hidden layers, measured"},
            "normal",
        ),
        see="One line falls, one is flat. With $v=\\pm1$ the falling one lies on the dashed guide.",
        finite_width="The largest of $m$ normal numbers is about $\\sqrt{2\\log m}$: over these widths the exponent "
        "comes out near −0.4 rather than −0.5. With $v=\\pm1$ there is no logarithm.",
        source="Liu, Zhu & Belkin 2020, §3.1, Eq. 11 to 15",
        gallery=("liu-theorem31",),
        terms=("infinity-norm", "two-norm"),
        page="hessian",
        preset="liu-theorem31",
        invitation="See all quantities of the theorem",
        draw=_norms,
    ),
    Step(
        name="deep-networks",
        title="Depth changes the constants, not the rate",
        formula=(
            r"\|H(w)\|\ \le\ C_1\,Q_{2,2,1}\,Q_\infty+\tfrac{1}{\sqrt m}\,C_2\,Q_L",
            r"Q_\infty=\max_l\Big\|\frac{\partial f}{\partial\alpha^{(l)}}\Big\|_\infty=\tilde O(m^{-1/2})",
        ),
        words="$Q_{2,2,1}$ collects the second derivatives of the layers, $Q_L$ their first ones: both stay of order "
        "1, everywhere in the ball. Only the ∞-norms fall. Convolutions (the width is the number of channels) and "
        "skip connections keep this.",
        question=Question(
            "With a second hidden layer, how does $\\|H\\|$ go with the width?",
            ("Nearly like $m^{-1/2}$, as with one", "Like $m^{-1}$", "It stays: the layers multiply up"),
            0,
            _why_deep,
        ),
        control=Control(
            "Show",
            {"bound": "norm and bound", "quantities": "layer quantities", "architectures": "other architectures"},
            "bound",
        ),
        see="Both lines fall at nearly the same slope, the bound above the norm. Among the layer "
        "quantities only ‖∂f/∂α‖∞ falls.",
        finite_width="Fitted exponents a little above −1/2 are what $\\tilde O(m^{-1/2})$ looks like: Gaussian output "
        "weights add a factor $\\sqrt{\\log m}$, of a DenseNet the inputs of every layer add more.",
        source="Liu, Zhu & Belkin 2020, Theorems 3.1 to 3.3, App. G",
        gallery=("liu-theorem31", "liu-table1"),
        terms=("layer-quantities", "two-two-one-norm", "depth"),
        page="hessian",
        preset="liu-table1",
        invitation="Measure Table 1 yourself",
        draw=_deep,
    ),
)
