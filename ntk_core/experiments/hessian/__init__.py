"""Hessian norms against width."""

from ntk_core.experiments.hessian.costs import counts
from ntk_core.experiments.hessian.result import HessianPoint, HessianResult
from ntk_core.experiments.hessian.spec import HessianSpec
from ntk_core.experiments.hessian.summary import hessian_summary
from ntk_core.runs import Experiment

EXPERIMENT = Experiment(HessianSpec, HessianPoint, HessianResult, counts, hessian_summary, ("liu", "zhu"))
