"""What stands below every figure: its formula, what to look for, what finite width does, and words to look up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FigureWords:
    """What stands below one figure.

    Attributes:
        formula: what it measures, Markdown with LaTeX; empty where the page says it beside the figure.
        see: what to look for.
        finite_width: why a network of finite width differs from the limit.
        terms: names of entries of the glossary.
    """

    formula: str
    see: str
    finite_width: str
    terms: tuple[str, ...] = ()


CHANGE_FORMULA = r"$\Delta K=\sup_t\|K(w_t)-K(w_0)\|_F\,/\,\|K(w_0)\|_F$, all outputs and pairs of inputs"
ALONG_FORMULA = r"$\Delta K(t)=\|K(w_t)-K(w_0)\|_F\,/\,\|K(w_0)\|_F$"
NORM_FORMULA = r"$\|H\|=\max_i|\lambda_i|$ of $H=\partial^2f_a(w;x)/\partial w^2$ at $w_0$, mean over the inputs"
OPEN = "Open markers did not reach the loss threshold, and no mean and no exponent uses them."
EXPONENT_TERMS = ("exponent", "width", "seed")

FIGURES: dict[str, FigureWords] = {
    "kernel_change.against_width": FigureWords(
        CHANGE_FORMULA,
        "A mark is a seed, a line the mean, the band its standard error. Behind a linear output the line falls, "
        "faster "
        "than the dashed $m^{-1/2}$; behind softmax and swish it stays. With a narrow layer only its own width "
        "counts.",
        f"At small $m$ the Hessian is large behind every output, so every kernel moves. {OPEN}",
        ("kernel-change", *EXPONENT_TERMS, "linear-output"),
    ),
    "kernel_change.against_time": FigureWords(
        ALONG_FORMULA,
        "The loss falls below while the kernel moves above, most of it early. At large width the lines of the linear "
        "output stay near 0; those of other outputs leave at once.",
        "A kernel that moves early and then rests has found a new tangent, not the old one. Only at large width is it "
        "the old one.",
        ("kernel-change", "time", "loss-threshold"),
    ),
    "hessian.norm": FigureWords(
        NORM_FORMULA,
        "Three groups: networks behind a linear output fall near the dashed $m^{-1/2}$; those behind a nonlinear "
        "output, and those with a bottleneck, stay.",
        "Gaussian output weights add a factor $\\sqrt{\\log m}$: exponents come out a little above −1/2. Choose "
        "$\\sqrt m\\,\\|H\\|$ to see the slow growth that is left.",
        ("hessian", "spectral-norm", "ntk-parameterization", "exponent"),
    ),
    "hessian.change": FigureWords(
        CHANGE_FORMULA,
        "The same weights as in the figure of norms, trained: where $\\|H\\|$ falls, $\\Delta K$ falls at least as "
        "fast; "
        "where it stays, the kernel moves.",
        f"The kernel may move less than the Hessian lets it: $\\|H\\|R$ is an upper bound. {OPEN}",
        ("kernel-change", "hessian", "bottleneck"),
    ),
    "hessian.ball_hessian": FigureWords(
        r"$\sup\|H(w)\|$ over $\|w-w_0\|_2\le R$; shown is the largest value met",
        "Behind a linear output the solid line falls with the width at every radius. Dotted: random directions hardly "
        "meet anything larger than at $w_0$.",
        "The farther from $w_0$, the wider a network has to be: at a large $R$ the narrow ones are far from linear. "
        "The "
        "true sup may be larger than what the ascent has met.",
        ("ball", "hessian", "spectral-norm"),
    ),
    "hessian.ball_kernel_change": FigureWords(
        r"$\sup\|K(w)-K(w_0)\|_F/\|K(w_0)\|_F$ over $\|w-w_0\|_2\le R$; shown is the largest value met",
        "It follows the Hessian: about proportional to $R$ and to $\\|H\\|$. In random directions the kernel hardly "
        "changes, so a search is needed to see it.",
        "In the ball there are worse places than those that training visits: compare with $\\Delta K$ in training.",
        ("ball", "kernel-change"),
    ),
    "hessian.quantities": FigureWords(
        r"$\|H\|\le C_1Q_{2,2,1}Q_\infty+m^{-1/2}C_2Q_L$, with $b=\partial f/\partial\alpha^{(l)}$",
        "Only the ∞-norm of ∂f/∂α falls. Its 2-norm, which weighs the gradient, stays at 1, and so do the norms of "
        "the "
        "layers' derivatives.",
        "The largest of $m$ Gaussian weights is about $\\sqrt{2\\log m}$ times a typical one, which the falling line "
        "shows as an exponent above −1/2.",
        ("layer-quantities", "infinity-norm", "two-norm", "two-two-one-norm"),
    ),
    "hessian.shown_bounds": FigureWords(
        r"$|\varphi''|\|\nabla f\|^2-|\varphi'|\|H\|\le\|\tilde H\|$; behind a linear output $\|H\|\le$ Theorem 3.1",
        "The measured norm lies between what the theory puts below and above it, at every width and seed.",
        "Upper bounds add norms that do not all point in one direction, so they lie several times too high; what "
        "counts "
        "is that they fall at the same slope.",
        ("layer-quantities", "hessian", "nonlinear-output", "beta"),
    ),
    "hessian.shown_blocks": FigureWords(
        r"$\|H_{l,l'}\|$ of the weights of layers $l$ and $l'$, first seed and input",
        "Which pairs of layers bend the output together. The norm of the whole is at most their sum and at least the "
        "largest one.",
        "One seed and one input: with a bottleneck the largest block differs much from draw to draw.",
        ("hessian", "spectral-norm"),
    ),
    "architectures.change": FigureWords(
        CHANGE_FORMULA,
        "Two networks on the same data and seeds: compare how fast their lines fall, not where they begin.",
        f"Widths of different kinds of layers are not the same thing: channels are fewer than neurons. {OPEN}",
        ("kernel-change", *EXPONENT_TERMS),
    ),
    "architectures.distance": FigureWords(
        r"$\|K(w_0)-K_\infty\|_F/\|K_\infty\|_F$ at initialization",
        "The kernel at $w_0$ approaches the one of infinite width at the slope of the dashed guide, $m^{-1/2}$, "
        "whether "
        "or not it moves in training.",
        "$K(w_0)$ is a mean over $m$ random neurons a layer: its error is that of a mean.",
        ("infinite-width", "tangent-kernel", "exponent"),
    ),
    "architectures.kernel": FigureWords(
        r"$\frac1C\sum_aK[i,j,a,a]$ of the first seed, inputs ordered by class",
        "Blocks on the diagonal are the classes. Before and after training look alike where the network is wide, and "
        "differ where it is narrow.",
        "A mean over the outputs hides how the kernel moves between classes; $\\Delta K$ beside it uses all entries.",
        ("tangent-kernel", "infinite-width"),
    ),
    "architectures.spectra": FigureWords(
        r"$\lambda_1\ge\dots\ge\lambda_{nC}$ of $K$",
        "Large eigenvalues are directions learned first. Those before and after training fall together as the network "
        "widens; the dashed line is infinite width.",
        "Small eigenvalues need the widest networks: their relative error is the largest.",
        ("tangent-kernel", "lambda-min", "condition-number"),
    ),
    "architectures.drawing": FigureWords(
        r"$z=Wa/\sqrt{\text{fan-in}}+b$ along every arrow",
        "Layers from left to right, as tall as they are wide. Where it is narrow, all must pass through few neurons.",
        "What counts in the theory is the narrowest hidden layer, however wide its neighbors are.",
        ("width", "bottleneck", "ntk-parameterization"),
    ),
    "dynamics.figure.outputs": FigureWords(
        r"$f(w_t;x)$ and $f_{\mathrm{lin}}(w_t;x)=f(w_0;x)+\langle\nabla f(w_0;x),w_t-w_0\rangle$",
        "Solid (network), dashed (linear model) and dotted (infinite width) lie on each other once the network is "
        "wide "
        "and its output linear.",
        "All three begin at the same outputs at $w_0$, but the dotted one learns by the kernel of infinite width, "
        "which "
        "a narrow network does not have.",
        ("linear-model", "infinite-width"),
    ),
    "dynamics.figure.difference": FigureWords(
        r"$\sum_i\|F-F_{\mathrm{lin}}\|^2/\sum_i\|F_{\mathrm{lin}}\|^2$ on the training points",
        "Lines of wider networks lie lower. A filled marker is the moment from which the two stay apart by more than "
        "1%.",
        "The difference is a square: it falls like $m^{-1}$ where the outputs differ like $m^{-1/2}$.",
        ("linear-model", "departure", "exponent"),
    ),
    "dynamics.figure.motion": FigureWords(
        r"$f(w_t;\cdot)$ and $f_{\mathrm{lin}}(w_t;\cdot)$ at one recorded step $t$",
        "Press ▶ : a wide network bends exactly like its linear model; a narrow one finds another way to the points.",
        "Between the training points nothing holds the two together but the kernel: there they part first.",
        ("linear-model", "time"),
    ),
    "dynamics.figure.ball": FigureWords(
        r"$\|w_t-w_0\|_2$ above, $\Delta K(t)$ below",
        "How far the weights go, and how far the kernel. Methods that stay in the ball of gradient descent keep their "
        "kernel; who leaves it by far, moves it.",
        "The distance does not fall with the width, the kernel change does: the ball is equally large, but flatter.",
        ("ball", "kernel-change", "stable-rate"),
    ),
    "optimization.figure1": FigureWords(
        r"$L_t\le(1-\eta\mu\rho^2/n)^tL_0$ where $|\varphi'|\ge\rho>0$",
        "At the smallest rate the loss is nearly a straight line, below the dashed bound. Larger rates may rise first "
        "and then fall; beyond, they leave at the top.",
        "The bound takes the smallest slope and eigenvalue of the whole path, so it lies far above, at every width.",
        ("pl-condition", "mu", "rho", "catapult"),
    ),
    "optimization.figure2": FigureWords(
        CHANGE_FORMULA + r", of $\varphi(f)$",
        "Flat lines: behind a nonlinear output the kernel moves by about its own size at every width. The loss falls "
        "all the same.",
        f"Width makes the kernel of $f$ rest, never that of $\\varphi(f)$. {OPEN}",
        ("kernel-change", "nonlinear-output"),
    ),
    "optimization.figure3": FigureWords(
        r"eigenvalues of $K$ of $\varphi(f)$; condition number $\lambda_{\max}/\lambda_{\min}$",
        "$\\lambda_{\\min}$ stays away from 0 where training works. Above the stable rate $\\lambda_{\\max}$ has to "
        "come "
        "down first.",
        "In a wide network $\\lambda_{\\min}$ of $f$ stays at its value at $w_0$; that of $\\varphi(f)$ has the "
        "slopes "
        "$\\varphi'(f)^2$ in front.",
        ("lambda-min", "condition-number", "stable-rate"),
    ),
    "optimization.figure4": FigureWords(
        r"$\|\nabla L\|^2/2L$",
        "As long as this ratio stays above a constant, the loss falls exponentially; the dashed line is what the "
        "theorem "
        "promises. Where a run is stuck, it goes to 0.",
        "The ratio depends on where the residual points: it may be far above the smallest eigenvalue.",
        ("pl-condition", "mu"),
    ),
    "lazy.figure1": FigureWords(
        r"$F=\varphi(\alpha f)$, $\ \kappa=\|F(w_0)-y\|\,\|H\|/\|\nabla F\|^2$",
        "Along the scale everything falls like $1/\\alpha$ where the output at $w_0$ is 0, and stays where it is not.",
        "The smallest width of the sweep: scaling makes even a narrow network lazy, in the small ball that it needs.",
        ("kappa", "lazy-training"),
    ),
    "lazy.figure2": FigureWords(
        r"$\kappa=\|F(w_0)-y\|\,\|H\|/\|\nabla F\|^2$ at $\alpha=1$",
        "Along the width $\\kappa$ falls like $m^{-1/2}$ since the Hessian does; the weights go as far as before.",
        "Where $f(w_0)$ is drawn at random its size scatters, and $\\kappa$ with it: the interval of the exponent is "
        "wide.",
        ("kappa", "hessian", "width"),
    ),
    "lazy.figure3": FigureWords(
        r"$\|w-w_0\|_2$ and $\|w-w_0\|_\infty$ at the end of training",
        "The 2-norm is flat: all weights together go as far in a wide network. Only the largest single move falls.",
        "The largest of $m$ moves grows a little with their number: the line falls more slowly than the dashed guide.",
        ("two-norm", "infinity-norm", "ball"),
    ),
    "lazy.figure4": FigureWords(
        CHANGE_FORMULA + r", of $\alpha f$ and of $\varphi(\alpha f)$",
        "Two kernels on one path of weights: one comes to rest with the width, the other one does not.",
        "What moves the second one is the output itself: $\\varphi'(f)$ changes as $f$ goes to its target.",
        ("kernel-change", "nonlinear-output", "lazy-training"),
    ),
    "early_time.training": FigureWords(
        r"$L=\frac1{2n}\sum_i(f(x_i)-y_i)^2$, of the network and of $\langle\beta,\psi(x)\rangle$",
        "The curves lie on each other until the dotted line, where the linear model has most of its way behind it; "
        "the "
        "network departs later, at the dashed line, if at all.",
        "At $m$ neurons the kernel at $w_0$ is off by about $\\sqrt{d/m}$: the curves differ by some percent from the "
        "start.",
        ("psi", "departure", "norm-feature"),
    ),
    "early_time.outputs": FigureWords(
        r"$f(w_t;x)$ and $\langle\beta_t,\psi(x)\rangle$ on single test inputs",
        "Solid and dashed lines of one color go together: not only the mean loss agrees, but every single output.",
        "Single outputs scatter more than their mean; the difference shrinks as $d$ and $m$ grow.",
        ("psi", "discrepancy"),
    ),
    "early_time.against": FigureWords(
        r"$\sup_t\mathrm E(f_t-f_t^{\mathrm{lin}})^2/\mathrm E\,y^2$ over the linear phase, or the time of departure",
        "The discrepancy falls as the dimension or the width grows: the theorem is about large $d$.",
        "The theorem lets $n$ and $m$ grow faster than $d$; where they do not, the noise of the kernel, "
        "$\\sqrt{d/m}$, "
        "is what is seen.",
        ("discrepancy", "departure", "exponent"),
    ),
    "early_time.kernels": FigureWords(
        r"$\|K(w_0)-\psi\psi^\top\|$ in spectral and Frobenius norm, 1 at the first point",
        "In the spectral norm the distance falls faster than the dashed $1/d$, in the Frobenius norm more slowly: "
        "only "
        "the first one proves something.",
        "Both kernels have norms of order $n/d$, so a distance has to fall faster than that to be small.",
        ("psi", "spectral-norm", "frobenius-norm"),
    ),
    "dag.change": FigureWords(
        CHANGE_FORMULA,
        "Graphs all of whose neurons have many incoming edges fall near or below the dashed $m^{-1/2}$; a narrow "
        "layer "
        "keeps its line up.",
        f"The axis is the smallest in-degree that was drawn, or the width where that one is constant. {OPEN}",
        ("kernel-change", "in-degree", "graph"),
    ),
    "dag.hessian": FigureWords(
        NORM_FORMULA,
        "It falls with $\\Delta K$ and stays with it, at the slope of the theorem, −1/2, up to a logarithm.",
        "Few inputs and narrow groups make the seeds scatter; what counts is the slope.",
        ("hessian", "in-degree", "exponent"),
    ),
    "dag.layer_hessian": FigureWords(
        r"$\|\partial^2z_v/\partial w^2\|$ of one neuron $v$ a group, by the weights below it",
        "Every pre-activation above the first layer becomes linear in the weights below it, not the output alone.",
        "Pre-activations of the first layer are linear at every width, so they have no line.",
        ("pre-activation", "hessian"),
    ),
    "dag.layer_change": FigureWords(
        r"$\sup_t\|K_v(w_t)-K_v(w_0)\|_F/\|K_v(w_0)\|_F$ of two neurons a group",
        "Their kernels come to rest with the width too, group by group.",
        "Two neurons a group are looked at; the theorem speaks of all.",
        ("pre-activation", "kernel-change"),
    ),
    "dag.eigenvalue": FigureWords(
        r"$\lambda_{\min}(K(w))/\lambda_{\min}(K(w_0))$, on the path and the smallest met in $\|w-w_0\|_2\le R$",
        "As the width grows both shares come up to 1: in a ball of fixed radius the kernel stays well conditioned.",
        "At small width there are places in the ball where an eigenvalue is nearly lost, though training does not go "
        "there.",
        ("lambda-min", "ball", "pl-condition"),
    ),
    "dag.gradient": FigureWords(
        r"$\|\nabla f\|^2=K(x,x)$ at $w_0$, and its lower bound in expectation",
        "The gradient neither vanishes nor grows with the width, and stays above its bound.",
        "The bound is about the expectation: single seeds may lie below it.",
        ("tangent-kernel", "seed"),
    ),
    "dag.drawing": FigureWords(
        r"$z_v=\frac1{\sqrt{\mathrm{in}(v)}}\sum_{u\to v}w_{uv}\alpha_u$",
        "Groups of neurons from the input to the output, and the edges between them; narrow groups are marked.",
        "In-degrees are those at the width that is shown: a group of fixed size does not grow with it.",
        ("graph", "in-degree"),
    ),
    "results.compared": FigureWords(
        CHANGE_FORMULA + r", or the measure that is chosen",
        "One color a run: where two lines lie on each other, what differs between the runs does not matter; compare "
        "slopes "
        "rather than heights.",
        f"Runs of few widths or seeds have wide bands: two lines that cross inside them are not told apart. {OPEN}",
        ("exponent", "standard-error", "kernel-change"),
    ),
    "own_data.scatter": FigureWords(
        r"$(u_1^\top(x-\bar x),\,u_2^\top(x-\bar x))$ with the two directions $u$ of largest variance",
        "Every dot is a sample as the network will see it, with the color and symbol of its class. Classes that lie "
        "apart "
        "here are easy; those that do not may still lie apart in other directions.",
        "No network has seen this yet. Data decide how fast one learns; width and output decide whether its kernel "
        "stays.",
        ("tangent-kernel", "width"),
    ),
}
_SAME = {"kernel_a": "kernel", "kernel_b": "kernel", "drawing_a": "drawing", "drawing_b": "drawing"}


def page_figure_words(key: str) -> FigureWords | None:
    """The words of a figure of a page by its key (``page.figure``); None where there are none."""
    page, _, name = key.partition(".")
    return FIGURES.get(f"{page}.{_SAME.get(name, name)}")
