"""Options of training from settings; only computations import this module."""

from typing import Any

from linearity_lab.settings.training import USUAL_LOSS, DescentSpec, TrainingSpec
from ntk_core.dynamics import Loss, Optimizer, TrainOptions


def train_options(training: DescentSpec, *, rate_factor: float = 1.0, **more: Any) -> TrainOptions:
    """Return the options that these settings stand for; ``more`` replaces some of them."""
    names = ("learning_rate", "loss_threshold", "max_steps", "num_records")
    given: dict[str, Any] = {name: getattr(training, name) for name in names}
    if isinstance(training, TrainingSpec):
        batch_size = training.batch_size if training.uses("batch_size") else None
        given["optimizer"] = Optimizer(training.optimizer, training.momentum, batch_size)
        given["loss"] = None if training.loss == USUAL_LOSS else training.loss
        rate_factor *= training.method.rate_factor
    return TrainOptions(rate_factor=rate_factor, **{**given, **more})


def loss_of(training: TrainingSpec, output: str) -> Loss:
    """Return the loss of a network with this output."""
    return Loss(output, "" if training.loss == USUAL_LOSS else training.loss)
