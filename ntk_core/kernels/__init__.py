"""Tangent kernels and how they change."""

from ntk_core.kernels._arrays import real_array, refuse_traced
from ntk_core.kernels._between import KernelComparison, changes_from_first, kernel_change_between
from ntk_core.kernels._derivative import kernel_derivative
from ntk_core.kernels._distance_bound import LeastDistance, least_distance
from ntk_core.kernels._eigenspaces import (
    alignment,
    kernel_distance,
    leading_eigenvectors,
    principal_angles,
    target_share,
)
from ntk_core.kernels._empirical import (
    checked_model,
    empirical_ntk,
    kernel_change,
    pre_output_ntk,
    unchecked_ntk,
)
from ntk_core.kernels._generic import (
    as_function,
    as_it_is,
    direction_of,
    generic_ntk,
    moving_of,
    split_inexact,
)
from ntk_core.kernels._gradient_bound import gradient_norm_bound
from ntk_core.kernels._infinite_heads import SampledKernel, infinite_heads_ntk
from ntk_core.kernels._infinite_of_function import InfiniteWidth, WeightScale, infinite_width
from ntk_core.kernels._infinite_width import (
    infinite_width_nngp,
    infinite_width_ntk,
    quadrature_error,
)
from ntk_core.kernels._leave_one_out import LeaveOneOut, leave_one_out
from ntk_core.kernels._outputs import as_matrix, diagonal_ntk, trace_outputs
from ntk_core.kernels._products import KernelExtremes, KernelOperator, KernelSolution
from ntk_core.kernels._regression import JITTER, KernelRegression, kernel_regression
from ntk_core.kernels._scale import (
    ScaledNorm,
    exponent_of,
    norm_ratio,
    relative_norm,
    scaled,
    scaled_norm,
    widened,
)
from ntk_core.kernels._scaled_outputs import (
    has_entries_beyond,
    has_lost_entries,
    largest_entry,
    refuse_rows_without_outputs,
    scaled_model,
)

__all__ = (
    "InfiniteWidth",
    "KernelOperator",
    "alignment",
    "diagonal_ntk",
    "empirical_ntk",
    "gradient_norm_bound",
    "infinite_width",
    "infinite_width_nngp",
    "infinite_width_ntk",
    "kernel_change",
    "kernel_change_between",
    "kernel_distance",
    "kernel_regression",
    "least_distance",
    "leave_one_out",
    "trace_outputs",
)
