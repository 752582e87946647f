"""Hessian norms against width."""

from ntk_core.experiments.hessian.result import HessianPoint, HessianResult, hessian_summary
from ntk_core.experiments.hessian.spec import HessianSpec, counts
from ntk_core.runs import Experiment

EXPERIMENT = Experiment(HessianSpec, HessianPoint, HessianResult, counts, hessian_summary, ("liu", "zhu"))
