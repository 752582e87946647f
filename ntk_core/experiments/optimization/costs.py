"""What a point of ``optimization`` costs: trainings of one width with all eigenvalues at each record; free of JAX."""

from ntk_core.experiments.optimization.spec import OptimizationSpec
from ntk_core.networks.sizes import num_copies
from ntk_core.runs import BYTES, Counted, Work

COMPILED_PROGRAMS = 1.3  # a step, and what is recorded


def work(spec: OptimizationSpec, key: str, most: bool = False) -> Work:
    """One width, all outputs, rates and seeds; all steps in any case."""
    counted = _counted(spec, key)
    record = counted.kernel + Work(20 * counted.kernel_rows**3)  # all eigenvalues, of two kernels
    each = spec.training.max_steps * counted.step + spec.training.num_records * record
    runs = len(spec.rates) * spec.num_seeds
    return len(spec.outputs) * (COMPILED_PROGRAMS * counted.program + runs * each)


def peak_bytes(spec: OptimizationSpec, key: str) -> float:
    """Expected peak memory for one run of one width, in bytes: weights at w₀ and w_t, a gradient and temporaries,
    views, kernels in double precision."""
    counted = _counted(spec, key)
    return BYTES * float(5 * counted.num_weights + counted.num_views + 20 * counted.kernel_rows**2)


def _counted(spec: OptimizationSpec, key: str) -> Counted:
    return Counted.of(spec, spec.architecture, spec.value_of(key), num_copies(spec.architecture))
