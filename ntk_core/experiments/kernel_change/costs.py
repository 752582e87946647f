"""What a point of ``kernel_change`` computes, counted: training and kernels of one width; free of JAX.

Kernels that would take too much memory are streamed: the weights of every record are kept, and ΔK is formed from them
after training (docs/decisions/0004-large-kernels.md).
"""

import math

from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.networks.sizes import num_copies
from ntk_core.runs import BYTES, Counted, Counts, Work, peak_bytes, typical_steps

BALL_STARTS, BALL_STEPS = 3, 8  # of the search in a ball; our choice
HELD_BYTES = 2**29  # larger kernels are streamed; our choice, about what streaming needs
STREAMED_BYTES = 2**28  # for blocks: a pair of them, through the weights of 24 records, takes seconds; our choice
BESIDE_BYTES = 1e8  # inside a contraction; measured
RATE_PRODUCTS = 40  # for λ_max, in products with a kernel
DERIVATIVE = 3  # a kernel with one derivative, in kernels


def streams(spec: KernelChangeSpec) -> bool:
    """Whether ΔK is formed without holding a kernel: it is estimated, or the kernels take too much memory."""
    if spec.needs_kernel:
        return False
    rows = _counted(spec, spec.point_keys()[0]).kernel_rows
    return spec.probes > 0 or BYTES * _num_matrices(spec) * rows**2 > HELD_BYTES


def training_share(spec: KernelChangeSpec, key: str) -> float:
    """The share of the work that is done while a network trains: all of it, unless kernels are streamed."""
    if not streams(spec):
        return 1.0
    (found,) = counts(spec, key)
    steps = found.steps * found.network.step.operations
    return steps / (steps + found.more.operations)


def counts(spec: KernelChangeSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """One width, all seeds and outputs; ``most`` counts all steps that are allowed."""
    network, streamed = _counted(spec, key), streams(spec)
    places = BALL_STARTS * (BALL_STEPS + 2) if spec.ball_radius else 0
    derivatives = len(spec.outputs) * (spec.takes_velocity + places)
    # A derivative is as large as every view; a search holds its center, its best place, and a place with its slope.
    copies, views = (6, 3) if places else (4, 2) if spec.takes_velocity else (3, 1)
    numbers, blocks = 0, 0.0
    if streamed:
        copies, views = 6 + spec.training.num_records, 0
        numbers = network.num_seen + 2 * (2 * spec.probes + 50) * network.kernel_rows
        blocks = max(STREAMED_BYTES, BYTES * 2 * network.num_views / network.num_samples) + BESIDE_BYTES
    return (
        Counts(
            network,
            {
                "training": spec.trains,
                "streaming": spec.trains and streamed,
                "search": spec.takes_velocity + bool(places),
            },
            times=len(spec.groups) * spec.num_seeds,
            steps=spec.trains * typical_steps(spec.training.max_steps, most),
            kernels=spec.trains * (not streamed) * spec.training.num_records + DERIVATIVE * derivatives,
            more=_streamed(spec, network) if streamed and spec.trains else Work(),
            copies=copies,
            views=views,
            matrices=0 if streamed else _num_matrices(spec),
            numbers=numbers,
            num_bytes=blocks,
        ),
    )


def point_bytes(spec: KernelChangeSpec, key: str) -> float:
    """Expected peak memory for one seed of one width, in bytes."""
    return peak_bytes(counts(spec, key))


def _num_matrices(spec: KernelChangeSpec) -> int:
    """The kernels at w₀ and w_t with their images under each output."""
    return 4 + 2 * len(spec.outputs)


def _streamed(spec: KernelChangeSpec, network: Counted) -> Work:
    """The kernels of one seed and group of outputs at all records, with λ_max at w₀, which takes products."""
    n, num_outputs, records = network.num_samples, network.num_outputs, spec.training.num_records
    rate = 2 * RATE_PRODUCTS * network.step  # a product takes six passes of all inputs, twice what a step does
    if spec.probes:
        return rate + 2 * 3.5 * spec.probes * records * len(spec.outputs) / len(spec.groups) * network.step
    # Blocks of s rows: 2 views of s rows and six blocks of s² C² numbers, see ntk_core.kernels.
    view, block = 2 * network.num_views / n, 6 * num_outputs**2
    rows = min(n, max(1, int((math.sqrt(view**2 + block * STREAMED_BYTES) - view) / (2 * block))))
    blocks = math.ceil(n / rows)
    views = 4 * n * (blocks + 1) * (1 + num_outputs) * network.multiplications
    halves = (1 + 1 / blocks) / 2 * network.kernel
    return rate + (records + 1) * (halves + Work(views, calls=blocks * (blocks + 1) / 2))


def _counted(spec: KernelChangeSpec, key: str) -> Counted:
    architecture, hidden_width = spec.network_at(spec.value_of(key))
    return Counted.of(spec, architecture, hidden_width, num_copies(architecture))
