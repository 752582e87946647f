"""What each page says about its figures: what to look for, and why a network of finite width differs from the limit."""

from __future__ import annotations

from dashboard.words.figure_words import FigureWords, page_figure_words

VEILED_KEY = ".veiled"
PREDICT = "That is the question: predict first, or ask for the answer; then this says what to look for."
# Key of a step → its words; the lecture fills it, whose steps are made of figures.
LECTURE: dict[str, FigureWords] = {}


def figure_words(key: str) -> FigureWords | None:
    """The words of the figure with this key (``page.figure``); None where there are none."""
    page, _, name = key.partition(".")
    return LECTURE.get(name) if page == "lecture" else page_figure_words(key)


WHAT_TO_SEE = {
    "early_time": (
        "**What this page shows.** At first the curves of network and linear model lie on each other, also for every "
        "single input. The network departs (its test loss is 5% lower) only when the linear model has nearly nothing "
        "left to learn, and what it gains lies outside the span of the inputs. The theorem needs $m$ and $n$ to grow "
        "faster than $d$: then the discrepancy falls as $d$ grows."
    ),
    "hessian": (
        "**What this page shows.** Three groups. Behind a linear output $\\|H\\|$ falls like $m^{-1/2}$, a little "
        "slower with Gaussian output weights, whose largest one grows like $\\sqrt{\\log m}$. Behind a nonlinear "
        "output and with a bottleneck it stays. Where it falls, the kernel stops moving; where it stays, the kernel "
        "moves: $\\Delta K$ beside it is of the same weights."
    ),
    "kernel_change": (
        "**What this page shows.** With a linear output the kernel change falls nearly like $1/m$, faster than the "
        "theorem's upper bound $m^{-1/2}$; the dashed guides have both slopes. With a softmax or swish output it stays "
        "large at every width. Softmax comes close to 1 once it has converged: it saturates, and its kernel dies."
    ),
    "dag": (
        "**What this page shows.** On a wide graph ΔK falls at least like the dashed guide $m^{-1/2}$, in the realized "
        "smallest in-degree, and ‖H‖ falls with it, more slowly where a logarithm or the inputs count. A layer of "
        "narrow neurons keeps both up at every width; a few narrow neurons, removed edges, fixed skips and shared "
        "weights do not. Behind a nonlinear output nothing falls."
    ),
    "dynamics": (
        "**What this page shows.** Solid (network), dashed (its linear model) and dotted lines (infinite width) lie on "
        "each other behind a linear output once the network is wide; the relative difference falls like $m^{-1}$, so "
        "outputs differ like $m^{-1/2}$. Behind a swish output they part at every width. A marker on a line is the "
        "step from which the two stay apart by more than 1%."
    ),
    "optimization": (
        "**What this page shows.** The loss falls exponentially, below the dashed bound $(1 - \\eta\\mu\\rho^2/n)^t "
        "L_0$, far below since the bound keeps the smallest slope everywhere. All the while the kernel of "
        "$\\varphi(f)$ moves, at every width. Between one and a few times the stable rate the loss may rise first, "
        "until $\\lambda_{\\max}$ has come down (catapult); beyond, it diverges."
    ),
    "lazy": (
        "**What this page shows.** Along the scale $\\kappa$ and $\\Delta K$ fall like $1/\\alpha$ where $f(w_0) = 0$, "
        "since the weights move less; where $f(w_0) \\ne 0$ they soon stop falling. Along the width $\\kappa$ falls "
        "like $m^{-1/2}$ and $\\Delta K$ faster, since the Hessian shrinks: $\\|w - w_0\\|_2$ stays. Only the largest "
        "move falls, near $m^{-1/2}$ once the largest of $m$ has settled."
    ),
    "architectures": (
        "**What this page shows.** Without a bottleneck the kernel change falls as the width grows, with a bottleneck "
        "of fixed width less, if at all. A few hundred neurons are not wide: the heatmaps before and after still "
        "differ. Where the kernel of infinite width is known, the kernel at $w_0$ approaches it like $m^{-1/2}$, and "
        "the spectra at $w_0$ close in on the dashed line."
    ),
}

WHY_FINITE_WIDTH_DIFFERS = {
    "early_time": (
        "**What finite width changes.** The kernel at $w_0$ is a mean over $m$ neurons, so along single inputs it "
        "is off by about $\\sqrt{d/m}$ from the start. That is no departure: it shrinks as the linear part converges."
    ),
    "hessian": (
        "**What finite width changes.** In a ball of radius $R$ the kernel moves by at most $\\|H\\| R$, up to a "
        "constant: at width 100 that is not little. **Why not ReLU?** Its second derivative is 0 wherever it exists, "
        "and its kinks carry all the curvature: a measured 0 would be a lie. Smooth activations have a Hessian; "
        "kernels, on the other pages, need none."
    ),
    "kernel_change": (
        "**What finite width changes.** The kernel can move only as far as the Hessian of the output lets it. "
        "Behind a linear output that Hessian shrinks with the width, behind a nonlinear one it does not; and at small "
        "$m$ it is large for all. Open markers are runs that did not converge: no mean and no exponent uses them."
    ),
    "dag": (
        "**What finite width changes.** Every neuron averages over its incoming edges, and its random part falls "
        "like one over the root of their number: what counts is the smallest in-degree that many neurons share, not "
        "the number of neurons. The theorem holds as the width grows; at one width, only the measurement counts."
    ),
    "dynamics": (
        "**What finite width changes.** The weights travel the same distance at every width, but many more of them "
        "share it, so each hardly moves and the tangent stays good. At rates beyond the stable one the linear model "
        "diverges; the network escapes to where its kernel is smaller, far outside of the ball, at every width."
    ),
    "optimization": (
        "**What finite width changes.** Width is not what makes this converge. It makes the kernel of $f$ nearly "
        "constant, so that its $\\lambda_{\\min}$ at $w_0$ says what $\\mu$ will be; the kernel of $\\varphi(f)$ has "
        "$\\varphi'(f)^2$ in front, which follows the outputs. Swish and softmax come without a guarantee: their "
        "slope vanishes somewhere, and so may $\\lambda_{\\min}$."
    ),
    "lazy": (
        "**What finite width changes.** A narrow network made lazy by its scale is linear only in the small ball "
        "that it needs; a wide one is linear in any ball of fixed radius. And behind a swish output neither road "
        "helps: on the same path of weights the kernel of $f$ stays and that of $\\varphi(f)$ moves."
    ),
    "architectures": (
        "**What finite width changes.** A kernel entry is a sum over the $m$ neurons of each layer. Its random "
        "part at $w_0$ averages out only like $m^{-1/2}$, and training moves every neuron a little. What counts is "
        "the smallest width: three neurons do not average, however wide their neighbors are."
    ),
}

INFINITY_AND_TWO_NORM = (
    "**Why do Hessian and gradient scale differently?** Both weigh the layers' derivatives by "
    "$b = \\partial f/\\partial\\alpha$, whose $m$ entries are of size $m^{-1/2}$. The gradient adds their squares: "
    "$\\|b\\|_2$ stays. In the Hessian every neuron acts on its own, and the largest one counts: "
    "$\\|b\\|_\\infty$ vanishes. A nonlinear output, or one neuron through which all must pass, undoes that."
)
