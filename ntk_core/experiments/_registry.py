"""The experiments: what each costs, free of JAX, and the module that computes it, imported when a run begins."""

from __future__ import annotations

import importlib
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Protocol, cast

from ntk_core.experiments import (
    _dag_costs,
    _dynamics_costs,
    _early_time_costs,
    _hessian_costs,
    _kernel_drift_costs,
    _lazy_costs,
    _optimization_costs,
)
from ntk_core.results import PointValue
from ntk_core.specs import Spec

Progress = tuple[float, str]  # fraction, message
Growth = tuple[float, str, PointValue]  # the same with the point as far as it is, to draw its curves while they grow


class Costs(Protocol):
    """What a point costs, by counting; nothing is traced."""

    def seconds(self, spec: Any, key: str, /) -> float:
        """Expected wall time on two cores, an order of magnitude."""

    def peak_bytes(self, spec: Any, key: str, /) -> float:
        """Expected peak memory."""


class Computation(Protocol):
    """What computes a point."""

    def load(self, spec: Any, /) -> Any:
        """The data of the spec; raises ``InvalidInput`` when they cannot be had."""

    def fingerprint(self, data: Any, /) -> str:
        """SHA-256 of the data, for the provenance."""

    def compute(self, spec: Any, data: Any, key: str, /) -> Generator[Progress | Growth, None, PointValue]:
        """The point of this key; yields :data:`Progress` or :data:`Growth` between stretches of work."""


@dataclass(frozen=True)
class Experiment:
    """One experiment; ``module`` names its computation."""

    costs: Costs
    module: str

    def computation(self) -> Computation:
        """The module that computes; importing it starts JAX."""
        return cast(Computation, importlib.import_module(self.module))


# One entry an experiment, as in ntk_core.specs.EXPERIMENTS.
_EXPERIMENTS = {
    "early_time": Experiment(_early_time_costs, "ntk_core.experiments._early_time"),
    "kernel_drift": Experiment(_kernel_drift_costs, "ntk_core.experiments._kernel_drift"),
    "dag": Experiment(_dag_costs, "ntk_core.experiments._dag"),
    "dynamics": Experiment(_dynamics_costs, "ntk_core.experiments._dynamics"),
    "hessian": Experiment(_hessian_costs, "ntk_core.experiments._hessian"),
    "optimization": Experiment(_optimization_costs, "ntk_core.experiments._optimization"),
    "lazy": Experiment(_lazy_costs, "ntk_core.experiments._lazy"),
}


def experiment_of(spec: Spec) -> Experiment:
    """The experiment that a spec asks for."""
    return _EXPERIMENTS[spec.experiment]


def costs_of(spec: Spec) -> Costs:
    """What the points of a spec cost."""
    return experiment_of(spec).costs
