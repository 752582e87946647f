"""What a point of ``architectures`` costs: that of ``kernel_change`` for its network; free of JAX."""

from ntk_core.experiments.architectures.spec import ArchitecturesSpec
from ntk_core.experiments.kernel_change import costs
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec


def seconds(spec: ArchitecturesSpec, key: str) -> float:
    """Expected seconds for one network of one width, all seeds and outputs, on two cores."""
    return costs.seconds(*_in_one(spec, key))


def peak_bytes(spec: ArchitecturesSpec, key: str) -> float:
    """Expected peak memory for one seed of one network of one width, in bytes."""
    return costs.peak_bytes(*_in_one(spec, key))


def _in_one(spec: ArchitecturesSpec, key: str) -> tuple[KernelChangeSpec, str]:
    """The spec of the network alone, and the point's key there."""
    letter, width = spec.value_of(key)
    return spec.of_network(letter), f"width={width}"
