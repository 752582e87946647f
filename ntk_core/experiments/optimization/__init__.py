"""Convergence without linearity."""

from ntk_core.experiments.optimization.result import OptimizationPoint, OptimizationResult, optimization_summary
from ntk_core.experiments.optimization.spec import OptimizationSpec, counts
from ntk_core.runs import Experiment

EXPERIMENT = Experiment(OptimizationSpec, OptimizationPoint, OptimizationResult, counts, optimization_summary)
