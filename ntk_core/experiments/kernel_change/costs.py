"""What a point of ``kernel_change`` costs: training and kernels of one width; free of JAX."""

from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.networks.sizes import num_copies
from ntk_core.runs import BYTES, TYPICAL_STEPS, Counted, Work

BALL_STARTS, BALL_STEPS = 3, 8  # of the search in a ball; our choice
MEASURED = 0.6  # a derivative or a search, in programs that train


def work(spec: KernelChangeSpec, key: str, most: bool = False) -> Work:
    """One width, all seeds and outputs; ``most`` counts all steps that are allowed."""
    counted = _counted(spec, key)
    steps = spec.training.max_steps if most else min(spec.training.max_steps, TYPICAL_STEPS)
    each, programs = Work(), 0.0
    if spec.trains:
        each, programs = steps * counted.step + spec.training.num_records * counted.kernel, 1
    # A kernel with one derivative takes some three times as long as a kernel.
    if spec.takes_velocity:
        each, programs = each + 3 * len(spec.outputs) * counted.kernel, programs + MEASURED
    if spec.ball_radius:
        places = BALL_STARTS * (BALL_STEPS + 2)
        each, programs = each + 3 * len(spec.outputs) * places * counted.kernel, programs + MEASURED
    return programs * counted.program + len(spec.groups) * spec.num_seeds * each  # other data, the same programs


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
