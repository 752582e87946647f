"""Names of earlier versions that have moved or changed, for one release."""

from collections.abc import Callable

_NEW = {
    "digest": "linearity_lab.experiments.spec_digest",
    "summary": "linearity_lab.experiments.run_summary",
    "EarlyResult": "linearity_lab.experiments.EarlyTimeResult",
    "RateResult": "linearity_lab.experiments.LearningRateResult",
    "Scaled": "ntk_core.networks.ScaledNetwork",
    "verdict": "ntk_core.graphs.graph_verdict",
    "hessian_norms": "ntk_core.hessian_norm, which takes a batch of inputs",
    "own_models": "ntk_core.linearity, ntk_core.torch and linearity_lab.model_files",
    "ball_sups": "ntk_core.ball_sup, which takes several radii",
}
_MOVED = {
    "linearity_lab": (
        *("compute", "estimate", "load_dataset", "presets", "run"),
        *("InvalidSpec", "Preset"),
        *("data", "experiments"),
    ),
    "ntk_core.dynamics": ("ClosedForm", "kernel_velocity", "one_sample_catapult"),
    "ntk_core.early_time": (
        "LinearModel",
        "activation_constants",
        "deep_features",
        "two_layer_features",
    ),
    "linearity_lab.experiments": (
        *(
            "ArchitectureSpec",
            "ArchitecturesResult",
            "ArchitecturesSpec",
            "ComparedNetwork",
            "DAGResult",
            "DAGSpec",
        ),
        *(
            "DatasetSpec",
            "DepthWidthResult",
            "DepthWidthSpec",
            "DynamicsResult",
            "DynamicsSpec",
            "EarlyTimeSpec",
        ),
        *(
            "GeneralizationResult",
            "GeneralizationSpec",
            "HessianResult",
            "HessianSpec",
            "KernelChangeResult",
        ),
        *(
            "KernelChangeSpec",
            "LazyResult",
            "LazySpec",
            "LearningRateSpec",
            "OptimizationResult",
            "OptimizationSpec",
        ),
        *("TrainingSpec", "canonical_json", "parse_spec", "with_settings"),
    ),
    "ntk_core.graphs": (
        *(
            "Edge",
            "Graph",
            "Group",
            "composition_examples",
            "example_graphs",
            "graph_data",
            "parse_composition",
        ),
        "parse_graph",
    ),
    "ntk_core.hessians": (
        *("bottleneck_block_norm", "hessian_block_norms", "nonlinear_output_hessian", "path_sup"),
        *("shallow_hessian_blocks", "smallest_eigenvalue_in_ball", "vector_hessian_norm"),
    ),
    "ntk_core.kernels": ("alignment", "gradient_norm_bound", "kernel_distance", "least_distance"),
    "ntk_core.networks": (
        *(
            "Composed",
            "Layer",
            "Mirrored",
            "PreActivations",
            "Subtracted",
            "subtract_initial_output",
            "width_mesh",
        ),
    ),
}
MOVED = _NEW | {name: f"{place}.{name}" for place, names in _MOVED.items() for name in names}


def checked(found: Callable[[str], object]) -> Callable[[str], object]:
    """Wrap the lookup of names with an error that states a moved name's new place.

    An ``ImportError``, since ``from ntk_core import name`` hides the message of an
    ``AttributeError``.
    """

    def named(name: str) -> object:
        if name in MOVED:
            raise ImportError(f"ntk_core.{name} is now {MOVED[name]}")
        return found(name)

    return named
