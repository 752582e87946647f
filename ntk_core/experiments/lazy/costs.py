"""What a point of ``lazy`` computes, counted: κ and trainings of one width and scale; free of JAX."""

from ntk_core.experiments.lazy.spec import LazySpec
from ntk_core.runs import HESSIAN_BASIS, MATVECS, Counted, Counts, typical_steps

KERNELS_BETWEEN = 5  # w₀ and w_T, for the least distance


def counts(spec: LazySpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """One point, all outputs, starts and seeds; ``most`` counts all steps that are allowed."""
    network = Counted.of(spec, spec.architecture, spec.value_of(key)[0])
    kinds = len(spec.outputs) * len(spec.starts)
    copies = 1 if spec.starts == ("random",) else 2  # an output of 0 at w₀ needs a copy
    directions = sum(layer.positions * (layer.fan_in + layer.features) for layer in network.layers)
    return (
        Counts(
            network,
            {"training": kinds, "hessian": kinds},
            times=kinds * spec.num_seeds * copies,
            steps=typical_steps(spec.training.max_steps, most),
            kernels=spec.training.num_records + KERNELS_BETWEEN,
            products=2 * network.num_outputs * MATVECS,
            copies=5 * copies,
            views=copies,
            matrices=20,
            numbers=HESSIAN_BASIS * copies * directions,
        ),
    )
