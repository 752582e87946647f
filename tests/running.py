"""Helpers that finish runs, and load scripts of examples/."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from linearity_lab.runs import Spec, experiment_of, run
from linearity_lab.runs.events import Ended
from ntk_core.progress import Progress

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def example(name: str) -> ModuleType:
    """Load a script of examples/."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their module
    spec.loader.exec_module(module)
    return module


class Kept(dict[str, Any]):
    """Points kept in memory."""

    def finished(self) -> dict[str, Any]:
        return dict(self)

    def save(self, key: str, point: Any) -> None:
        self[key] = point


def result_of(spec: Spec, **options: Any) -> Any:
    """Run a spec to completion and return the result."""
    *_, last = run(spec, **options)
    assert isinstance(last, Ended), last
    assert last.status == "completed", last.reason
    return last.result


def point_of(spec: Spec, key: str = "", data: Any = None) -> Any:
    """Compute the point with this key, by default the first one."""
    computation = experiment_of(spec).computation()
    data = data or computation.load(spec)
    return computation.compute(spec, data, key or spec.point_keys()[0], Progress())
