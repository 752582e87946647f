"""Over how many devices one point is divided: one, unless it does not fit there. Free of JAX until it has started."""

import math
import re
import sys

from ntk_core.environment import settings
from ntk_core.errors import InvalidInput
from ntk_core.runs._costs import peak_bytes
from ntk_core.runs._spec import Spec
from ntk_core.runs._table import counts_of

DEVICES_VARIABLE = "LINEARITY_LAB_DEVICES"
USABLE = 0.9  # of a device's memory; compiled programs and their constants take some


def accelerator_bytes() -> list[float]:
    """Usable memory of each accelerator that a point may use; nothing before JAX has started, and on a CPU."""
    jax = sys.modules.get("jax")
    if jax is None:
        return []
    statistics = [device.memory_stats() or {} for device in jax.devices() if device.platform != "cpu"]
    found = [USABLE * each["bytes_limit"] for each in statistics if "bytes_limit" in each]
    return found[: settings().devices]


def devices_for(spec: Spec, key: str) -> int:
    """Over how many devices of this process the widths of a point are divided.

    Raises:
        InvalidInput: when more are asked for than there are.
    """
    import jax

    stated, available = settings().devices, len(jax.devices())
    if stated is not None and stated > available:
        raise InvalidInput(DEVICES_VARIABLE, stated, f"an integer from 1 to {available}, the devices of this process")
    if stated is not None or available == 1:
        return stated or 1
    width = re.match(r"width=([0-9]+)", key)
    return num_needed(peak_bytes(counts_of(spec, key)), accelerator_bytes(), int(width[1]) if width else 0)


def num_needed(required: float, usable: list[float], width: int) -> int:
    """The fewest devices with these bytes each that hold a point; rather a few more than a number that does not divide
    the width, since then nothing is divided."""
    if not usable or required <= usable[0]:
        return 1
    fewest = min(math.ceil(required / min(usable)), len(usable))
    return next((count for count in range(fewest, len(usable) + 1) if width % count == 0), len(usable))
