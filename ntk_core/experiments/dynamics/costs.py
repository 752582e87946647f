"""What a point of ``dynamics`` costs: a network and its linear model of one width; free of JAX."""

from ntk_core.dynamics.choices import METHODS
from ntk_core.experiments.dynamics.spec import DynamicsSpec
from ntk_core.runs import BYTES, Counted, Work

# A network's step, its linear model's, and what is recorded of both; a further method's steps.
COMPILED_PROGRAMS, COMPILED_OF_FURTHER = 1.2, 0.4


def work(spec: DynamicsSpec, key: str, most: bool = False) -> Work:
    """One width, all outputs, methods and seeds; all steps in any case."""
    counted = Counted.of(spec, spec.architecture, spec.value_of(key))
    step, rows = counted.step, counted.kernel_rows
    linear_step = Work(2 * rows**2, BYTES * rows**2, 1)
    record = counted.kernel + Work(10 * rows**3)  # all eigenvalues
    total = Work()
    for index, method in enumerate(spec.methods):
        # Adam's linear model is trained in its weights.
        both = step + (1.5 * step if not METHODS[method].is_linear else (1 + spec.infinite_width) * linear_step)
        each = spec.training.max_steps * both + spec.training.num_records * record
        compiled = COMPILED_OF_FURTHER if index else COMPILED_PROGRAMS
        total += compiled * counted.program + spec.num_seeds * each
    return len(spec.outputs) * total


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
