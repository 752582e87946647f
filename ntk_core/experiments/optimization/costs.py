"""What a point of ``optimization`` computes: trainings with all eigenvalues at each record; free of JAX."""

from ntk_core.experiments.optimization.spec import OptimizationSpec
from ntk_core.networks.sizes import num_copies
from ntk_core.runs import Counted, Counts


def counts(spec: OptimizationSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """One width, all outputs, rates and seeds; all steps in any case."""
    network = Counted.of(spec, spec.architecture, spec.value_of(key), num_copies(spec.architecture))
    return (
        Counts(
            network,
            {"training": len(spec.outputs), "spectra": len(spec.outputs)},
            times=len(spec.outputs) * len(spec.rates) * spec.num_seeds,
            steps=spec.training.max_steps,
            kernels=spec.training.num_records,
            cubes=20 * spec.training.num_records,  # all eigenvalues, of two kernels
            copies=5,
            views=1,
            matrices=20,
        ),
    )
