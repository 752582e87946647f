"""What a point of ``architectures`` computes: a point of ``kernel_change`` for its network; free of JAX."""

import functools

from ntk_core.experiments.architectures.spec import ArchitecturesSpec
from ntk_core.experiments.kernel_change import costs
from ntk_core.runs import Counts

_of_network = functools.lru_cache(maxsize=256)(ArchitecturesSpec.of_network)


def counts(spec: ArchitecturesSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """One network of one width, all seeds and outputs."""
    letter, width = spec.value_of(key)
    return costs.counts(_of_network(spec, letter), f"width={width}", most)
