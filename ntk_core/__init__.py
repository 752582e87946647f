"""Kernels, Hessians and training of wide neural networks: when and why a network becomes a linear model.

This module is the one door to the core. Names are imported when first used, so that reading a specification or a stored
result does not start JAX.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "ntk_core.architectures": [
        "Bottleneck",
        "Composed",
        "ConvNet",
        "DAGNetwork",
        "DenseNet",
        "FullyConnected",
        "Mirrored",
        "MixedNet",
        "PreActivations",
        "ResNet",
        "Scaled",
        "Subtracted",
        "subtract_initial_output",
        "width_mesh",
    ],
    "ntk_core.compositions": ["composition_examples", "parse_composition"],
    "ntk_core.own_models": ["sweep_widths"],
    "ntk_core.graphs": ["Edge", "Graph", "Group", "example_graphs", "graph_data", "parse_graph", "verdict"],
    "ntk_core.kernels": ["empirical_ntk", "gradient_norm_bound", "infinite_width_ntk", "kernel_change"],
    "ntk_core.hessians": [
        "ball_sup",
        "ball_sups",
        "bottleneck_block_norm",
        "hessian_block_norms",
        "hessian_density",
        "hessian_eigenpairs",
        "hessian_norm",
        "hessian_norms",
        "layer_quantities",
        "nonlinear_output_hessian",
        "path_sup",
        "shallow_hessian_blocks",
        "smallest_eigenvalue_in_ball",
    ],
    "ntk_core.dynamics": ["ClosedForm", "Optimizer", "linearize", "train"],
    "ntk_core.early_time": ["LinearModel", "activation_constants", "deep_features", "two_layer_features"],
    "ntk_core.errors": ["InvalidInput", "TooLarge"],
    "ntk_core.specs": [
        "DAGSpec",
        "DynamicsSpec",
        "EarlyTimeSpec",
        "InvalidSpec",
        "KernelDriftSpec",
        "LazySpec",
        "OptimizationSpec",
        "canonical_json",
        "digest",
        "parse_spec",
    ],
    "ntk_core.papers": ["presets"],
    "ntk_core.datasets": ["load_dataset"],
    "ntk_core.experiments": ["estimate", "run"],
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME_OF)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'ntk_core' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
