"""Kernel change of softmax(f_lin): how much of ΔK(softmax) a linear model has too."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

# The model trains in function space, by dense products of this many rows at most. Our choice.
MAX_ROWS = 600
LINEAR_MODEL_TITLE = "softmax of the linear model"


def softmax_changes(
    kernel: ArrayLike, f: ArrayLike, y: ArrayLike, rate: float, steps: Sequence[int]
) -> tuple[float, ...]:
    """Return ΔK(t) of softmax(f_lin) at these steps of its training with cross-entropy.

    f_lin has the constant kernel K of f at w₀, so each step is f ← f − (η/n) K (softmax(f) − y). The kernel of
    softmax(f_lin) is S_i K S_jᵀ with S = diag(p) − p pᵀ. It vanishes as p becomes 0 or 1, for any f: its change is
    near 1 although nothing in f_lin has changed.

    Args:
        kernel: K(w₀), shape (n, n, C, C).
        f: outputs at w₀, shape (n, C).
        y: one-hot targets, shape (n, C).
        rate: learning rate η of the mean loss.
        steps: recorded steps, ascending from 0.

    Returns:
        One change per step; NaN from a divergence on, and for a kernel that is 0, as of a dead network.

    Source: Liu, Zhu & Belkin 2020, App. B, Eq. 46, with f_lin in place of f.
    """
    n, num_outputs = np.shape(f)
    whole = np.asarray(kernel, np.float64)
    matrix = whole.transpose(0, 2, 1, 3).reshape(n * num_outputs, n * num_outputs)
    outputs = np.asarray(f, np.float64)
    targets = np.asarray(y, np.float64)
    first = _softmax_kernel(whole, outputs)
    size = np.linalg.norm(first)
    if size == 0:
        return (math.nan,) * len(steps)
    changes = []
    step = 0
    for recorded in steps:
        while step < recorded:
            residual = (_softmax(outputs) - targets).ravel()
            outputs = outputs - rate / n * (matrix @ residual).reshape(n, num_outputs)
            step += 1
        change = np.linalg.norm(_softmax_kernel(whole, outputs) - first) / size
        changes.append(float(change))
    return tuple(changes)


def _softmax(f: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(f - f.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _softmax_kernel(
    kernel: NDArray[np.float64], outputs: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return S_i K[i, j] S_jᵀ with the slopes S of the softmax, shape (n, n, C, C)."""
    p = _softmax(outputs)
    slopes = np.einsum("ia,ab->iab", p, np.eye(p.shape[1])) - np.einsum("ia,ib->iab", p, p)
    left = np.einsum("iab,ijbc->ijac", slopes, kernel)
    return np.einsum("ijac,jdc->ijad", left, slopes)
