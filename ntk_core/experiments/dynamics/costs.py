"""What a point of ``dynamics`` costs: a network and its linear model of one width; free of JAX."""

from ntk_core.dynamics.choices import METHODS
from ntk_core.experiments.dynamics.spec import DynamicsSpec
from ntk_core.runs import BYTES, COMPILE_SECONDS, FLOPS_PER_SECOND, STEP_OVERHEAD_SECONDS, Counted

COMPILED_PROGRAMS = 3  # a network's step, its linear model's, and what is recorded of both


def seconds(spec: DynamicsSpec, key: str) -> float:
    """Expected seconds for one width, all outputs, methods and seeds, on two cores."""
    counted = Counted.of(spec, spec.architecture, spec.value_of(key))
    step, rows = counted.step_seconds, counted.kernel_rows
    linear_step = 2 * rows**2 / FLOPS_PER_SECOND + STEP_OVERHEAD_SECONDS
    record = counted.kernel_seconds + 10 * rows**3 / FLOPS_PER_SECOND  # all eigenvalues
    total = 0.0
    for method in spec.methods:
        # Adam's linear model is trained in its weights.
        both = step + (1.5 * step if not METHODS[method].is_linear else linear_step * (1 + spec.infinite_width))
        total += COMPILED_PROGRAMS * COMPILE_SECONDS
        total += spec.num_seeds * (spec.training.max_steps * both + spec.training.num_records * record)
    return total * len(spec.outputs)


def peak_bytes(spec: DynamicsSpec, key: str) -> float:
    """Expected peak memory for one run of one width, in bytes.

    Weights at w₀ and w_t, a gradient, what an optimizer remembers (two more for Adam, whose linear model has as many);
    views; kernels with test points.
    """
    counted = Counted.of(spec, spec.architecture, spec.value_of(key))
    copies = 5 if all(METHODS[name].is_linear for name in spec.methods) else 10
    all_rows = counted.kernel_rows + counted.num_test * counted.num_outputs
    kernels = 4 * all_rows * counted.kernel_rows + 8 * counted.kernel_rows**2
    return BYTES * float(copies * counted.num_weights + counted.num_views + kernels)
