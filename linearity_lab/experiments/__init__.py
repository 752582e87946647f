"""Experiments, one folder each: spec, result, computation, presets."""

import lazy_loader

# One line per experiment, in the order of the papers.
EXPERIMENTS = (
    "explore",
    "kernel_change",
    "architectures",
    "hessian",
    "dynamics",
    "optimization",
    "lazy",
    "depth_width",
    "dag",
    "early_time",
    "learning_rate",
    "horizon",
    "generalization",
    "adding",
    "attribution",
)
# Stored, shown and exported like them; computed by the command line only.
KEPT = (
    "own_model",
    "linearity_report",
)

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
