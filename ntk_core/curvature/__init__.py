"""Curvature of losses in the parameters.

Hessian, Gauss–Newton matrix and Fisher information as operators.
"""

from ntk_core.curvature._matrices import fisher, gauss_newton, loss_hessian
from ntk_core.curvature._operator import CurvatureOperator
from ntk_core.curvature._trace import TraceEstimate

__all__ = ("CurvatureOperator", "TraceEstimate", "fisher", "gauss_newton", "loss_hessian")
