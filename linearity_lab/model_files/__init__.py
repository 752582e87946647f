"""Files of users for the command line: models in Python and checkpoints.

Importing this starts JAX.
"""

from linearity_lab.model_files._code import OwnModelError, load_model, their_errors
from linearity_lab.model_files._weights import Weights, read_checkpoint, with_checkpoints

__all__ = (
    "OwnModelError",
    "Weights",
    "load_model",
    "read_checkpoint",
    "their_errors",
    "with_checkpoints",
)
