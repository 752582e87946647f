"""What a point of ``learning_rate`` costs: trainings of three models at all rates and seeds; free of JAX."""

from dataclasses import replace

from ntk_core.experiments.learning_rate.spec import LearningRateSpec
from ntk_core.networks.sizes import num_copies
from ntk_core.runs import BYTES, Counted, Work

_COMPILED = {"linear": 0.7, "quadratic": 0.6, "network": 0.6}  # a step, a look, and of networks a kernel
DENSE_RECORDS = 100  # steps from the first that are all looked at, so that no peak is missed
TOGETHER_BYTES = 2**30  # runs are trained together up to this
_STEPS_OF = {"quadratic": 4, "network": 1}  # a step, in those of the network
_COPIES_OF = {"linear": 0, "quadratic": 10, "network": 6}


def work(spec: LearningRateSpec, key: str, most: bool = False) -> Work:
    """One width, all models, rates and seeds; all steps are counted, so ``most`` is no more."""
    del most
    counted, runs = counted_at(spec, key), len(spec.rates) * spec.num_seeds
    looks, rows = min(spec.max_steps, DENSE_RECORDS) + DENSE_RECORDS, counted.kernel_rows
    jacobian = rows * counted.step
    total = Work()
    for model in spec.models:
        if model == "linear":
            each = spec.max_steps * Work(4 * rows**2, 4 * BYTES * rows**2, 0)
        else:
            kernels = looks if spec.keep_paths else 1
            each = (_STEPS_OF[model] * spec.max_steps + looks / 3) * counted.step + kernels * jacobian
        groups = -(-runs // together(counted, model))
        total += _COMPILED[model] * counted.program + runs * each + groups * Work(calls=40 * looks)
    return total


def peak_bytes(spec: LearningRateSpec, key: str) -> float:
    """Expected peak memory of a point, in bytes: the runs that are trained together, and a Jacobian."""
    counted, runs = counted_at(spec, key), len(spec.rates) * spec.num_seeds
    jacobian = 3 * counted.kernel_rows * counted.num_weights
    at_once = max(bytes_of_run(counted, model) * min(runs, together(counted, model)) for model in spec.models)
    return at_once + BYTES * float(jacobian + spec.num_seeds * counted.num_weights)


def counted_at(spec: LearningRateSpec, key: str) -> Counted:
    """The network of a point, counted."""
    counted = Counted.of(spec, spec.architecture, spec.value_of(key), num_copies(spec.architecture))
    return replace(counted, num_test=0)  # test points are not looked at


def bytes_of_run(counted: Counted, model: str) -> float:
    """Weights at w₀ and w_t, gradients and temporaries, and what passes hold of every input."""
    views = counted.num_views * (3 if model == "quadratic" else 1)
    return BYTES * float(_COPIES_OF[model] * counted.num_weights + views + 4 * counted.kernel_rows**2)


def together(counted: Counted, model: str) -> int:
    """How many runs are trained at once."""
    return max(1, min(256, int(TOGETHER_BYTES // bytes_of_run(counted, model))))
