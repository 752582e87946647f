"""What a point of ``kernel_change`` costs: training and kernels of one width; free of JAX."""

from ntk_core.experiments.kernel_change.spec import KernelChangeSpec, training_groups
from ntk_core.networks.sizes import num_copies
from ntk_core.runs import BYTES, COMPILE_SECONDS, TYPICAL_STEPS, Counted

BALL_STARTS, BALL_STEPS = 3, 8  # of the search in a ball; our choice


def seconds(spec: KernelChangeSpec, key: str) -> float:
    """Expected seconds for one width, all seeds and outputs, on two cores."""
    counted = _counted(spec, key)
    steps = min(spec.training.max_steps, TYPICAL_STEPS)
    each, programs = 0.0, 0
    if spec.trains:
        each, programs = steps * counted.step_seconds + spec.training.num_records * counted.kernel_seconds, 1
    # A kernel with one derivative takes some three times as long as a kernel.
    if spec.takes_velocity:
        each, programs = each + 3 * len(spec.outputs) * counted.kernel_seconds, programs + 1
    if spec.ball_radius:
        places = BALL_STARTS * (BALL_STEPS + 2)
        each, programs = each + 3 * len(spec.outputs) * places * counted.kernel_seconds, programs + 1
    return len(training_groups(spec.outputs)) * (programs * COMPILE_SECONDS + spec.num_seeds * each)


def peak_bytes(spec: KernelChangeSpec, key: str) -> float:
    """Expected peak memory for one seed of one width, in bytes.

    Weights, their gradient and the copy that a step writes; views; the kernels at w₀ and w_t with their images under
    each output.
    """
    counted = _counted(spec, key)
    kernels = (4 + 2 * len(spec.outputs)) * counted.kernel_rows**2
    # A derivative stands beside every view; a search holds its center, its best place, and a place with its slope.
    copies, views = (6, 3) if spec.ball_radius else (4, 2) if spec.takes_velocity else (3, 1)
    return BYTES * float(copies * counted.num_weights + views * counted.num_views + kernels)


def _counted(spec: KernelChangeSpec, key: str) -> Counted:
    architecture, hidden_width = spec.network_at(spec.value_of(key))
    return Counted.of(spec, architecture, hidden_width, num_copies(architecture))
