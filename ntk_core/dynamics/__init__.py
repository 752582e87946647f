"""Training: networks and their linear models by the same steps, closed forms, and what is recorded of them."""

from ntk_core.dynamics._closed_form import ClosedForm
from ntk_core.dynamics._descent import DescentState, advance, descend, record_steps, start, start_with
from ntk_core.dynamics._history import Difference, KernelPath, Path, TrainingHistory
from ntk_core.dynamics._linearize import linearize
from ntk_core.dynamics._losses import Loss
from ntk_core.dynamics._optimizers import Optimizer
from ntk_core.dynamics._rates import auto_learning_rate, eigenvalues, kernel_matrix, largest_eigenvalue
from ntk_core.dynamics._side_by_side import Training, train

__all__ = [
    "ClosedForm",
    "DescentState",
    "Difference",
    "KernelPath",
    "Loss",
    "Optimizer",
    "Path",
    "Training",
    "TrainingHistory",
    "advance",
    "auto_learning_rate",
    "descend",
    "eigenvalues",
    "kernel_matrix",
    "largest_eigenvalue",
    "linearize",
    "record_steps",
    "start",
    "start_with",
    "train",
]
