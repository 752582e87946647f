"""What a point of ``lazy`` costs: κ and trainings of one width and scale; free of JAX."""

from __future__ import annotations

from ntk_core.data import DatasetShapes, dataset_shapes
from ntk_core.experiments.lazy.spec import LazySpec
from ntk_core.networks.sizes import LayerSize, layer_sizes, num_features
from ntk_core.runs import BYTES, COMPILE_SECONDS, FLOPS_PER_SECOND, STEP_OVERHEAD_SECONDS, TYPICAL_STEPS

COMPILED_PROGRAMS = 4  # a step, what is recorded, a kernel, a Hessian
MATVECS = 40  # products with a Hessian until its norm has converged
HESSIAN_BASIS = 130  # vectors of a Lanczos basis


def seconds(spec: LazySpec, key: str) -> float:
    """Expected seconds for one pair, all outputs, starts and seeds, on two cores."""
    shapes, layers = _layers(spec, spec.value_of(key)[0])
    n, num_outputs = shapes.num_samples, shapes.num_outputs
    multiplications = sum(layer.multiplications for layer in layers)
    step = 6 * n * multiplications / FLOPS_PER_SECOND + STEP_OVERHEAD_SECONDS
    record = 2 * sum(layer.kernel_operations(n, num_outputs) for layer in layers) / FLOPS_PER_SECOND
    hessian = 2 * num_outputs * MATVECS * 12 * multiplications / FLOPS_PER_SECOND
    steps = min(spec.training.max_steps, TYPICAL_STEPS)
    each = steps * step + spec.training.num_records * record + hessian
    kinds = len(spec.outputs) * len(spec.starts)
    return kinds * (COMPILED_PROGRAMS * COMPILE_SECONDS + spec.num_seeds * each * _copies(spec))


def peak_bytes(spec: LazySpec, key: str) -> float:
    """Expected peak memory for one run of one pair, in bytes: weights at w₀ and w_t, a gradient and temporaries,
    inputs, pre-activations and C cotangents of every layer, kernels, and the basis of a Hessian's small space."""
    shapes, layers = _layers(spec, spec.value_of(key)[0])
    n, num_outputs = shapes.num_samples, shapes.num_outputs
    weights = 5 * sum(layer.num_params for layer in layers)
    views = n * (sum(layer.positions * layer.fan_in for layer in layers) + (2 * num_outputs + 1) * num_features(layers))
    basis = HESSIAN_BASIS * sum(layer.positions * (layer.fan_in + layer.features) for layer in layers)
    return BYTES * float(_copies(spec) * (weights + views + basis) + 20 * (n * num_outputs) ** 2)


def _copies(spec: LazySpec) -> int:
    """Networks at once: 2 where an output of 0 at w₀ needs a copy."""
    return 1 if spec.starts == ("random",) else 2


def _layers(spec: LazySpec, width: int) -> tuple[DatasetShapes, list[LayerSize]]:
    shapes = dataset_shapes(spec.dataset.name, **spec.dataset.options())
    return shapes, layer_sizes(spec.architecture, width, shapes.input_shape, shapes.num_outputs)
