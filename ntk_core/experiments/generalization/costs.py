"""What a point of ``generalization`` costs: trainings with kernels of training and test points; free of JAX."""

from ntk_core.experiments.generalization.spec import GeneralizationSpec
from ntk_core.networks.sizes import num_copies
from ntk_core.runs import BYTES, Counted, Work

# A step, its records, kernels and outputs, shared by all ρ, and by seeds with data of their own, which count each.
COMPILED_PROGRAMS, INFINITE_PROGRAMS = 0.5, 0.2
TYPICAL_STEPS = 300  # some 40 at ρ = 1/2 and 500 at ρ = 0
LINEAR_SHARE = 4  # operations of a step of the linear model, per entry of its kernel


def work(spec: GeneralizationSpec, key: str, most: bool = False) -> Work:
    """One point, all seeds; ``most`` counts all steps that are allowed."""
    counted = _counted(spec, key)
    steps = spec.training.max_steps if most else min(spec.training.max_steps, TYPICAL_STEPS)
    rows, more = counted.kernel_rows, 1 + counted.num_test / counted.num_samples
    # Cholesky's third of n³, and products with kernels in double precision.
    look = more * counted.kernel + Work(rows**3 / 3 + 8 * more * rows**2, 40 * BYTES * more * rows**2, 5)
    linear = Work(LINEAR_SHARE * rows**2, BYTES * rows**2, 1)
    spaces = Work(10 * rows**3 if rows <= 1500 else 1000 * rows**2)
    each = steps * (counted.step + linear) + (spec.training.num_records + 1) * look + spaces
    limit = INFINITE_PROGRAMS if spec.infinite_width and spec.architecture.has_infinite_width else 0.0
    programs = (COMPILED_PROGRAMS + limit) / len(spec.richness)
    return programs * counted.program + spec.num_seeds * each


def peak_bytes(spec: GeneralizationSpec, key: str) -> float:
    """Expected peak memory for one run, in bytes: weights at w₀ and w_t, a gradient and temporaries, views of all
    points, the first kernel of all points, and some in double precision."""
    counted = _counted(spec, key)
    every = counted.kernel_rows * (counted.kernel_rows + counted.num_test * counted.num_outputs)
    kernels = 2 * every + 2 * (every + 5 * counted.kernel_rows**2)
    return BYTES * float(5 * counted.num_weights + counted.num_views + kernels)


def _counted(spec: GeneralizationSpec, key: str) -> Counted:
    width, _, count = spec.value_of(key)
    return Counted.of(spec.of_samples(count), spec.architecture, width, num_copies(spec.architecture))
