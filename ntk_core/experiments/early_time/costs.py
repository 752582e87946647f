"""What a point of ``early_time`` computes, counted: steps, records of the outputs, kernels; free of JAX."""

import functools

from ntk_core.experiments.early_time.spec import EarlyTimeSpec
from ntk_core.networks.sizes import LayerSize, layer_sizes, num_features
from ntk_core.runs import BYTES, Counts, Work

LOOKED_AT = 5000  # training inputs on which the loss is measured
# An activation and its derivative take about as long as this many multiplications.
_ACTIVATION_OPERATIONS = 60
# Kernels of infinite width take this much a pair of inputs and position, and are computed in blocks of this many pairs.
_LIMIT_BYTES, _LIMIT_PAIRS = 260.0, 2.0**24
_KERNEL_BYTES = 4 * 2**30  # kernels of a network are made in blocks below this


def counts(spec: EarlyTimeSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """One point, all activations and seeds; all steps in any case.

    Held are data and their features in float64; weights, gradient and a copy; inputs, pre-activations and cotangents of
    a batch (patches, for convolutions), each once more as a temporary; the order of the batches; kernels in float64.
    """
    layers, n, n_test, d = _layers(spec, key), spec.dataset.num_samples, spec.dataset.num_test, spec.dim_at(key)
    batch, steps = spec.training.batch_size or n, spec.training.max_steps
    copies = 2 if spec.network.is_doubled else 1
    once = sum(layer.multiplications for layer in layers) * 2 + _ACTIVATION_OPERATIONS * num_features(layers)
    patches = sum(layer.positions * layer.fan_in for layer in layers if layer.positions > 1)
    seen = 6 * num_features(layers) + 4 * patches  # of an input, read or written
    num_params = sum(layer.num_params for layer in layers)
    recorded = (min(n, LOOKED_AT) + n_test) * min(spec.training.num_records, steps)
    numbers = (3 * num_params + batch * seen) * steps + recorded * seen
    operations = (3 * batch * steps + recorded) * once + _kernel_operations(spec, layers)
    rows = max(batch, 1000) if steps else 0
    weights = 0 if spec.infinite_width and not rows else 4 * num_params
    held = copies * (weights + 4 * rows * num_features(layers) + 2 * min(rows, batch) * patches)
    data = 2 * (n + n_test) * d + 6 * n * (d + 2) + 2 * spec.training.batch_size * steps
    activations = len(spec.network.activations)
    return (
        Counts(
            programs={"early time": 1 + activations},
            times=activations * spec.num_seeds,
            more=Work(copies * operations, copies * BYTES * float(numbers), steps),
            numbers=data + held,
            num_bytes=_kernel_bytes(spec, layers),
        ),
    )


@functools.lru_cache(maxsize=512)
def _layers(spec: EarlyTimeSpec, key: str) -> list[LayerSize]:
    d, network = spec.dim_at(key), spec.network
    architecture = network.architecture(network.activations[0], d)
    return layer_sizes(architecture, spec.width_at(key), spec.seen_shape(d), 1, network.dimensions)


def _kernel_operations(spec: EarlyTimeSpec, layers: list[LayerSize]) -> float:
    if not spec.kernel_samples:
        return 0.0
    if spec.infinite_width:  # pairs of inputs and positions, some hundred operations each for every layer
        return 200.0 * spec.kernel_samples**2 * sum(layer.positions for layer in layers)
    return float(sum(layer.kernel_operations(spec.kernel_samples, 1) for layer in layers))


def _kernel_bytes(spec: EarlyTimeSpec, layers: list[LayerSize]) -> float:
    k = float(spec.kernel_samples)
    if spec.infinite_width:
        making = _LIMIT_BYTES * min(k * k * max(layer.positions for layer in layers), _LIMIT_PAIRS)
    else:
        making = min(2 * BYTES * k * num_features(layers), _KERNEL_BYTES)
    return 4 * 8 * k * k + making
