"""What a run will cost, before anything is traced; free of JAX, so that a page can ask at every change of a widget."""

from __future__ import annotations

import os

import psutil

from ntk_core.datasets import DatasetShapes, dataset_shapes
from ntk_core.errors import InvalidInput, TooLarge
from ntk_core.events import Estimated
from ntk_core.experiments._sizes import LayerSize, layer_sizes
from ntk_core.specs import KernelDriftSpec, training_groups

MEMORY_VARIABLE = "LINEARITY_LAB_MEMORY_GIB"
# Measured on two cores: products of this size run at about this rate, compiling one width takes about this long.
_FLOPS_PER_SECOND = 6e10
_COMPILE_SECONDS = 1.2
_STEP_OVERHEAD_SECONDS = 2e-5
_TYPICAL_STEPS = 1000
_BYTES = 4


def estimate(spec: KernelDriftSpec) -> Estimated:
    """Points, wall time (an order of magnitude) and peak memory of the largest point."""
    return Estimated(
        num_points=len(spec.widths),
        seconds=sum(point_seconds(spec, width) for width in spec.widths),
        peak_bytes=max(peak_bytes(spec, width) for width in spec.widths),
    )


def point_seconds(spec: KernelDriftSpec, width: int) -> float:
    """Expected seconds for one width, all seeds and outputs, on two cores."""
    shapes, layers = _layers(spec, width)
    n, num_outputs = shapes.num_samples, shapes.num_outputs
    steps = min(spec.training.max_steps, _TYPICAL_STEPS)
    step = 6 * n * sum(layer.multiplications for layer in layers) / _FLOPS_PER_SECOND + _STEP_OVERHEAD_SECONDS
    kernel = 2 * sum(layer.kernel_operations(n, num_outputs) for layer in layers) / _FLOPS_PER_SECOND
    groups = len(training_groups(spec.outputs))
    return groups * (_COMPILE_SECONDS + spec.num_seeds * (steps * step + spec.training.num_records * kernel))


def peak_bytes(spec: KernelDriftSpec, width: int) -> float:
    """Expected peak memory for one seed of one width, in bytes.

    Weights, their gradient and the copy that a step writes; inputs, pre-activations and C cotangents of every layer,
    each once more as a temporary; and the kernels at w₀ and w_t with their images under each output.
    """
    shapes, layers = _layers(spec, width)
    n, num_outputs = shapes.num_samples, shapes.num_outputs
    weights = 3 * sum(layer.num_params for layer in layers)
    views = n * (sum(layer.positions * layer.fan_in for layer in layers) + (2 * num_outputs + 1) * _features(layers))
    kernels = (4 + 2 * len(spec.outputs)) * (n * num_outputs) ** 2
    return _BYTES * float(weights + views + kernels)


def check_size(spec: KernelDriftSpec) -> None:
    """Refuse a spec whose largest width does not fit into memory.

    Raises:
        TooLarge: for ``widths``, with the largest width that fits, or for ``dataset.num_samples`` when none does.
        InvalidInput: when the memory limit of the environment is not a number.
    """
    limit = memory_limit()
    width = max(spec.widths)
    required = peak_bytes(spec, width)
    if required <= limit:
        return
    if peak_bytes(spec, 1) > limit:
        samples = _largest(
            lambda n: (
                peak_bytes(spec.model_copy(update={"dataset": spec.dataset.model_copy(update={"num_samples": n})}), 1)
                <= limit
            ),
            spec.dataset.num_samples,
        )
        raise TooLarge(
            "dataset.num_samples",
            spec.dataset.num_samples,
            required=required,
            limit=limit,
            unit="bytes",
            nearest=samples,
        )
    nearest = _largest(lambda m: peak_bytes(spec, m) <= limit, width)
    raise TooLarge("widths", width, required=required, limit=limit, unit="bytes", nearest=nearest)


def memory_limit() -> float:
    """Bytes that a run may use: ``LINEARITY_LAB_MEMORY_GIB``, or four fifths of what is free now."""
    given = os.environ.get(MEMORY_VARIABLE)
    if not given:
        return 0.8 * psutil.virtual_memory().available
    try:
        gibibytes = float(given)
    except ValueError:
        gibibytes = -1.0
    if not 0 < gibibytes < 1e6:
        raise InvalidInput(MEMORY_VARIABLE, given, "a number of GiB above 0")
    return gibibytes * 2**30


def _layers(spec: KernelDriftSpec, width: int) -> tuple[DatasetShapes, list[LayerSize]]:
    options = spec.dataset.options()
    shapes = dataset_shapes(spec.dataset.name, **options)
    architecture, hidden_width = spec.network_at(width)
    return shapes, layer_sizes(architecture, hidden_width, shapes.input_shape, shapes.num_outputs)


def _features(layers: list[LayerSize]) -> int:
    return sum(layer.positions * layer.features for layer in layers)


def _largest(fits: object, too_large: int) -> int:
    """The largest integer below ``too_large`` that fits, rounded down to two digits; fits(1) is taken for granted."""
    low, high = 1, too_large
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)  # type: ignore[operator]
    digits = 10 ** max(0, len(str(low)) - 2)
    return low // digits * digits
