"""What a point of ``lazy`` costs: κ and trainings of one width and scale; free of JAX."""

from ntk_core.experiments.lazy.spec import LazySpec
from ntk_core.runs import BYTES, HESSIAN_BYTES, TYPICAL_STEPS, Counted, Work

COMPILED_PROGRAMS = 2.4  # a step, what is recorded, a kernel, a Hessian
MATVECS = 40  # products with a Hessian until its norm has converged
KERNELS_BETWEEN = 5  # w₀ and w_T, for the least distance
HESSIAN_BASIS = 130  # vectors of a Lanczos basis


def work(spec: LazySpec, key: str, most: bool = False) -> Work:
    """One point, all outputs, starts and seeds; ``most`` counts all steps that are allowed."""
    counted = Counted.of(spec, spec.architecture, spec.value_of(key)[0])
    product = Work(12 * counted.multiplications, 4 * BYTES * counted.num_weights, 1)
    hessian = 2 * counted.num_outputs * MATVECS * product
    steps = spec.training.max_steps if most else min(spec.training.max_steps, TYPICAL_STEPS)
    each = steps * counted.step + (spec.training.num_records + KERNELS_BETWEEN) * counted.kernel + hessian
    kinds = len(spec.outputs) * len(spec.starts)
    return kinds * (COMPILED_PROGRAMS * counted.program + spec.num_seeds * _copies(spec) * each)


def peak_bytes(spec: LazySpec, key: str) -> float:
    """Expected peak memory for one run of one point, in bytes: weights at w₀ and w_t, a gradient and temporaries,
    views, kernels, and the basis of a Hessian's small space."""
    counted = Counted.of(spec, spec.architecture, spec.value_of(key)[0])
    basis = HESSIAN_BASIS * sum(layer.positions * (layer.fan_in + layer.features) for layer in counted.layers)
    numbers = 5 * counted.num_weights + counted.num_views + basis
    return HESSIAN_BYTES + BYTES * float(_copies(spec) * numbers + 20 * counted.kernel_rows**2)


def _copies(spec: LazySpec) -> int:
    """Networks at once: 2 where an output of 0 at w₀ needs a copy."""
    return 1 if spec.starts == ("random",) else 2
