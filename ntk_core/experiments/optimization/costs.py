"""What a point of ``optimization`` costs: trainings of one width with all eigenvalues at each record; free of JAX."""

from __future__ import annotations

from ntk_core.data import DatasetShapes, dataset_shapes
from ntk_core.experiments.optimization.spec import OptimizationSpec
from ntk_core.networks.sizes import LayerSize, layer_sizes, num_copies, num_features
from ntk_core.runs import BYTES, COMPILE_SECONDS, FLOPS_PER_SECOND, STEP_OVERHEAD_SECONDS

COMPILED_PROGRAMS = 2  # a step, and what is recorded


def seconds(spec: OptimizationSpec, key: str) -> float:
    """Expected seconds for one width, all outputs, rates and seeds, on two cores."""
    shapes, layers = _layers(spec, spec.value_of(key))
    n, num_outputs = shapes.num_samples, shapes.num_outputs
    step = 6 * n * sum(layer.multiplications for layer in layers) / FLOPS_PER_SECOND + STEP_OVERHEAD_SECONDS
    record = 2 * sum(layer.kernel_operations(n, num_outputs) for layer in layers) / FLOPS_PER_SECOND
    record += 20 * (n * num_outputs) ** 3 / FLOPS_PER_SECOND  # all eigenvalues, of two kernels
    each = spec.training.max_steps * step + spec.training.num_records * record
    runs = len(spec.rates) * spec.num_seeds
    return len(spec.outputs) * (COMPILED_PROGRAMS * COMPILE_SECONDS + runs * each)


def peak_bytes(spec: OptimizationSpec, key: str) -> float:
    """Expected peak memory for one run of one width, in bytes: weights at w₀ and w_t, a gradient and temporaries,
    inputs, pre-activations and C cotangents of every layer, kernels in double precision."""
    shapes, layers = _layers(spec, spec.value_of(key))
    n, num_outputs = shapes.num_samples, shapes.num_outputs
    weights = 5 * sum(layer.num_params for layer in layers)
    views = n * (sum(layer.positions * layer.fan_in for layer in layers) + (2 * num_outputs + 1) * num_features(layers))
    return BYTES * float(weights + views + 20 * (n * num_outputs) ** 2)


def _layers(spec: OptimizationSpec, width: int) -> tuple[DatasetShapes, list[LayerSize]]:
    shapes = dataset_shapes(spec.dataset.name, **spec.dataset.options())
    layers = layer_sizes(spec.architecture, width, shapes.input_shape, shapes.num_outputs)
    return shapes, layers * num_copies(spec.architecture)
