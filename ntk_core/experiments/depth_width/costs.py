"""What a point of ``depth_width`` costs: draws of K(x, x), Hessians and trainings of one pair; free of JAX."""

from ntk_core.experiments.depth_width.spec import DepthWidthSpec
from ntk_core.runs import BYTES, HESSIAN_BYTES, TYPICAL_STEPS, Counted, Work

BLOCK_NUMBERS = 2**20  # of z in a block of draws, of all layers
DRAW_BYTES = 1000  # a hidden neuron of a draw, two normal numbers and some ten products, takes as long as reading these
# A step and a kernel, and a Hessian, as they took on two idle cores, where the whole preset takes 85 s.
TRAINING_PROGRAMS, HESSIAN_PROGRAMS, LOOP_PROGRAMS = 0.15, 0.8, 0.9
UNROLLED_DEPTH = 8  # up to which ‖H‖ is taken in its small space, layers unrolled; deeper: by a loop, over all weights
INPUTS = 2  # at which ‖H‖ is measured; our choice
MATVECS = 40  # products with a Hessian until its norm has converged
HESSIAN_BASIS = 130  # vectors of a Lanczos basis


def work(spec: DepthWidthSpec, key: str, most: bool = False) -> Work:
    """One pair, all draws and seeds; ``most`` counts all steps that are allowed."""
    depth, width = spec.value_of(key)
    drawn = Work(traffic=float(spec.num_kernels * depth * width * DRAW_BYTES))
    if not spec.trains(depth, width):
        return drawn
    counted = Counted.of(spec, spec.architecture(depth), width)
    product = Work(12 * counted.multiplications, 4 * BYTES * counted.num_weights, 1)
    steps = spec.training.max_steps if most else min(spec.training.max_steps, TYPICAL_STEPS)
    each = steps * counted.step + spec.training.num_records * counted.kernel
    total = drawn + TRAINING_PROGRAMS * counted.program + spec.num_seeds * each
    if not spec.curves(depth):
        return total
    if depth > UNROLLED_DEPTH:
        each = Work(traffic=6.0 * HESSIAN_BASIS * BYTES * counted.num_weights)
        return total + Work(programs=LOOP_PROGRAMS) + spec.num_seeds * INPUTS * each
    return total + HESSIAN_PROGRAMS * counted.program + spec.num_seeds * INPUTS * MATVECS * product


def peak_bytes(spec: DepthWidthSpec, key: str) -> float:
    """Expected peak memory for one pair, in bytes: a block of draws with its temporaries; or weights at w₀ and w_t, a
    gradient and temporaries, views, kernels, and the basis of a Hessian's small space."""
    depth, width = spec.value_of(key)
    drawn = 16.0 * max(BLOCK_NUMBERS, depth * width)
    if not spec.trains(depth, width):
        return drawn
    counted = Counted.of(spec, spec.architecture(depth), width)
    takes_hessians = spec.curves(depth)
    sides = sum(layer.fan_in + layer.features for layer in counted.layers)
    basis = takes_hessians * HESSIAN_BASIS * (counted.num_weights if depth > UNROLLED_DEPTH else sides)
    numbers = 5 * counted.num_weights + counted.num_views + basis + 20 * counted.kernel_rows**2
    trained = HESSIAN_BYTES * takes_hessians + BYTES * float(numbers)
    return max(drawn, trained)
