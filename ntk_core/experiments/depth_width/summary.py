"""``depth_width`` as text: the scatter of K(x, x) with its interval, and what was trained."""

from collections.abc import Sequence

from ntk_core.experiments.depth_width.random_kernels import MOST_OF_ONE
from ntk_core.experiments.depth_width.result import DepthWidthPoint
from ntk_core.experiments.depth_width.spec import DepthWidthSpec
from ntk_core.runs import aligned, marks, outcome_notes, with_error

TAILS = (
    f"* One network has more than {MOST_OF_ONE:.0%} of the sum of K²: the tail is heavier than so many networks show, "
    "and the interval too short."
)


def depth_width_summary(spec: DepthWidthSpec, points: Sequence[DepthWidthPoint]) -> str:
    """One row per pair; ΔK and ‖H‖ / ‖∇f‖² are means over the seeds."""
    head = ("depth", "width", "β", "CV² of K (bootstrap 95%)", "ln(1+CV²)/β", "ΔK", "‖H‖/‖∇f‖²", "")
    lines = aligned([head, *map(_row, points)])
    tails = [TAILS] if any(point.largest_share > MOST_OF_ONE for point in points) else []
    return "\n".join([*lines, "", *tails, *outcome_notes(points)])


def _row(point: DepthWidthPoint) -> tuple[str, ...]:
    star = "*" if point.largest_share > MOST_OF_ONE else ""
    return (
        str(point.depth),
        f"{point.width:,}",
        f"{point.beta:.4g}",
        f"{point.cv_squared:.3g} ({point.low:.3g}–{point.high:.3g}){star}",
        f"{point.growth:.2f}",
        with_error([run.sup_change for run in point.runs if run.outcome == "converged"]),
        with_error([run.curvature for run in point.runs]),
        marks(point.runs),
    )
