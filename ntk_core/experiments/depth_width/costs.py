"""What a point of ``depth_width`` costs: draws of K(x, x), Hessians and trainings of one pair; free of JAX."""

from ntk_core.experiments.depth_width.spec import DepthWidthSpec
from ntk_core.runs import BYTES, COMPILE_SECONDS, FLOPS_PER_SECOND, TYPICAL_STEPS, Counted

BLOCK_NUMBERS = 2**20  # of z in a block of draws, of all layers
SECONDS_PER_NUMBER = 5e-8  # of a hidden neuron of a draw: two normal numbers and some ten products
PROGRAMS = 3  # a step, a kernel, a Hessian; each takes longer to compile with every layer
LAYERS_OF_A_COMPILATION = 4
INPUTS = 2  # at which ‖H‖ is measured; our choice
MATVECS = 40  # products with a Hessian until its norm has converged
HESSIAN_BASIS = 130  # vectors of a Lanczos basis


def seconds(spec: DepthWidthSpec, key: str) -> float:
    """Expected seconds for one pair, on two cores."""
    depth, width = spec.value_of(key)
    drawn = spec.num_kernels * depth * width * SECONDS_PER_NUMBER
    if not spec.trains(depth, width):
        return drawn
    counted = Counted.of(spec, spec.architecture(depth), width)
    hessian = INPUTS * MATVECS * 12 * counted.multiplications / FLOPS_PER_SECOND
    steps = min(spec.training.max_steps, TYPICAL_STEPS)
    each = steps * counted.step_seconds + spec.training.num_records * counted.kernel_seconds + hessian
    compilation = PROGRAMS * COMPILE_SECONDS * (1 + depth / LAYERS_OF_A_COMPILATION)
    return drawn + compilation + spec.num_seeds * each


def peak_bytes(spec: DepthWidthSpec, key: str) -> float:
    """Expected peak memory for one pair, in bytes: a block of draws with its temporaries; or weights at w₀ and w_t, a
    gradient and temporaries, views, kernels, and the basis of a Hessian's small space."""
    depth, width = spec.value_of(key)
    drawn = 16.0 * max(BLOCK_NUMBERS, depth * width)
    if not spec.trains(depth, width):
        return drawn
    counted = Counted.of(spec, spec.architecture(depth), width)
    basis = HESSIAN_BASIS * sum(layer.fan_in + layer.features for layer in counted.layers)
    trained = BYTES * float(5 * counted.num_weights + counted.num_views + basis + 20 * counted.kernel_rows**2)
    return max(drawn, trained)
