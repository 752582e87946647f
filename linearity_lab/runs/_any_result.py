"""Points and results of any experiment, for fields of events and files."""

from typing import Annotated

from pydantic import BeforeValidator, SerializeAsAny

from linearity_lab.runs._result import ResultValue
from linearity_lab.runs._table import KINDS
from linearity_lab.runs._values import PointValue


def _point(data: object) -> object:
    """Validate a point's JSON by its ``kind``; return other values unchanged."""
    if not isinstance(data, dict):
        return data
    kind = data.get("kind")
    if isinstance(kind, str) and kind in KINDS:
        return KINDS[kind].point.model_validate(data)
    return data


def _result(data: object) -> object:
    """Validate a result's JSON by its spec's experiment; return other values unchanged."""
    spec = data.get("spec") if isinstance(data, dict) else None
    if not isinstance(spec, dict):
        return data
    name = spec.get("experiment")
    if isinstance(name, str) and name in KINDS:
        return KINDS[name].result.model_validate(data)
    return data


Point = Annotated[SerializeAsAny[PointValue], BeforeValidator(_point)]
Result = Annotated[SerializeAsAny[ResultValue], BeforeValidator(_result)]
