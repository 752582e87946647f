"""Options of training from settings; only computations import this module."""

from typing import Any

from linearity_lab.runs.costs import BYTES, SHIPPED, Counted
from linearity_lab.settings.training import USUAL_LOSS, DescentSpec, TrainingSpec
from ntk_core.dynamics import Levels, Loss, Optimizer, TrainOptions


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


# Seconds that LLVM's level 0 adds to a step and to a kernel for each byte of a step, in two
# trainings that share their programs; and seconds that it saves for a program without layers,
# against level 1. Rough, since measured on three networks (docs/decisions/0007-compilation.md).
SLOWER_STEP = 2e-9
SLOWER_KERNEL = 8e-9
SAVED_S = 0.1
# Seconds that it adds to a step of the linear model for each byte of its kernel.
SLOWER_ROWS = 3e-10
# Part of the allowed steps that first answers take to their threshold: 0.25 to 0.6 in most.
TAKEN = 0.4
# Longer trainings run programs as they are usually compiled; our choice.
SHORT_S = 5.0


def levels_of(training: DescentSpec, network: Counted) -> Levels:
    """Return how to compile the programs of a training: the shorter it is, the less optimized."""
    step = network.step
    rows_bytes = 2 * BYTES * network.kernel_rows**2  # a step of the linear model, in float64
    num_steps = TAKEN * training.max_steps
    of_steps = num_steps * step.traffic * SLOWER_STEP
    of_records = training.num_records * step.traffic * SLOWER_KERNEL
    of_data = num_steps * rows_bytes * SLOWER_ROWS
    saved_s = SAVED_S * network.program
    data = 0 if of_data < SAVED_S else 1
    if training.max_steps * SHIPPED.seconds(step) > SHORT_S:
        return Levels(data=data)
    return Levels(
        steps=0 if of_steps < saved_s else 1,
        records=0 if of_records < saved_s else 1,
        data=data,
    )


def loss_of(training: TrainingSpec, output: str) -> Loss:
    """Return the loss of a network with this output."""
    return Loss(output, "" if training.loss == USUAL_LOSS else training.loss)
