"""Options of training from settings; only computations import this module."""

from typing import Any

from linearity_lab.settings.training import TrainingSpec
from ntk_core.dynamics import TrainOptions


def train_options(training: TrainingSpec, **more: Any) -> TrainOptions:
    """Return the options that these settings stand for; ``more`` replaces some of them."""
    return TrainOptions(**{**training.model_dump(), **more})
