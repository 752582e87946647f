"""One network over several devices: its weights and activations are divided along the width.

Weights are drawn in parts, each on its device, under a mesh with an axis ``"width"`` (``jax.set_mesh``). Whatever
is compiled from them, kernels, training, Hessians, is divided by the compiler in the same way (docs/cluster.md).
"""

from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, PartitionSpec

from ntk_core.errors import InvalidInput

AXIS = "width"


def width_mesh(num_devices: int | None = None) -> Mesh:
    """Return a device mesh that divides widths.

    A mesh of the first ``num_devices`` devices, all by default, over which widths are divided: m → m / num_devices.

    >>> import ntk_core
    >>> net = ntk_core.FullyConnected(width=64)
    >>> with jax.set_mesh(ntk_core.networks.width_mesh(1)):
    ...     params = net.init(jax.random.key(0), (10,))

    Args:
        num_devices: number of devices; all by default.

    Returns:
        The mesh, for ``jax.set_mesh``.

    Raises:
        InvalidInput: for more devices than there are.

    Source: our choice, docs/decisions/0006-seeds-devices-clusters.md.
    """
    devices = jax.devices()
    count = len(devices) if num_devices is None else num_devices
    if not 1 <= count <= len(devices):
        raise InvalidInput(
            "num_devices", num_devices, f"an integer from 1 to {len(devices)}, the devices of this process"
        )
    return Mesh(np.asarray(devices[:count]), (AXIS,), axis_types=(AxisType.Auto,))


def num_parts() -> int:
    """Over how many devices widths are divided now; 1 without a mesh."""
    return dict(jax.sharding.get_abstract_mesh().shape).get(AXIS, 1)


def divided(params: Any) -> Any:
    """The same arrays with the longest axis of each over all devices, where its length allows; inside ``jax.jit``."""
    return jax.tree.map(lambda leaf: jax.lax.with_sharding_constraint(leaf, _placement(leaf.shape)), params)


def _placement(shape: tuple[int, ...]) -> PartitionSpec:
    """Of axes of equal length the last one, that of the features of a layer."""
    parts = num_parts()
    longest = max(((size, axis) for axis, size in enumerate(shape) if size % parts == 0), default=(0, -1))[1]
    return PartitionSpec(*(AXIS if axis == longest else None for axis in range(len(shape))))
