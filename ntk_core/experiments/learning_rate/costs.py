"""What a point of ``learning_rate`` computes: trainings of three models at all rates and seeds; free of JAX."""

from dataclasses import replace

from ntk_core.experiments.learning_rate.spec import LearningRateSpec
from ntk_core.networks.sizes import num_copies
from ntk_core.runs import Counted, Counts, Work

DENSE_RECORDS = 100  # steps from the first that are all looked at, so that no peak is missed
TOGETHER_BYTES = 2**30  # runs are trained together up to this
_STEPS_OF = {"linear": 0, "quadratic": 4, "network": 1}  # a step, in those of the network
_PROGRAMS = {"linear": "linear model", "quadratic": "many trainings", "network": "many trainings"}


def counts(spec: LearningRateSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """One width, all models, rates and seeds; all steps in any case."""
    network, runs = counted_at(spec, key), len(spec.rates) * spec.num_seeds
    return tuple(_of_model(spec, network, model, runs) for model in spec.models)


def _of_model(spec: LearningRateSpec, network: Counted, model: str, runs: int) -> Counts:
    looks = min(spec.max_steps, DENSE_RECORDS) + DENSE_RECORDS
    group = together(network, model)
    held, trains = _held(network, model), model != "linear"
    jacobians = (looks if spec.keep_paths else 1) * network.kernel_rows
    at_once, groups = min(runs, group), -(-runs // group)
    return replace(
        held,
        programs={_PROGRAMS[model]: 1},
        times=runs,
        steps=trains * (_STEPS_OF[model] * spec.max_steps + looks / 3 + jacobians),
        squares=(not trains) * 2 * spec.max_steps,
        more=Work(calls=40 * looks * groups / runs),
        copies=held.copies * at_once + 3 * network.kernel_rows + spec.num_seeds,
        views=held.views * at_once,
        matrices=held.matrices * at_once,
    )


def counted_at(spec: LearningRateSpec, key: str) -> Counted:
    """The network of a point, counted."""
    counted = Counted.of(spec, spec.architecture, spec.value_of(key), num_copies(spec.architecture))
    return replace(counted, num_test=0)  # test points are not looked at


def together(network: Counted, model: str) -> int:
    """How many runs are trained at once."""
    return max(1, min(256, int(TOGETHER_BYTES // _held(network, model).peak_bytes)))


def _held(network: Counted, model: str) -> Counts:
    """One run: weights at w₀ and w_t, gradients and temporaries, and what passes hold of every input."""
    copies, views = {"linear": (0, 1), "quadratic": (10, 3), "network": (6, 1)}[model]
    return Counts(network, copies=copies, views=views, matrices=4)
