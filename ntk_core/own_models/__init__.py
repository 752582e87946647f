"""Custom models ``apply(params, x)`` against width; importing this starts JAX."""

from ntk_core.own_models._checkpoints import read_checkpoint, with_checkpoints
from ntk_core.own_models._file import (
    CONTRACT,
    OwnModel,
    OwnModelError,
    checked_model,
    load_model,
    their_errors,
)
from ntk_core.own_models._linearity import linearity_report
from ntk_core.own_models._sweep import OwnRun, OwnSweep, runs_at, sweep_widths
from ntk_core.own_models._torch import from_torch
