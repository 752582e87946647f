"""What a point of ``architectures`` costs: that of ``kernel_change`` for its network; free of JAX."""

from ntk_core.experiments.architectures.spec import ArchitecturesSpec
from ntk_core.experiments.kernel_change import costs
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.runs import Work


def work(spec: ArchitecturesSpec, key: str, most: bool = False) -> Work:
    """One network of one width, all seeds and outputs."""
    return costs.work(*_in_one(spec, key), most)


def peak_bytes(spec: ArchitecturesSpec, key: str) -> float:
    """Expected peak memory for one seed of one network of one width, in bytes."""
    return costs.peak_bytes(*_in_one(spec, key))


def _in_one(spec: ArchitecturesSpec, key: str) -> tuple[KernelChangeSpec, str]:
    """The spec of the network alone, and the point's key there."""
    letter, width = spec.value_of(key)
    return spec.of_network(letter), f"width={width}"
