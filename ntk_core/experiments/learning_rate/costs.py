"""What a point of ``learning_rate`` costs: trainings of three models at all rates and seeds; free of JAX."""

from ntk_core.experiments.learning_rate.spec import LearningRateSpec
from ntk_core.networks.sizes import num_copies
from ntk_core.runs import BYTES, COMPILE_SECONDS, FLOPS_PER_SECOND, STEP_OVERHEAD_SECONDS, Counted

COMPILED_PROGRAMS = 3  # per model: a step, a look, a kernel
DENSE_RECORDS = 100  # steps from the first that are all looked at, so that no peak is missed
_STEPS_OF = {"linear": 0.0, "quadratic": 3.0, "network": 1.0}  # a step in units of the network's
_COPIES_OF = {"linear": 0, "quadratic": 10, "network": 6}
_LOOK_SECONDS = 2e-3
TOGETHER_BYTES = 2**30  # runs are trained together up to this


def seconds(spec: LearningRateSpec, key: str) -> float:
    """Expected seconds for one width, all models, rates and seeds, on two cores."""
    counted, runs = counted_at(spec, key), len(spec.rates) * spec.num_seeds
    rows = counted.kernel_rows
    look = 2 * counted.multiplications * counted.num_samples / FLOPS_PER_SECOND
    kernel = 6 * rows * counted.num_samples * counted.multiplications / FLOPS_PER_SECOND
    total = 0.0
    for model in spec.models:
        step = _STEPS_OF[model] * counted.step_seconds or 2 * rows**2 / FLOPS_PER_SECOND + STEP_OVERHEAD_SECONDS
        looks = min(spec.max_steps, DENSE_RECORDS)
        kernels = 0.0 if model == "linear" else kernel * (looks if spec.keep_paths else 1)
        total += COMPILED_PROGRAMS * COMPILE_SECONDS + looks * _LOOK_SECONDS
        total += runs * (spec.max_steps * step + looks * look + kernels)
    return total


def peak_bytes(spec: LearningRateSpec, key: str) -> float:
    """Expected peak memory of a point, in bytes: the runs that are trained together, and a Jacobian."""
    counted = counted_at(spec, key)
    jacobian = 3 * counted.kernel_rows * counted.num_weights
    return max(bytes_of_run(counted, model) * together(counted, model) for model in spec.models) + BYTES * jacobian


def counted_at(spec: LearningRateSpec, key: str) -> Counted:
    """The network of a point, counted."""
    return Counted.of(spec, spec.architecture, spec.value_of(key), num_copies(spec.architecture))


def bytes_of_run(counted: Counted, model: str) -> float:
    """Weights at w₀ and w_t, gradients and temporaries, and what passes hold of every input."""
    views = counted.num_views * (3 if model == "quadratic" else 1)
    return BYTES * float(_COPIES_OF[model] * counted.num_weights + views + 4 * counted.kernel_rows**2)


def together(counted: Counted, model: str) -> int:
    """How many runs are trained at once."""
    return max(1, min(256, int(TOGETHER_BYTES // bytes_of_run(counted, model))))
