"""Convergence without linearity."""

from ntk_core.experiments.optimization.costs import counts
from ntk_core.experiments.optimization.result import OptimizationPoint, OptimizationResult
from ntk_core.experiments.optimization.spec import OptimizationSpec
from ntk_core.experiments.optimization.summary import optimization_summary
from ntk_core.runs import Experiment

EXPERIMENT = Experiment(OptimizationSpec, OptimizationPoint, OptimizationResult, counts, optimization_summary)
