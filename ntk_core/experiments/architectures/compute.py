"""Kernel change along training of several networks, one network and width at a time."""

from collections.abc import Generator

from ntk_core.data import Dataset
from ntk_core.experiments.architectures.result import ArchitecturesPoint
from ntk_core.experiments.architectures.spec import ArchitecturesSpec
from ntk_core.experiments.kernel_change import compute as kernel_change
from ntk_core.runs import Progress


def compute(spec: ArchitecturesSpec, data: Dataset, key: str) -> Generator[Progress, None, ArchitecturesPoint]:
    """All seeds and outputs of one network of one width; yields (fraction, message) between stretches of work."""
    letter, width = spec.value_of(key)
    of_one = kernel_change.compute(spec.of_network(letter), data, f"width={width}", name=f"network {letter}, ")
    point = yield from of_one
    return ArchitecturesPoint.model_validate({**dict(point), "kind": spec.experiment, "network": letter})
