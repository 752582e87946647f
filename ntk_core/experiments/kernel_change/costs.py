"""What a point of ``kernel_change`` costs: training and kernels of one width; free of JAX."""

from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.networks.sizes import num_copies
from ntk_core.runs import BYTES, COMPILE_SECONDS, TYPICAL_STEPS, Counted


def seconds(spec: KernelChangeSpec, key: str) -> float:
    """Expected seconds for one width, all seeds and outputs, on two cores."""
    counted = _counted(spec, key)
    steps = min(spec.training.max_steps, TYPICAL_STEPS)
    each = steps * counted.step_seconds + spec.training.num_records * counted.kernel_seconds
    return len(spec.groups) * (COMPILE_SECONDS + spec.num_seeds * each)


def peak_bytes(spec: KernelChangeSpec, key: str) -> float:
    """Expected peak memory for one seed of one width, in bytes.

    Weights, their gradient and the copy that a step writes; views; the kernels at w₀ and w_t with their images under
    each output.
    """
    counted = _counted(spec, key)
    kernels = (4 + 2 * len(spec.outputs)) * counted.kernel_rows**2
    return BYTES * float(3 * counted.num_weights + counted.num_views + kernels)


def _counted(spec: KernelChangeSpec, key: str) -> Counted:
    architecture, hidden_width = spec.network_at(spec.value_of(key))
    return Counted.of(spec, architecture, hidden_width, num_copies(architecture))
