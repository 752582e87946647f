"""Networks beside their linear models."""

from ntk_core.experiments.dynamics.result import DynamicsPoint, DynamicsResult, dynamics_summary
from ntk_core.experiments.dynamics.spec import DynamicsSpec, counts
from ntk_core.runs import Experiment

EXPERIMENT = Experiment(DynamicsSpec, DynamicsPoint, DynamicsResult, counts, dynamics_summary)
