"""What a point of ``early_time`` costs: steps, looks at the outputs, kernels; free of JAX."""

from ntk_core.experiments.early_time.spec import EarlyTimeSpec
from ntk_core.networks.sizes import LayerSize, layer_sizes, num_features
from ntk_core.runs import BYTES, Work

COMPILED_ONCE, COMPILED_EACH = 0.4, 0.4  # programs, and of each activation
LOOKED_AT = 5000  # training inputs on which the loss is measured
# An activation and its derivative take about as long as this many multiplications.
_ACTIVATION_OPERATIONS = 60
# Kernels of infinite width take this much a pair of inputs and position, and are made in blocks of so many pairs.
_LIMIT_BYTES, _LIMIT_PAIRS = 260.0, 2.0**24
_KERNEL_BYTES = 4 * 2**30  # kernels of a network are made in blocks below this


def work(spec: EarlyTimeSpec, key: str, most: bool = False) -> Work:
    """One point, all activations and seeds; all steps in any case."""
    layers, n, n_test = _layers(spec, key), spec.dataset.num_samples, spec.dataset.num_test
    once = sum(layer.multiplications for layer in layers) * 2 + _ACTIVATION_OPERATIONS * num_features(layers)
    batch = spec.training.batch_size or n
    copies = 2 if spec.network.is_doubled else 1
    looks = min(spec.training.num_records, spec.training.max_steps)
    steps = spec.training.max_steps
    training = 3 * batch * once * steps + (min(n, LOOKED_AT) + n_test) * once * looks
    seen = 6 * num_features(layers) + 4 * _patches(layers)  # of an input, read or written
    numbers = (3 * sum(layer.num_params for layer in layers) + batch * seen) * steps
    numbers += (min(n, LOOKED_AT) + n_test) * seen * looks
    one = Work(training + _kernel_operations(spec, layers), BYTES * float(numbers))
    activations = len(spec.network.activations)
    runs = activations * spec.num_seeds
    compiled = COMPILED_ONCE + COMPILED_EACH * activations
    return runs * (copies * one + Work(calls=steps)) + Work(programs=compiled)


def peak_bytes(spec: EarlyTimeSpec, key: str) -> float:
    """Expected peak memory of a point, in bytes.

    Data, their features in float64; weights, gradient and a copy; inputs, pre-activations and cotangents of a batch
    (patches, for convolutions), each once more as a temporary; the order of the batches; kernels in float64.
    """
    layers, n, d = _layers(spec, key), spec.dataset.num_samples, spec.dim_at(key)
    data = 2 * BYTES * (n + spec.dataset.num_test) * d + 3 * 8 * n * (d + 2)
    copies = 2 if spec.network.is_doubled else 1
    rows = max(spec.training.batch_size or n, 1000) if spec.training.max_steps else 0
    trained = min(rows, spec.training.batch_size or n)  # inputs whose patches are held for the gradient
    weights = 0 if spec.infinite_width and not rows else 4 * sum(layer.num_params for layer in layers)
    batches = 2 * BYTES * spec.training.batch_size * spec.training.max_steps
    network = copies * BYTES * float(weights + 4 * rows * num_features(layers) + 2 * trained * _patches(layers))
    return float(data + batches) + network + _kernel_bytes(spec, layers)


def _layers(spec: EarlyTimeSpec, key: str) -> list[LayerSize]:
    d, network = spec.dim_at(key), spec.network
    architecture = network.architecture(network.activations[0], d)
    return layer_sizes(architecture, spec.width_at(key), spec.seen_shape(d), 1, network.dimensions)


def _patches(layers: list[LayerSize]) -> int:
    """Numbers in the patches of one input that convolutions see."""
    return sum(layer.positions * layer.fan_in for layer in layers if layer.positions > 1)


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
