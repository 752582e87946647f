"""What a point of ``hessian`` computes, counted: norms, bounds, balls and training of one network; free of JAX."""

import functools
import math
from dataclasses import replace

from ntk_core.data import DatasetShapes, dataset_shapes
from ntk_core.experiments.hessian.network import ComparedNetwork
from ntk_core.experiments.hessian.spec import HessianSpec
from ntk_core.networks.sizes import LayerSize, layer_sizes, num_copies, small_space_pays
from ntk_core.runs import Counted, Counts, typical_steps

# Typical counts: products until the residual is small, places at which an ascent looks (its steps and starts), steps of
# training and rounds. The largest number of Lanczos vectors that are held is exact.
TYPICAL_MATVECS = 20
MAX_LANCZOS_VECTORS, MAX_OF_DIAGONAL = 129, 257
BALL_STEPS = 8
TYPICAL_STEPS = 200
TYPICAL_ROUNDS = 5  # of the search for the best combination of outputs
# Copies of the weights: the network alone; a step of training (gradient and new weights); an ascent in a ball.
COPIES_AT_REST, COPIES_IN_TRAINING, COPIES_IN_BALLS = 1, 3, 6


def counts(spec: HessianSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """One width and network, all seeds; ``most`` counts all steps and products that are allowed."""
    width, line = spec.at_key(key)
    network = _lines(spec)[line]
    counted = _counted(spec, network, width)
    lanczos = MAX_OF_DIAGONAL if network.closed_form == "shallow" else MAX_LANCZOS_VECTORS
    bounded = spec.bounds and (network.has_bound or network.output != "linear")
    # Every output alone, then the rounds from each of them and from a random direction.
    num_outputs = counted.num_outputs
    norms = 1 + bounded + spec.vector * (num_outputs + TYPICAL_ROUNDS * (num_outputs + 1))
    directions = spec.num_seeds * norms * min(spec.num_inputs, counted.num_samples)
    blocks = spec.blocks and width == spec.widths[-1]
    directions += 2 * blocks * math.comb(len(counted.layers) + 1, 2)
    places = len(spec.radii) * spec.num_starts * (BALL_STEPS + 1)
    directions += 2 * min(spec.num_ball_seeds, spec.num_seeds) * places
    trained = min(spec.num_trained, spec.num_seeds) if network.input == "data" else 0
    copies = COPIES_IN_BALLS if spec.radii else COPIES_IN_TRAINING if trained else COPIES_AT_REST
    programs = {
        "hessian": 1 + (bounded + blocks + spec.shares) / 2 + spec.vector,
        "training": bool(trained),
        "search": bool(places),
    }
    return (
        Counts(
            counted,
            programs,
            steps=trained * typical_steps(spec.training.max_steps, most, TYPICAL_STEPS),
            kernels=trained * spec.training.num_records + spec.shares * spec.num_seeds,
            products=directions * (lanczos if most else TYPICAL_MATVECS),
            copies=copies,
            views=1,
            matrices=4,
            numbers=lanczos * sum(map(restricted_size, counted.layers)),
        ),
    )


@functools.lru_cache(maxsize=256)
def _lines(spec: HessianSpec) -> dict[str, ComparedNetwork]:
    return spec.lines()


@functools.lru_cache(maxsize=512)
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
