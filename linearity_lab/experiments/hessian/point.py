"""Hessian norms against width."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Literal

from pydantic import NonNegativeInt

from linearity_lab.experiments.hessian.network import ComparedNetwork, titles
from linearity_lab.experiments.hessian.spec import HessianSpec, counts, hessian_key
from linearity_lab.runs import (
    OUTCOME_WORDS,
    Experiment,
    Outcome,
    ResultValue,
    Value,
    WidthPoint,
    columns,
    mean,
)
from linearity_lab.runs.columns import Column
from ntk_core.fits import PowerLaw, becomes_linear, exponent_line, fit_runs
from ntk_core.numbers import percent
from ntk_core.stored_numbers import NonNegative


class LayerBound(Value):
    """The layer quantities of Liu, Zhu & Belkin 2020, Theorem 3.1, means over the inputs.

    Attributes:
        bound: ‖H‖ is at most this, with measured constants.
        q_inf: Q_∞ = max_l ‖b⁽ˡ⁾‖_∞ with b⁽ˡ⁾ = ∂f/∂α⁽ˡ⁾.
        q_l: Q_L, the largest ‖∂α⁽ˡ⁾/∂w⁽ˡ⁾‖.
        q_221: Q_{2,2,1}, the largest (2,2,1)-norm of the layers' second derivatives.
        b_max: ‖b⁽ˡ⁾‖_∞ of each hidden layer.
        b_norm: ‖b⁽ˡ⁾‖₂ of each hidden layer.
    """

    bound: NonNegative
    q_inf: NonNegative
    q_l: NonNegative
    q_221: NonNegative
    b_max: tuple[NonNegative, ...]
    b_norm: tuple[NonNegative, ...]


class NonlinearParts(Value):
    """H̃ = φ''∇f∇fᵀ + φ'H with a nonlinear output, means over the inputs.

    Attributes:
        gradient_part: |φ''| ‖∇f‖², of order 1 at any width.
        linear_part: |φ'| ‖H‖, which vanishes with the width.
        lower: mean of max(0, gradient_part − linear_part), below ‖H̃‖.
    """

    gradient_part: NonNegative
    linear_part: NonNegative
    lower: NonNegative


class VectorNorm(Value):
    """The Hessian tensor of all C outputs, means over the inputs (Zhu, Liu & Belkin 2022, App. C).

    Attributes:
        norm: of the tensor, the largest value found: a lower bound.
        upper: (Σ_c ‖H_c‖²)^(1/2), an upper bound.
    """

    norm: NonNegative
    upper: NonNegative


class BallBound(Value):
    """Lower bounds of the suprema over a ball B(w₀, R): the largest values found.

    Attributes:
        radius: R.
        hessian: ‖H(w)‖ for the first input.
        hessian_random: the largest in as many random directions, at distance R.
        kernel_change: ‖K(w) − K(w₀)‖_F / ‖K(w₀)‖_F over the inputs.
        kernel_change_random: the largest in as many random directions.
        converged: whether every norm reached its tolerance.
        hessian_least: ‖H‖ where the way to the nearest known zero of H leaves the ball, or
            0 if the zero is inside: an upper bound of the infimum. Known for the network
            of Theorem 4.1 alone.
        q_inf, q_l, q_221: the largest layer quantities found, at distance R in random directions
            and along ±∇f; None unless bounds were requested.
        hessian_last_gain, kernel_change_last_gain: by which share the last 10 steps of the search
            raised the value; None in results of versions that did not record it.
    """

    radius: NonNegative
    hessian: NonNegative
    hessian_random: NonNegative
    kernel_change: NonNegative
    kernel_change_random: NonNegative
    converged: bool
    hessian_least: NonNegative | None = None
    q_inf: NonNegative | None = None
    q_l: NonNegative | None = None
    q_221: NonNegative | None = None
    hessian_last_gain: float | None = None
    kernel_change_last_gain: float | None = None


class TrainedChange(Value):
    """Kernel change in training of the same network from the same weights, as in ``kernel_change``.

    Attributes:
        sup_change: ΔK = sup over the recorded steps.
        num_steps: steps taken.
    """

    sup_change: NonNegative
    outcome: Outcome
    learning_rate: NonNegative
    num_steps: NonNegativeInt
    final_loss: NonNegative


class LayerShare(Value):
    """tr K_l / tr K over all training inputs and outputs, K = Σ_l K_l.

    Attributes:
        layer: its name, or its role if known: ``queries`` covers all blocks.
    """

    layer: str
    share: float


class HessianRun(Value):
    """One network drawn with one seed.

    Attributes:
        norm: ‖∂²f_a/∂w²‖, mean over the inputs.
        largest_norm: the largest over the inputs.
        residual: the largest residual of the eigenpairs found.
        converged: whether every residual reached the tolerance; if not, ``norm`` may be too small.
        num_matvecs: products with the Hessian, of all inputs.
        kernel: K(x, x)[c, c] = ‖∇f_c(x)‖², mean over all training inputs and outputs.
        exact: closed form of ‖H‖ (``shallow``) or of its w₂ block
            (``quadratic-bottleneck``), if known.
        zero_distance: distance of w₀ to the nearest known zero of H; of the network of Theorem 4.1
            alone.
        trained: None for seeds that were not trained.
        shares: kernel shares of the trained layers, if requested.
    """

    seed: NonNegativeInt
    norm: NonNegative
    largest_norm: NonNegative
    residual: NonNegative
    converged: bool
    num_matvecs: NonNegativeInt
    kernel: NonNegative
    exact: NonNegative | None = None
    zero_distance: NonNegative | None = None
    bound: LayerBound | None = None
    parts: NonlinearParts | None = None
    vector: VectorNorm | None = None
    balls: tuple[BallBound, ...] = ()
    trained: TrainedChange | None = None
    shares: tuple[LayerShare, ...] = ()

    @property
    def relative_norm(self) -> float:
        """‖H‖ / ‖∇f‖², with the mean ‖∇f‖² over inputs and outputs."""
        return self.norm / self.kernel if self.kernel > 0 else math.nan


class HessianBlocks(Value):
    """‖H_{l,l'}‖ of all pairs of trained layers, of the first seed and input; symmetric."""

    seed: NonNegativeInt
    layers: tuple[str, ...]
    norms: tuple[tuple[NonNegative, ...], ...]
    converged: bool


class HessianPoint(WidthPoint):
    """All seeds of one network at one width m, or number of tokens.

    Attributes:
        width: m, or the swept value.
        line: name of the network among those compared.
        wide_width: neurons, or channels, of the wide layers.
        min_width: of the narrowest hidden layer; of a DenseNet the smallest in-degree
            outside the first layer.
        num_tokens: T, if swept.
    """

    kind: Literal["hessian"] = "hessian"
    line: str
    network: ComparedNetwork
    wide_width: NonNegativeInt
    min_width: NonNegativeInt
    num_params: NonNegativeInt
    runs: tuple[HessianRun, ...]
    blocks: HessianBlocks | None = None
    num_tokens: NonNegativeInt | None = None

    @property
    def key(self) -> str:
        return hessian_key(self.width, self.line)

    @property
    def place(self) -> int:
        """Position on the horizontal axis: width of the wide layers, or T."""
        return self.num_tokens or self.wide_width


def _part(name: str, title: str, path: str) -> Column:
    """Column for a number of an optional part of a run: ``bound.q_inf``."""
    part, field = path.split(".")
    return Column(name, title, lambda _, run: getattr(getattr(run, part), field, None))


COLUMNS = (
    replace(columns.WIDTH, name="m"),
    Column("network", "network", lambda point, _: point.line, role="line"),
    Column("parameterization", "", lambda point, _: point.network.parameterization),
    columns.SEED,
    Column("width", "", lambda point, _: point.wide_width),
    Column("min_width", "", lambda point, _: point.min_width),
    Column(
        "hessian_norm",
        "Hessian norm ‖H‖",
        lambda _, run: run.norm,
        columns.precise,
        counts=attrgetter("converged"),
    ),
    Column("residual", "residual"),
    Column("converged", ""),
    Column("kernel", "kernel K(x, x)", format=columns.precise),
    Column("exact", "‖H‖ in closed form"),
    replace(Column("zero_distance", "distance of a zero of H"), optional=True),
    _part("bound", "sum of the bounds of its blocks", "bound.bound"),
    _part("q_inf", "Q_∞", "bound.q_inf"),
    _part("q_l", "Q_L", "bound.q_l"),
    _part("q_221", "Q₂,₂,₁", "bound.q_221"),
    _part("lower_bound", "lower bound of ‖H‖", "parts.lower"),
    _part("vector_hessian_norm", "‖H‖ of all outputs", "vector.norm"),
    _part("vector_upper_bound", "its upper bound", "vector.upper"),
    replace(
        _part("sup_kernel_change", "kernel change ΔK", "trained.sup_change"),
        format=columns.precise,
        counts=lambda run: run.trained is not None and run.trained.outcome == "converged",
    ),
    replace(_part("steps", "steps", "trained.num_steps"), optional=True),
    replace(_part("learning_rate", "learning rate η", "trained.learning_rate"), optional=True),
    replace(columns.OUTCOME, of=lambda _, run: run.trained and run.trained.outcome),
)


class HessianResult(ResultValue):
    """Result of a ``hessian`` run.

    ``points`` are in the order of the spec's keys; some may be missing.

    ‖∂²f_a/∂w²‖ of every network, width and seed, and further requested measures.

    Source: Liu, Zhu & Belkin 2020, Table 1; docs/math/hessian_against_width.md.

    >>> from linearity_lab.runs.gallery import GALLERY
    >>> result = HessianResult.model_validate_json((GALLERY / "liu-table1.json").read_bytes())
    >>> sorted({point.line for point in result.points})[:2]
    ['bottleneck', 'convnet']
    """

    columns = COLUMNS
    spec: HessianSpec
    points: tuple[HessianPoint, ...]

    def rows(self) -> list[dict[str, object]]:
        """One row per width, network and seed, with the balls and the shares of the kernel."""
        rows = super().rows()
        runs = [run for point in self.points for run in point.runs]
        layers = dict.fromkeys(each.layer for run in runs for each in run.shares)
        for row, run in zip(rows, runs, strict=True):
            found = {ball.radius: ball for ball in run.balls}
            for radius in self.spec.radii:
                ball = found.get(radius)
                row[f"sup_hessian_norm_R={radius:g}"] = ball and ball.hessian
                row[f"sup_kernel_change_R={radius:g}"] = ball and ball.kernel_change
                row[f"last_gain_of_hessian_R={radius:g}"] = ball and ball.hessian_last_gain
                gain = ball and ball.kernel_change_last_gain
                row[f"last_gain_of_kernel_change_R={radius:g}"] = gain
            shares = {each.layer: each.share for each in run.shares}
            row.update({f"share_{layer}": shares.get(layer) for layer in layers})
        return rows


def hessian_summary(spec: HessianSpec, points: Sequence[HessianPoint]) -> str:
    """Return a table of ‖H‖, K(x, x) and ΔK.

    They are mean ± standard error over the seeds; the exponents follow with their intervals.
    """
    known = titles(spec.lines())
    title = "tokens" if spec.swept == "num_tokens" else "width"
    swept = replace(columns.WIDTH, title=title, of=lambda point, _: point.place)
    network = replace(COLUMNS[1], format=known.__getitem__)
    lines = columns.text_table([network, swept, *COLUMNS[2:]], points, _excluded)
    if any(not run.converged for point in points for run in point.runs):
        lines += [
            "",
            "! unconverged: the residual exceeds its tolerance, the norm may be larger; excluded "
            "from means",
        ]
    lines += _ball_lines(points, known)
    ends = {
        run.trained.outcome for point in points for run in point.runs if run.trained is not None
    } - {"converged"}
    lines += [
        f"! {outcome}: {OUTCOME_WORDS[outcome]}; excluded from the mean of ΔK"
        for outcome in sorted(ends)
    ]
    missed = [
        network.almost_everywhere for network in spec.lines().values() if network.almost_everywhere
    ]
    lines += ["", *dict.fromkeys(missed)] if missed else []
    found = [line for line in known if any(point.line == line for point in points)]
    laws = list[str]()
    for line in found:
        law = norm_law(points, line)
        relative = norm_law(points, line, relative=True)
        verdict = f"; becomes linear: {becomes_linear(relative)}" if law else ""
        name = "T" if points[0].num_tokens else "m"
        laws.append(exponent_line(f"{known[line]}: ‖H‖", law, name) + verdict)
    return "\n".join([*lines, "", *laws])


def _ball_lines(points: Sequence[HessianPoint], known: Mapping[str, str]) -> list[str]:
    """Return a table of the largest values found in each ball.

    It states what the last steps still found.

    A search that has not ended has values far below the supremum, so that its remaining gain
    is part of the result.
    """
    rows = []
    for point in points:
        balls = [ball for run in point.runs for ball in run.balls]
        for radius in sorted({ball.radius for ball in balls}):
            found = [ball for ball in balls if ball.radius == radius]
            hessian = mean([ball.hessian for ball in found]).value
            kernel_change = mean([ball.kernel_change for ball in found]).value
            unconverged = sum(not ball.converged for ball in found)
            rows.append(
                (
                    known[point.line],
                    f"{point.place:,}",
                    f"{radius:g}",
                    f"{hessian:.4g}",
                    _largest_gain([ball.hessian_last_gain for ball in found]),
                    f"{kernel_change:.4g}",
                    _largest_gain([ball.kernel_change_last_gain for ball in found]),
                    str(len(found)),
                    f"! {unconverged} unconverged" if unconverged else "",
                )
            )
    if not rows:
        return []
    titles_of_columns = (
        "network",
        "tokens" if points[0].num_tokens else "width",
        "R",
        "sup ‖H‖ ≥",
        "last 10 steps",
        "sup ΔK ≥",
        "last 10 steps",
        "runs",
        "",
    )
    explanation = (
        "Balls around w₀: means of the largest values found, and the largest gain in the "
        "last 10 steps"
    )
    return ["", explanation, *columns.aligned([titles_of_columns, *rows])]


def _largest_gain(gains: Sequence[float | None]) -> str:
    """Return the largest gain in percent; older results have none."""
    known = [gain for gain in gains if gain is not None]
    return percent(max(known)) if known else "not recorded"


def norm_law(
    points: Sequence[HessianPoint], line: str, *, relative: bool = False
) -> PowerLaw | None:
    """Fit ‖H‖, or ‖H‖ / ‖∇f‖², against width among converged seeds."""
    runs = [(point.place, run) for point in points if point.line == line for run in point.runs]
    return fit_runs(
        runs, lambda run: run.relative_norm if relative else run.norm, lambda run: run.converged
    )


def _excluded(runs: Sequence[HessianRun]) -> str:
    """Number of runs excluded from means, with reasons."""
    unconverged = sum(not run.converged for run in runs)
    trained = columns.marks(run.trained for run in runs if run.trained is not None)
    return ", ".join(filter(None, [f"! {unconverged} unconverged" if unconverged else "", trained]))


EXPERIMENT = Experiment(
    HessianSpec,
    HessianPoint,
    HessianResult,
    counts,
    hessian_summary,
    ("liu", "zhu"),
    record_bytes=130,
    parts=(ComparedNetwork,),
)
