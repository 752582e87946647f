"""What a point of ``hessian`` costs: norms, bounds, balls and training of one network at one width; free of JAX."""

import math
from dataclasses import replace

from ntk_core.data import DatasetShapes, dataset_shapes
from ntk_core.experiments.hessian.network import ComparedNetwork
from ntk_core.experiments.hessian.spec import HessianSpec
from ntk_core.networks.sizes import LayerSize, layer_sizes, num_copies
from ntk_core.runs import BYTES, COMPILE_SECONDS, FLOPS_PER_SECOND, STEP_OVERHEAD_SECONDS, Counted

# Typical counts: products until the residual is small, places at which an ascent looks (its steps and starts), steps of
# training and rounds. The largest number of Lanczos vectors that are held is exact.
TYPICAL_MATVECS = 20
MAX_LANCZOS_VECTORS = 129
BALL_STEPS = 8
TYPICAL_STEPS = 200
TYPICAL_ROUNDS = 5  # of the search for the best combination of outputs
# Copies of the weights: the network alone; a step of training (gradient and new weights); an ascent in a ball.
COPIES_AT_REST, COPIES_IN_TRAINING, COPIES_IN_BALLS = 1, 3, 6


def seconds(spec: HessianSpec, key: str) -> float:
    """Expected seconds for one width and network, all seeds, on two cores."""
    width, line = spec.at_key(key)
    network = spec.lines()[line]
    counted = _counted(spec, network, width)
    num_inputs = min(spec.num_inputs, counted.num_samples)
    # A product reads each weight some four times: tangents forward and backward, of values and of gradients.
    norm = num_inputs * TYPICAL_MATVECS * (8 * counted.multiplications / FLOPS_PER_SECOND + STEP_OVERHEAD_SECONDS)
    compiled, each = 2.0, norm  # programs to compile, in typical ones: drawing, kernel and norm are two
    if spec.bounds and (network.has_bound or network.output != "linear"):
        compiled, each = compiled + 1, each + norm
    if spec.vector:  # every output alone, then the rounds from each of them and from a random direction
        num_outputs = counted.num_outputs
        compiled, each = compiled + 2, each + norm * (num_outputs + TYPICAL_ROUNDS * (num_outputs + 1))
    total = spec.num_seeds * each
    if spec.blocks and width == spec.widths[-1]:
        pairs = math.comb(len(counted.layers) + 1, 2)
        compiled, total = compiled + 1, total + 2 * pairs * norm / num_inputs
    if network.input == "data" and (trained := min(spec.num_trained, spec.num_seeds)):
        steps = min(TYPICAL_STEPS, spec.training.max_steps)
        compiled += 2
        total += trained * (steps * counted.step_seconds + spec.training.num_records * counted.kernel_seconds)
    if spec.radii:
        places = len(spec.radii) * spec.num_starts * (BALL_STEPS + 1)
        searched = min(spec.num_ball_seeds, spec.num_seeds)
        compiled, total = compiled + 2, total + 2 * searched * places * norm / num_inputs
    return compiled * COMPILE_SECONDS + total


def peak_bytes(spec: HessianSpec, key: str) -> float:
    """Expected peak memory in bytes: the weights as often as they are held, the Lanczos basis, views of the inputs."""
    width, line = spec.at_key(key)
    network = spec.lines()[line]
    counted = _counted(spec, network, width)
    trains = network.input == "data" and min(spec.num_trained, spec.num_seeds) > 0
    copies = COPIES_IN_BALLS if spec.radii else COPIES_IN_TRAINING if trains else COPIES_AT_REST
    basis = MAX_LANCZOS_VECTORS * sum(map(restricted_size, counted.layers))
    return BYTES * float(copies * counted.num_weights + basis + counted.num_views + 4 * counted.kernel_rows**2)


def _counted(spec: HessianSpec, network: ComparedNetwork, width: int) -> Counted:
    """All copies of one of the networks, on what it sees."""
    shapes = _shapes(spec, network)
    layers = hidden_and_output(spec, network, width) * num_copies(network)
    return Counted(layers, shapes.num_samples, shapes.num_outputs)


def hidden_and_output(spec: HessianSpec, network: ComparedNetwork, width: int) -> list[LayerSize]:
    """The layers of one of the networks at width m."""
    shapes = _shapes(spec, network)
    return layer_sizes(*network.at(width), shapes.input_shape, shapes.num_outputs)


def restricted_size(layer: LayerSize) -> int:
    """Numbers that one direction of the small space has in this layer, for one input."""
    if layer.masked or layer.positions >= min(layer.fan_in, layer.features):
        return layer.num_params
    return layer.positions * (layer.fan_in + layer.features) + layer.num_biases


def _shapes(spec: HessianSpec, network: ComparedNetwork) -> DatasetShapes:
    """Sizes of what the network sees."""
    known = dataset_shapes(spec.dataset.name, **spec.dataset.options())
    return known if network.input == "data" else replace(known, num_samples=1, input_shape=(1,), num_outputs=1)
