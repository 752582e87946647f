"""``generalization`` as text: test errors of network and kernels with their intervals, and how the kernel turned."""

from collections.abc import Sequence

from ntk_core.experiments.generalization.result import (
    COLUMNS,
    GeneralizationPoint,
    GeneralizationRun,
    predictors,
    wilson,
)
from ntk_core.experiments.generalization.spec import GeneralizationSpec
from ntk_core.runs import marks, outcome_notes
from ntk_core.runs.columns import text_table


def generalization_summary(spec: GeneralizationSpec, points: Sequence[GeneralizationPoint]) -> str:
    """One row per point: means over the seeds of the test error (of the test loss without classes)."""
    what = measured(points)
    other = "loss" if what == "error" else "error"
    shown = [column for column in COLUMNS if not column.name.endswith(f"_{other}")]
    floor = spec.least_risk[what == "loss"]
    said = ["95%: Wilson's interval of the network's test error, of all test points."]
    least = [f"Nothing is below {floor:.3g}, by the law of the data."] if floor > 0 else []
    return "\n".join([*text_table(shown, points, _ends), "", *said, *least, *outcome_notes(points)])


def measured(points: Sequence[GeneralizationPoint]) -> str:
    """``error`` where there are classes, else ``loss``."""
    errors = [run.network[0].error for point in points for run in point.runs]
    return "error" if any(error == error for error in errors) else "loss"


def values(runs: Sequence[GeneralizationRun], name: str, what: str) -> list[float]:
    """The test error or loss of one predictor at the end of each run that has it."""
    found = [predictors(run)[name] for run in runs]
    return [getattr(each, what) for each in found if each is not None]


def pooled(runs: Sequence[GeneralizationRun], name: str) -> tuple[float, float]:
    """Wilson's interval of the test error, all test points of these runs taken together."""
    errors, count = values(runs, name, "error"), sum(run.num_test for run in runs)
    return wilson(sum(errors) / len(errors), count) if errors else wilson(0, 0)


def _ends(runs: Sequence[GeneralizationRun]) -> str:
    """Wilson's interval where there are classes, and the runs that did not converge."""
    low, high = pooled(runs, "network")
    return " ".join(filter(None, [f"95%: {low:.3g}–{high:.3g}" if low == low else "", marks(runs)]))
