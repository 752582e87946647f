"""Training."""

from ntk_core.dynamics._descent import (
    DescentState,
    auto_learning_rate,
    descend,
    eigenvalues,
    kernel_matrix,
    largest_eigenvalue,
    record_steps,
    start,
)
from ntk_core.dynamics._linearize import linearize
from ntk_core.dynamics._losses import Loss

__all__ = [
    "DescentState",
    "Loss",
    "auto_learning_rate",
    "descend",
    "eigenvalues",
    "kernel_matrix",
    "largest_eigenvalue",
    "linearize",
    "record_steps",
    "start",
]
