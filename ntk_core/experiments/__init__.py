"""Experiments: a spec in, a stream of events out. Free of JAX until something is computed."""

from ntk_core.experiments._estimate import (
    capped,
    check_size,
    check_time,
    estimate,
    largest_fitting,
    setting_of,
)
from ntk_core.experiments._run import Points, run
from ntk_core.experiments._sizes import LayerSize, layer_sizes, min_width

__all__ = [
    "LayerSize",
    "Points",
    "capped",
    "check_size",
    "check_time",
    "estimate",
    "largest_fitting",
    "layer_sizes",
    "min_width",
    "run",
    "setting_of",
]
