"""What a point of ``generalization`` computes, counted: trainings with kernels of all points; free of JAX."""

from ntk_core.experiments.generalization.spec import GeneralizationSpec
from ntk_core.networks.sizes import num_copies
from ntk_core.runs import Counted, Counts, typical_steps

TYPICAL_STEPS = 300  # some 40 at ρ = 1/2 and 500 at ρ = 0
ALL_EIGENVECTORS = 1500  # rows up to which all are computed; beyond, the leading ones


def counts(spec: GeneralizationSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """One point, all seeds; ``most`` counts all steps that are allowed."""
    width, _, count = spec.value_of(key)
    network = Counted.of(spec.of_samples(count), spec.architecture, width, num_copies(spec.architecture))
    records, steps = spec.training.num_records + 1, typical_steps(spec.training.max_steps, most, TYPICAL_STEPS)
    with_test = 1 + network.num_test / network.num_samples
    infinite = spec.infinite_width and spec.architecture.has_infinite_width
    whole = network.kernel_rows <= ALL_EIGENVECTORS
    shared = 1 / len(spec.richness)  # every ρ has the same programs
    return (
        Counts(
            network,
            {"regression": shared * (1 + infinite)},
            times=spec.num_seeds,
            steps=steps,
            kernels=records * with_test,
            cubes=records / 3 + 10 * whole,
            squares=2 * steps + 20 * records * with_test + 500 * (not whole),
            copies=5,
            views=1,
            matrices=4 * with_test + 10,
        ),
    )
