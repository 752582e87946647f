"""What came out: plain, frozen values with their seeds, outcomes and provenance; JSON in and out; free of JAX.

One module an experiment. ``Point`` and ``Result`` are the types to read any experiment's JSON with: a point names its
experiment by ``kind``, a result by its spec.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, SerializeAsAny

from ntk_core.results._dag import DAGPoint, DAGResult, DAGRun, LayerLinearity
from ntk_core.results._dynamics import DEPARTURE_LEVEL, DynamicsPoint, DynamicsResult, DynamicsRun, ModelPath, departure
from ntk_core.results._early_time import (
    DEPARTURE_SHARE,
    EARLY_OUTCOME_WORDS,
    LINEAR_PHASE_SHARE,
    Constants,
    EarlyPoint,
    EarlyResult,
    EarlyRun,
    KernelComparison,
    ModelCurve,
    kernel_rows,
)
from ntk_core.results._hessian import (
    BallBound,
    HessianBlocks,
    HessianPoint,
    HessianResult,
    HessianRun,
    LayerBound,
    NonlinearParts,
    TrainedChange,
)
from ntk_core.results._kernel_drift import DriftPoint, DriftResult, DriftRun, KernelSnapshot
from ntk_core.results._lazy import LazyPoint, LazyResult, LazyRun
from ntk_core.results._optimization import OptimizationPoint, OptimizationResult, OptimizationRun
from ntk_core.results._values import (
    OUTCOME_WORDS,
    Mean,
    Outcome,
    PointValue,
    Provenance,
    ResultValue,
    Value,
    WidthPoint,
    csv_text,
    mean,
)

# One entry an experiment.
POINTS: dict[str, type[PointValue]] = {
    "kernel_drift": DriftPoint,
    "dynamics": DynamicsPoint,
    "dag": DAGPoint,
    "early_time": EarlyPoint,
    "hessian": HessianPoint,
    "optimization": OptimizationPoint,
    "lazy": LazyPoint,
}
RESULTS: dict[str, type[ResultValue]] = {
    "kernel_drift": DriftResult,
    "dynamics": DynamicsResult,
    "dag": DAGResult,
    "early_time": EarlyResult,
    "hessian": HessianResult,
    "optimization": OptimizationResult,
    "lazy": LazyResult,
}


def _point(data: Any) -> Any:
    """A point from its JSON, by its ``kind``; anything else as it is."""
    kind = data.get("kind") if isinstance(data, dict) else None
    return POINTS[kind].model_validate(data) if isinstance(kind, str) and kind in POINTS else data


def _result(data: Any) -> Any:
    """A result from its JSON, by the experiment of its spec; anything else as it is."""
    spec = data.get("spec") if isinstance(data, dict) else None
    name = spec.get("experiment") if isinstance(spec, dict) else None
    return RESULTS[name].model_validate(data) if isinstance(name, str) and name in RESULTS else data


Point = Annotated[SerializeAsAny[PointValue], BeforeValidator(_point)]
Result = Annotated[SerializeAsAny[ResultValue], BeforeValidator(_result)]

__all__ = [
    "DEPARTURE_LEVEL",
    "DEPARTURE_SHARE",
    "EARLY_OUTCOME_WORDS",
    "LINEAR_PHASE_SHARE",
    "OUTCOME_WORDS",
    "POINTS",
    "RESULTS",
    "BallBound",
    "Constants",
    "DAGPoint",
    "DAGResult",
    "DAGRun",
    "DriftPoint",
    "DriftResult",
    "DriftRun",
    "DynamicsPoint",
    "DynamicsResult",
    "DynamicsRun",
    "EarlyPoint",
    "EarlyResult",
    "EarlyRun",
    "HessianBlocks",
    "HessianPoint",
    "HessianResult",
    "HessianRun",
    "KernelComparison",
    "KernelSnapshot",
    "LayerBound",
    "LayerLinearity",
    "LazyPoint",
    "LazyResult",
    "LazyRun",
    "Mean",
    "ModelCurve",
    "ModelPath",
    "NonlinearParts",
    "OptimizationPoint",
    "OptimizationResult",
    "OptimizationRun",
    "Outcome",
    "Point",
    "PointValue",
    "Provenance",
    "Result",
    "ResultValue",
    "TrainedChange",
    "Value",
    "WidthPoint",
    "csv_text",
    "departure",
    "kernel_rows",
    "mean",
]
