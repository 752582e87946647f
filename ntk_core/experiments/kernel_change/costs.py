"""What a point of ``kernel_change`` costs: training and kernels of one width; free of JAX."""

from __future__ import annotations

from ntk_core.data import DatasetShapes, dataset_shapes
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec, training_groups
from ntk_core.networks.sizes import LayerSize, layer_sizes, num_copies, num_features
from ntk_core.runs import BYTES, COMPILE_SECONDS, FLOPS_PER_SECOND, STEP_OVERHEAD_SECONDS, TYPICAL_STEPS


def seconds(spec: KernelChangeSpec, key: str) -> float:
    """Expected seconds for one width, all seeds and outputs, on two cores."""
    shapes, layers = _layers(spec, spec.value_of(key))
    n, num_outputs = shapes.num_samples, shapes.num_outputs
    steps = min(spec.training.max_steps, TYPICAL_STEPS)
    step = 6 * n * sum(layer.multiplications for layer in layers) / FLOPS_PER_SECOND + STEP_OVERHEAD_SECONDS
    kernel = 2 * sum(layer.kernel_operations(n, num_outputs) for layer in layers) / FLOPS_PER_SECOND
    groups = len(training_groups(spec.outputs))
    return groups * (COMPILE_SECONDS + spec.num_seeds * (steps * step + spec.training.num_records * kernel))


def peak_bytes(spec: KernelChangeSpec, key: str) -> float:
    """Expected peak memory for one seed of one width, in bytes.

    Weights, their gradient and the copy that a step writes; inputs, pre-activations and C cotangents of every layer,
    each once more as a temporary; and the kernels at w₀ and w_t with their images under each output.
    """
    shapes, layers = _layers(spec, spec.value_of(key))
    n, num_outputs = shapes.num_samples, shapes.num_outputs
    weights = 3 * sum(layer.num_params for layer in layers)
    views = n * (sum(layer.positions * layer.fan_in for layer in layers) + (2 * num_outputs + 1) * num_features(layers))
    kernels = (4 + 2 * len(spec.outputs)) * (n * num_outputs) ** 2
    return BYTES * float(weights + views + kernels)


def _layers(spec: KernelChangeSpec, width: int) -> tuple[DatasetShapes, list[LayerSize]]:
    options = spec.dataset.options()
    shapes = dataset_shapes(spec.dataset.name, **options)
    architecture, hidden_width = spec.network_at(width)
    layers = layer_sizes(architecture, hidden_width, shapes.input_shape, shapes.num_outputs)
    return shapes, layers * num_copies(architecture)
