"""Experiments: a spec in, a stream of events out. Free of JAX until something is computed."""

from ntk_core.experiments._estimate import check_size, estimate
from ntk_core.experiments._run import run

__all__ = ["check_size", "estimate", "run"]
