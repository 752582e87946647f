"""Hessians of model outputs: norms, spectra, balls and bounds."""

from ntk_core.hessians._ball import BallSup, ball_sup
from ntk_core.hessians._ball_eigenvalue import (
    BallEigenvalue,
    smallest_eigenvalue_in_ball,
)
from ntk_core.hessians._blocks import BlockNorms, hessian_block_norms
from ntk_core.hessians._closed_forms import (
    NonlinearOutputHessian,
    bottleneck_block_norm,
    bottleneck_zero_step,
    nonlinear_output_hessian,
    nonlinear_output_parts,
    shallow_hessian_blocks,
)
from ntk_core.hessians._compiled import repetition_pays
from ntk_core.hessians._density import SpectralDensity, hessian_density
from ntk_core.hessians._norm import (
    LeadingEigenpairs,
    SpectralEstimate,
    hessian_eigenpairs,
    hessian_norm,
    hessian_norms_by_output,
)
from ntk_core.hessians._path import PathSup, path_sup
from ntk_core.hessians._quantities import LayerQuantities, layer_quantities
from ntk_core.hessians._vector_output import VectorHessianNorm, vector_hessian_norm

__all__ = (
    "SpectralEstimate",
    "ball_sup",
    "bottleneck_block_norm",
    "bottleneck_zero_step",
    "hessian_block_norms",
    "hessian_density",
    "hessian_eigenpairs",
    "hessian_norm",
    "hessian_norms_by_output",
    "layer_quantities",
    "nonlinear_output_hessian",
    "path_sup",
    "shallow_hessian_blocks",
    "smallest_eigenvalue_in_ball",
    "vector_hessian_norm",
)
