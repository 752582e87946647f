"""How far the kernel at initialization is from that of the linear model, in spectral and in Frobenius norm."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh

from ntk_core.early_time._features import LinearFeatures
from ntk_core.kernels import empirical_ntk
from ntk_core.networks.architectures import Network, NetworkParams

_OUTPUT_LAYER = "output"


@dataclass(frozen=True)
class KernelNorms:
    """Norms of the kernel K of a network and of its distance to the kernel ψψᵀ of a linear model on n inputs.

    Attributes:
        kernel: ‖K‖, spectral.
        linear: ‖ψψᵀ‖, spectral.
        difference: ‖K − ψψᵀ‖, spectral.
        naive_difference: ‖K − ψψᵀ‖ without the norm feature, spectral.
        frobenius_difference: ‖K − ψψᵀ‖_F.
    """

    kernel: float
    linear: float
    difference: float
    naive_difference: float
    frobenius_difference: float


def kernel_norms(kernel: NDArray, features: LinearFeatures, x: NDArray) -> KernelNorms:
    """Compare a kernel (n, n) at these inputs with that of the linear model.

    The largest eigenvalues come from Lanczos iterations, so that nothing cubic in n is computed.

    Source: Hu, Xiao, Adlam & Pennington 2020, Props. 3.4, D.8 and 4.1, Fig. 5.
    """
    kernel = np.asarray(kernel, np.float64)
    linear = features.kernel(x)
    difference = kernel - linear
    return KernelNorms(
        kernel=spectral_norm(kernel),
        linear=spectral_norm(linear),
        difference=spectral_norm(difference),
        naive_difference=spectral_norm(kernel - features.naive().kernel(x)),
        frobenius_difference=float(np.linalg.norm(difference)),
    )


def weighted_kernel(
    net: Network, params: NetworkParams, x: NDArray, rate_hidden: float, rate_output: float
) -> NDArray[np.float64]:
    """η₁K₁ + η₂K₂ at w₀, (n, n): the kernel of the hidden layers and that of the output layer, with their rates."""
    total = np.zeros((len(x), len(x)))
    for name, part in empirical_ntk(net, params, x, per_layer=True).items():
        total += (rate_output if name.endswith(_OUTPUT_LAYER) else rate_hidden) * np.asarray(part)[:, :, 0, 0]
    return total


def spectral_norm(matrix: NDArray[np.float64]) -> float:
    """‖A‖ of a symmetric matrix; NaN where it is not finite."""
    if not np.isfinite(matrix).all():
        return math.nan
    if len(matrix) < 3 or not matrix.any():  # Lanczos iterations need a direction to start from
        return float(np.linalg.norm(matrix, 2))
    start = np.random.default_rng(0).standard_normal(len(matrix))  # the same answer every time
    return float(abs(eigsh(matrix, k=1, which="LM", v0=start, return_eigenvectors=False)[0]))
