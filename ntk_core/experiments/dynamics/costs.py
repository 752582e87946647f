"""What a point of ``dynamics`` computes, counted: a network and its linear model of one width; free of JAX."""

from ntk_core.dynamics.choices import METHODS
from ntk_core.experiments.dynamics.spec import DynamicsSpec
from ntk_core.runs import Counted, Counts

ADAMS_LINEAR_STEP = 1.5  # of a linear model that is trained in its weights, in steps of the network


def counts(spec: DynamicsSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """One width, all outputs, methods and seeds; all steps in any case."""
    network = Counted.of(spec, spec.architecture, spec.value_of(key))
    num_linear = sum(METHODS[method].is_linear for method in spec.methods)
    others, records = len(spec.methods) - num_linear, spec.training.num_records * len(spec.methods)
    with_test = 1 + network.num_test / network.num_samples
    return (
        Counts(
            network,
            {"linear model": len(spec.outputs), "training": len(spec.outputs) * len(spec.methods)},
            times=len(spec.outputs) * spec.num_seeds,
            steps=spec.training.max_steps * (len(spec.methods) + ADAMS_LINEAR_STEP * others),
            squares=spec.training.max_steps * num_linear * (1 + spec.infinite_width),
            kernels=records,
            cubes=10 * records,
            copies=10 if others else 5,  # Adam remembers two more, and its linear model has as many
            views=1,
            matrices=4 * with_test + 8,
        ),
    )
