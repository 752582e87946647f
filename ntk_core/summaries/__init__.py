"""Results as text: tables of means with their errors, fitted exponents. One module an experiment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ntk_core.results import PointValue
from ntk_core.specs import Spec
from ntk_core.summaries._dag import dag_summary
from ntk_core.summaries._dynamics import dynamics_summary
from ntk_core.summaries._early_time import early_summary, fit_discrepancy, fit_kernel_distance
from ntk_core.summaries._hessian import hessian_summary, norm_law, series_title
from ntk_core.summaries._kernel_drift import drift_summary
from ntk_core.summaries._lazy import lazy_summary
from ntk_core.summaries._optimization import optimization_summary

__all__ = ["fit_discrepancy", "fit_kernel_distance", "norm_law", "series_title", "summary"]

# One entry an experiment.
_SUMMARIES: dict[str, Callable[[Any, Any], str]] = {
    "kernel_drift": drift_summary,
    "dynamics": dynamics_summary,
    "dag": dag_summary,
    "early_time": early_summary,
    "hessian": hessian_summary,
    "optimization": optimization_summary,
    "lazy": lazy_summary,
}


def summary(spec: Spec, points: Sequence[PointValue]) -> str:
    """What the finished points of a spec show, as lines of text."""
    return _SUMMARIES[spec.experiment](spec, points) if points else "No point is finished."
