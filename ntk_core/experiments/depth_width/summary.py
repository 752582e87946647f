"""``depth_width`` as text: the scatter of K(x, x) with its interval, and what was trained."""

from collections.abc import Sequence

from ntk_core.experiments.depth_width.random_kernels import MOST_OF_ONE
from ntk_core.experiments.depth_width.result import COLUMNS, DepthRun, DepthWidthPoint
from ntk_core.experiments.depth_width.spec import DepthWidthSpec
from ntk_core.numbers import percent
from ntk_core.runs import marks, outcome_notes
from ntk_core.runs.columns import text_table

TAILS = (
    f"One network has more than {percent(MOST_OF_ONE)} of the sum of K²: the tail is heavier than the sample "
    "shows, and the interval of CV² is too short."
)


def depth_width_summary(spec: DepthWidthSpec, points: Sequence[DepthWidthPoint]) -> str:
    """One row per pair; ΔK and ‖H‖ / ‖∇f‖² are means over the seeds."""
    tails = [TAILS] if any(point.largest_share > MOST_OF_ONE for point in points) else []
    return "\n".join([*text_table(COLUMNS, points, _marks), "", *tails, *outcome_notes(points)])


def _marks(runs: Sequence[DepthRun | None]) -> str:
    return marks([run for run in runs if run is not None])
