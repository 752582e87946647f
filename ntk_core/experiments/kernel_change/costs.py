"""What a point of ``kernel_change`` costs: training and kernels of one width; free of JAX.

Kernels that would take too much memory are never held, but streamed: the weights of every record are kept, and ΔK is
formed from them after training (docs/decisions/0041-large-kernels-in-the-run.md).
"""

import math

from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.networks.sizes import num_copies
from ntk_core.runs import BYTES, TYPICAL_STEPS, Counted, Work

BALL_STARTS, BALL_STEPS = 3, 8  # of the search in a ball; our choice
MEASURED = 1.0  # a derivative or a search, in programs that go through the whole network
HELD_BYTES = 2**29  # larger kernels are streamed; our choice, about what streaming needs
STREAMED_BYTES = 2**28  # for blocks: a pair of them, through the weights of 24 records, takes seconds; our choice
BESIDE_BYTES = 1e8  # inside a contraction; measured
RATE_PRODUCTS = 40  # for λ_max, in products with a kernel
STREAMED = 1.5  # what streams kernels, likewise
TRAINED = 0.7  # a training and its kernels, likewise: most of what they compile serves all widths


def streams(spec: KernelChangeSpec) -> bool:
    """Whether ΔK is formed without a kernel being held: where it is estimated, or the kernels take too much memory."""
    if spec.needs_kernel:
        return False
    return spec.probes > 0 or _held(spec, _counted(spec, spec.point_keys()[0])) > HELD_BYTES


def training_share(spec: KernelChangeSpec, key: str) -> float:
    """How much of the work is done when a network is trained: all of it, unless kernels are streamed."""
    if not streams(spec):
        return 1.0
    counted = _counted(spec, key)
    steps, kernels = min(spec.training.max_steps, TYPICAL_STEPS) * counted.step, _streamed(spec, counted)
    return steps.operations / (steps.operations + kernels.operations)


def work(spec: KernelChangeSpec, key: str, most: bool = False) -> Work:
    """One width, all seeds and outputs; ``most`` counts all steps that are allowed."""
    counted = _counted(spec, key)
    steps = spec.training.max_steps if most else min(spec.training.max_steps, TYPICAL_STEPS)
    each, programs = Work(), 0.0
    if spec.trains:
        each, programs = steps * counted.step, TRAINED
        if streams(spec):
            each, programs = each + _streamed(spec, counted), TRAINED + STREAMED
        else:
            each += spec.training.num_records * counted.kernel
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
    each output. Or, streamed: the weights of every record and what a product does with them, what a step of training
    keeps of every input, the blocks, and the vectors of an estimate and of Lanczos in double precision.
    """
    counted = _counted(spec, key)
    if streams(spec):
        copies = 6 + spec.training.num_records
        numbers = copies * counted.num_weights + counted.num_seen
        blocks = max(STREAMED_BYTES, BYTES * 2 * counted.num_views / counted.num_samples) + BESIDE_BYTES
        return BYTES * float(numbers) + 8 * (2 * spec.probes + 50) * counted.kernel_rows + blocks
    # A derivative stands beside every view; a search holds its center, its best place, and a place with its slope.
    copies, views = (6, 3) if spec.ball_radius else (4, 2) if spec.takes_velocity else (3, 1)
    return BYTES * float(copies * counted.num_weights + views * counted.num_views) + _held(spec, counted)


def _held(spec: KernelChangeSpec, counted: Counted) -> float:
    """Bytes of the kernels at w₀ and w_t with their images under each output."""
    return BYTES * float((4 + 2 * len(spec.outputs)) * counted.kernel_rows**2)


def _streamed(spec: KernelChangeSpec, counted: Counted) -> Work:
    """The kernels of one seed and group of outputs at all records, with λ_max at w₀, which takes products."""
    n, num_outputs, records = counted.num_samples, counted.num_outputs, spec.training.num_records
    rate = 2 * RATE_PRODUCTS * counted.step  # a product takes six passes of all inputs, twice what a step does
    if spec.probes:
        return rate + 2 * 3.5 * spec.probes * records * len(spec.outputs) / len(spec.groups) * counted.step
    # Blocks of s rows: 2 views of s rows and six blocks of s² C² numbers, see ntk_core.kernels.
    view, block = 2 * counted.num_views / n, 6 * num_outputs**2
    rows = min(n, max(1, int((math.sqrt(view**2 + block * STREAMED_BYTES) - view) / (2 * block))))
    blocks = math.ceil(n / rows)
    views = 4 * n * (blocks + 1) * (1 + num_outputs) * counted.multiplications
    halves = (1 + 1 / blocks) / 2 * counted.kernel
    return rate + (records + 1) * (halves + Work(views, calls=blocks * (blocks + 1) / 2))


def _counted(spec: KernelChangeSpec, key: str) -> Counted:
    architecture, hidden_width = spec.network_at(spec.value_of(key))
    return Counted.of(spec, architecture, hidden_width, num_copies(architecture))
