"""Experiments: a spec in, a stream of events out. Free of JAX until something is computed."""

from ntk_core.experiments._estimate import check_size, estimate
from ntk_core.experiments._run import run
from ntk_core.experiments._sizes import LayerSize, layer_sizes, min_width

__all__ = ["LayerSize", "check_size", "estimate", "layer_sizes", "min_width", "run"]
