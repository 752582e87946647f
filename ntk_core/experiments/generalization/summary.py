"""``generalization`` as text: test errors of network and kernels with their intervals, and how the kernel turned."""

from collections.abc import Sequence

from ntk_core.experiments.generalization.result import GeneralizationPoint, GeneralizationRun, predictors, wilson
from ntk_core.experiments.generalization.spec import GeneralizationSpec
from ntk_core.runs import aligned, between, marks, outcome_notes, with_error

TITLES = {
    "network": "network",
    "linear": "linear model",
    "first_kernel": "K₀",
    "after_kernel": "K_T",
    "onward": "onward",
    "infinite": "K_∞",
}


def generalization_summary(spec: GeneralizationSpec, points: Sequence[GeneralizationPoint]) -> str:
    """One row per point: means over the seeds of the test error (of the test loss without classes)."""
    what = measured(points)
    head = ("width", "ρ", "n", *TITLES.values(), "network, 95%", "alignment", "condition of K₀", "")
    rows = [_row(point, what) for point in points]
    floor = spec.least_risk[what == "loss"]
    said = [f"Test {what}; the last interval but one is Wilson's, of all test points of the network."]
    least = [f"Nothing is below {floor:.3g}, by the law of the data."] if floor > 0 else []
    return "\n".join([*aligned([head, *rows]), "", *said, *least, *outcome_notes(points)])


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


def _row(point: GeneralizationPoint, what: str) -> tuple[str, ...]:
    runs = point.runs
    low, high = pooled(runs, "network")
    turned = f"{with_error([run.alignment[0] for run in runs])} → {with_error([run.alignment[-1] for run in runs])}"
    return (
        f"{point.width:,}",
        f"{point.richness:g}",
        f"{point.num_samples:,}",
        *(with_error(values(runs, name, what)) for name in TITLES),
        f"{low:.3g}–{high:.3g}" if low == low else "–",
        turned,
        between([run.condition[0] for run in runs], ".2g"),
        marks(runs),
    )
