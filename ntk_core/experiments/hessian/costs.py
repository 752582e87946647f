"""What a point of ``hessian`` costs: norms, bounds, balls and training of one network at one width; free of JAX."""

import math
from dataclasses import replace

from ntk_core.data import DatasetShapes, dataset_shapes
from ntk_core.experiments.hessian.network import ComparedNetwork
from ntk_core.experiments.hessian.spec import HessianSpec
from ntk_core.networks.sizes import LayerSize, layer_sizes, num_copies, small_space_pays
from ntk_core.runs import BYTES, Counted, Work

# Typical counts: products until the residual is small, places at which an ascent looks (its steps and starts), steps of
# training and rounds. The largest number of Lanczos vectors that are held is exact.
TYPICAL_MATVECS = 20
MAX_LANCZOS_VECTORS, MAX_OF_DIAGONAL = 129, 257
BALL_STEPS = 8
TYPICAL_STEPS = 200
TYPICAL_ROUNDS = 5  # of the search for the best combination of outputs
# Taken while products are compiled, and where the Hessian has a closed form; measured.
NORM_BYTES, CLOSED_FORM_BYTES = 1.1e8, 5e7
# Copies of the weights: the network alone; a step of training (gradient and new weights); an ascent in a ball.
COPIES_AT_REST, COPIES_IN_TRAINING, COPIES_IN_BALLS = 1, 3, 6


def work(spec: HessianSpec, key: str, most: bool = False) -> Work:
    """One width and network, all seeds; ``most`` counts all steps and products that are allowed."""
    width, line = spec.at_key(key)
    network = spec.lines()[line]
    counted = _counted(spec, network, width)
    num_inputs = min(spec.num_inputs, counted.num_samples)
    # A product reads each weight twice: tangents forward and backward.
    matvecs = _lanczos_vectors(network) if most else TYPICAL_MATVECS
    norm = num_inputs * matvecs * Work(4 * counted.multiplications, 2 * BYTES * counted.num_weights, 1)
    compiled, each = 0.9, norm  # programs to compile, in those that go through the whole network
    if spec.bounds and (network.has_bound or network.output != "linear"):
        compiled, each = compiled + 0.5, each + norm
    if spec.vector:  # every output alone, then the rounds from each of them and from a random direction
        num_outputs = counted.num_outputs
        compiled, each = compiled + 1, each + (num_outputs + TYPICAL_ROUNDS * (num_outputs + 1)) * norm
    total = spec.num_seeds * each
    if spec.shares:
        compiled, total = compiled + 0.5, total + spec.num_seeds * counted.kernel
    if spec.blocks and width == spec.widths[-1]:
        pairs = math.comb(len(counted.layers) + 1, 2)
        compiled, total = compiled + 0.5, total + 2 * pairs / num_inputs * norm
    if network.input == "data" and (trained := min(spec.num_trained, spec.num_seeds)):
        steps = spec.training.max_steps if most else min(TYPICAL_STEPS, spec.training.max_steps)
        compiled += 1
        total += trained * (steps * counted.step + spec.training.num_records * counted.kernel)
    if spec.radii:
        places = len(spec.radii) * spec.num_starts * (BALL_STEPS + 1)
        searched = min(spec.num_ball_seeds, spec.num_seeds)
        compiled, total = compiled + 1, total + 2 * searched * places / num_inputs * norm
    return compiled * counted.program + total


def _lanczos_vectors(network: ComparedNetwork) -> int:
    return MAX_OF_DIAGONAL if network.closed_form == "shallow" else MAX_LANCZOS_VECTORS


def peak_bytes(spec: HessianSpec, key: str) -> float:
    """Expected peak memory in bytes: the weights as often as they are held, the Lanczos basis, views of the inputs."""
    width, line = spec.at_key(key)
    network = spec.lines()[line]
    counted = _counted(spec, network, width)
    trains = network.input == "data" and min(spec.num_trained, spec.num_seeds) > 0
    copies = COPIES_IN_BALLS if spec.radii else COPIES_IN_TRAINING if trains else COPIES_AT_REST
    basis = _lanczos_vectors(network) * sum(map(restricted_size, counted.layers))
    compiling = CLOSED_FORM_BYTES if network.closed_form == "shallow" else NORM_BYTES
    return compiling + BYTES * float(
        copies * counted.num_weights + basis + counted.num_views + 4 * counted.kernel_rows**2
    )


def _counted(spec: HessianSpec, network: ComparedNetwork, value: int) -> Counted:
    """All copies of one of the networks, on what it sees, at one value of what is swept."""
    shapes = _shapes(spec, network, value)
    layers = hidden_and_output(spec, network, value) * num_copies(network)
    return Counted(layers, shapes.num_samples, shapes.num_outputs)


def hidden_and_output(spec: HessianSpec, network: ComparedNetwork, value: int) -> list[LayerSize]:
    """The layers of one of the networks at one value of what is swept."""
    shapes = _shapes(spec, network, value)
    return layer_sizes(*network.at(spec.width_at(value)), shapes.input_shape, shapes.num_outputs)


def restricted_size(layer: LayerSize) -> int:
    """Numbers that one direction of the small space has in this layer, for one input."""
    if layer.masked or not small_space_pays(layer.positions, layer.fan_in, layer.features):
        return layer.num_params
    return layer.positions * (layer.fan_in + layer.features) + layer.num_biases


def _shapes(spec: HessianSpec, network: ComparedNetwork, value: int) -> DatasetShapes:
    """Sizes of what the network sees."""
    dataset = spec.dataset_at(value)
    known = dataset_shapes(dataset.name, **dataset.options())
    return known if network.input == "data" else replace(known, num_samples=1, input_shape=(1,), num_outputs=1)
