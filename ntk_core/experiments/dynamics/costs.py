"""What a point of ``dynamics`` costs: a network and its linear model of one width; free of JAX."""

from __future__ import annotations

from ntk_core.data import DatasetShapes, dataset_shapes
from ntk_core.dynamics.choices import METHODS
from ntk_core.experiments.dynamics.spec import DynamicsSpec
from ntk_core.networks.sizes import LayerSize, layer_sizes, num_features
from ntk_core.runs import BYTES, COMPILE_SECONDS, FLOPS_PER_SECOND, STEP_OVERHEAD_SECONDS

COMPILED_PROGRAMS = 3  # a network's step, its linear model's, and what is recorded of both


def seconds(spec: DynamicsSpec, key: str) -> float:
    """Expected seconds for one width, all outputs, methods and seeds, on two cores."""
    shapes, layers = _layers(spec, spec.value_of(key))
    n, num_outputs = shapes.num_samples, shapes.num_outputs
    step = 6 * n * sum(layer.multiplications for layer in layers) / FLOPS_PER_SECOND + STEP_OVERHEAD_SECONDS
    linear_step = 2 * (n * num_outputs) ** 2 / FLOPS_PER_SECOND + STEP_OVERHEAD_SECONDS
    record = 2 * sum(layer.kernel_operations(n, num_outputs) for layer in layers) / FLOPS_PER_SECOND
    record += 10 * (n * num_outputs) ** 3 / FLOPS_PER_SECOND  # all eigenvalues
    total = 0.0
    for method in spec.methods:
        # Adam's linear model is trained in its weights.
        both = step + (1.5 * step if not METHODS[method].is_linear else linear_step * (1 + spec.infinite_width))
        total += COMPILED_PROGRAMS * COMPILE_SECONDS
        total += spec.num_seeds * (spec.training.max_steps * both + spec.training.num_records * record)
    return total * len(spec.outputs)


def peak_bytes(spec: DynamicsSpec, key: str) -> float:
    """Expected peak memory for one run of one width, in bytes.

    Weights at w₀ and w_t, a gradient, what an optimizer remembers (two more for Adam, whose linear model has as many);
    inputs, pre-activations and C cotangents of every layer, each once more as a temporary; kernels with test points.
    """
    shapes, layers = _layers(spec, spec.value_of(key))
    n, num_outputs = shapes.num_samples, shapes.num_outputs
    copies = 5 if all(METHODS[name].is_linear for name in spec.methods) else 10
    weights = copies * sum(layer.num_params for layer in layers)
    rows = n + shapes.num_test
    views = rows * (
        sum(layer.positions * layer.fan_in for layer in layers) + (2 * num_outputs + 1) * num_features(layers)
    )
    kernels = 4 * rows * n * num_outputs**2 + 8 * (n * num_outputs) ** 2
    return BYTES * float(weights + views + kernels)


def _layers(spec: DynamicsSpec, width: int) -> tuple[DatasetShapes, list[LayerSize]]:
    shapes = dataset_shapes(spec.dataset.name, **spec.data_options())
    return shapes, layer_sizes(spec.architecture, width, shapes.input_shape, shapes.num_outputs)
