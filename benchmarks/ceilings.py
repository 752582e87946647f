"""How much of what the machine can do we use: times against ceilings measured in the same run.

Two ceilings: operations per second of a large product in float32, and bytes per second of a = b + s c. Each work needs
a least number of operations and of bytes; the larger of the two times that follow is the least time, and its share
of the measured one is what the table shows. Counted is what the mathematics needs, not what the code does: values
between two operations are free, and the symmetric half of a kernel is counted once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from benchmarks.growth import INPUT_DIM, WORKS, Size
from benchmarks.measure import Row, Settings, alternate, own

FLOAT = 4  # bytes


@dataclass(frozen=True)
class Machine:
    """Sizes for one type of machine: rows of the product, entries of the stream, sizes of each work."""

    product: int
    stream: int
    works: dict[str, tuple[Size, ...]]


CPU = Machine(
    product=2_000,
    stream=2**26,
    works={
        "kernel": (Size(100_000), Size(3_000, depth=3)),
        "hessian_product": (Size(3_000, depth=3),),
        "training_step": (Size(100_000), Size(3_000, depth=3)),
    },
)
GPU = Machine(
    product=8_192,
    stream=2**28,
    works={
        "kernel": (Size(1_000_000), Size(30_000, depth=3)),
        "hessian_product": (Size(30_000, depth=3),),
        "training_step": (Size(1_000_000), Size(10_000, depth=3)),
    },
)
QUICK = Machine(64, 2**12, {name: (Size(8, n=3),) for name in WORKS})


def product_ceiling(size: int) -> float:
    """Return operations per second of a size³ product in single precision."""
    a = jax.random.normal(jax.random.key(0), (size, size), jnp.float32)
    product = jax.jit(lambda a, b: jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST))
    return 2 * size**3 / _least(lambda: product(a, a))


def stream_ceiling(size: int) -> float:
    """Return bytes per second of a = b + s c: two arrays read, one written into memory that is there already."""
    stream = jax.jit(lambda a, b, c, s: b + s * c, donate_argnums=0)
    arrays = [jnp.full((size,), float(k), jnp.float32) for k in range(3)]

    def call() -> jax.Array:
        arrays[0] = stream(arrays[0], arrays[1], arrays[2], jnp.float32(2.0))
        return arrays[0]

    return 3 * FLOAT * size / _least(call)


def _least(work: Callable[[], object]) -> float:
    return float(alternate({"": own(work)}, repeats=9).times[""]["min_s"])


def num_weights(size: Size) -> int:
    return INPUT_DIM * size.m + (size.depth - 1) * size.m**2 + size.m * size.C


def kernel_needs(size: Size) -> tuple[float, float]:
    """(operations, bytes) of a kernel: forward, C backward passes, Σ (a·a') ∘ (δ·δ') with each pair once.

    The last layer's cotangents are products s_ik v_ck, so that pairs c <= d of outputs suffice there.
    """
    forward = 2 * size.n * num_weights(size)
    backward = 2 * size.n * size.C * (size.depth - 1) * size.m**2
    last = size.n**2 * size.C * (size.C + 1) // 2
    cotangents = size.m * (last + (size.n * size.C) ** 2 * (size.depth - 1))
    inputs = size.n**2 * (INPUT_DIM + size.m * size.depth)
    passes = 2 if size.depth > 1 else 1  # behind one hidden layer the cotangents need no weights but the last
    return forward + backward + cotangents + inputs, passes * FLOAT * num_weights(size)


def hessian_product_needs(size: Size) -> tuple[float, float]:
    """(operations, bytes) of one product: a tangent goes forward and back through every weight matrix."""
    return 4 * num_weights(size), 2 * FLOAT * num_weights(size)


def training_step_needs(size: Size) -> tuple[float, float]:
    """(operations, bytes) of a step: forward, gradients of activations and weights; weights read twice and updated."""
    behind_first = num_weights(size) - INPUT_DIM * size.m
    return 2 * size.n * (2 * num_weights(size) + behind_first), 4 * FLOAT * num_weights(size)


NEEDS: dict[str, Callable[[Size], tuple[float, float]]] = {
    "kernel": kernel_needs,
    "hessian_product": hessian_product_needs,
    "training_step": training_step_needs,
}


def measure_on(machine: Machine, quick: bool) -> Row:
    """Return the two ceilings, and each work's share of them."""
    ceilings = {"operations": product_ceiling(machine.product), "bytes": stream_ceiling(machine.stream)}
    device = jax.devices()[0]
    rows = [share(name, size, ceilings, quick) for name, sizes in machine.works.items() for size in sizes]
    return {"device": f"{device.platform}: {device.device_kind}", "ceilings_per_s": ceilings, "rows": rows}


def share(name: str, size: Size, ceilings: dict[str, float], quick: bool) -> Row:
    """Return one work's time, what it needs at least, and the share of the ceiling that binds it."""
    times, units = WORKS[name](size).timed(repeats=2 if quick else 7, budget_s=20)
    needs = dict(zip(("operations", "bytes"), NEEDS[name](size), strict=True))
    least = {kind: needs[kind] / ceilings[kind] for kind in needs}
    binds = max(least, key=least.__getitem__)
    peak = (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use")  # since the process started
    row = {"work": name, **vars(size), **units, "times": times, "needs": needs}
    return {**row, "bound_by": binds, "share": least[binds] / units["unit_s"], "device_peak_bytes": peak}


def measure(settings: Settings) -> Row:
    """On the processor, with sizes that take a minute."""
    return measure_on(QUICK if settings.quick else CPU, settings.quick)


def no_gpu(settings: Settings) -> str | None:
    """Return why there is nothing to measure on a GPU here, or None."""
    if settings.quick or jax.default_backend() == "gpu":
        return None
    return f"JAX finds no GPU here, its devices are {', '.join(map(str, jax.devices()))}"


def on_gpu(settings: Settings) -> Row:
    """A kernel at m = 10⁶, a Hessian product at m = 3·10⁴, a step of training; on any device in a quick run."""
    return measure_on(QUICK if settings.quick else GPU, settings.quick)
