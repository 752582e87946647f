"""What a point of ``depth_width`` computes, counted: draws of K(x, x), Hessians and trainings; free of JAX."""

from ntk_core.experiments.depth_width.spec import DepthWidthSpec
from ntk_core.runs import BYTES, HESSIAN_BASIS, MATVECS, Counted, Counts, Work, typical_steps

BLOCK_NUMBERS = 2**20  # of z in a block of draws, of all layers
DRAW_BYTES = 1000  # a hidden neuron of a draw, two normal numbers and some ten products, takes as long as reading these
UNROLLED_DEPTH = 8  # up to which ‖H‖ is taken in its small space, layers unrolled; deeper: by a loop, over all weights
INPUTS = 2  # at which ‖H‖ is measured; our choice


def counts(spec: DepthWidthSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """One pair, all draws and seeds; ``most`` counts all steps that are allowed."""
    depth, width = spec.value_of(key)
    traffic = float(spec.num_kernels * depth * width * DRAW_BYTES)
    drawn = Counts(more=Work(traffic=traffic), num_bytes=16.0 * max(BLOCK_NUMBERS, depth * width))
    if not spec.trains(depth, width):
        return (drawn,)
    network = Counted.of(spec, spec.architecture(depth), width)
    curves, unrolled = spec.curves(depth), depth <= UNROLLED_DEPTH
    direction = sum(layer.fan_in + layer.features for layer in network.layers) if unrolled else network.num_weights
    loop = Work(traffic=6.0 * INPUTS * HESSIAN_BASIS * BYTES * network.num_weights)
    trained = Counts(
        network,
        {"small network": 1 + (curves and unrolled)},
        times=spec.num_seeds,
        steps=typical_steps(spec.training.max_steps, most),
        kernels=spec.training.num_records,
        products=INPUTS * MATVECS * (curves and unrolled),
        more=loop if curves and not unrolled else Work(),
        copies=5,
        views=1,
        matrices=20,
        numbers=curves * HESSIAN_BASIS * direction,
    )
    return drawn, trained, Counts(programs={"loop": curves and not unrolled})
