"""What a point of ``horizon`` computes, counted; free of JAX."""

from ntk_core.experiments.horizon.spec import HorizonSpec, stretch
from ntk_core.networks.sizes import num_copies
from ntk_core.runs import Counted, Counts, typical_steps

TYPICAL_STEPS = {"large-rate": 20, "cross-entropy": 1500, "weight-decay": 2000, "square": 2000}  # our measurements


def counts(spec: HorizonSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """One width and regime, all rates and seeds: a step, a kernel and the outputs at each record."""
    width, regime = spec.value_of(key)
    network = Counted.of(spec, spec.architecture, width, num_copies(spec.architecture))
    steps = typical_steps(spec.most_steps(regime), most, TYPICAL_STEPS[regime])
    looks = steps / stretch(regime, steps // 8)
    with_test = 1 + network.num_test / network.num_samples
    return (
        Counts(
            network,
            {"training": 2},
            times=len(spec.rates_of(regime)) * spec.num_seeds,
            steps=6 * steps + looks * with_test,  # in float64, and those of the linear model
            kernels=2 * looks,
            copies=10,
            views=3,
            matrices=20 * with_test,
        ),
    )
