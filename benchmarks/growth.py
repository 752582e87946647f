"""Growth of time and memory, and shares of a machine's ceilings.

Growth: one size at a time, the others kept. A Hessian norm has one input and one output,
so no n and no C; its time is that of one product, since the number of Lanczos products
depends on the weights.

Shares: ceilings are operations per second of a large float32 product, and bytes per second of
a = b + s c. The larger of the two least times that follow, over the measured one, is the share.
Only what the mathematics needs is counted: intermediate values are free, and the symmetric half of
a kernel counts once.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from benchmarks.measure import Row, Settings, alternate, fitted, local
from ntk_core import FullyConnected, empirical_ntk, hessian_norm
from ntk_core.dynamics import Loss, NetworkModel, Optimizer, advance, start

INPUT_DIM = 10
TOLERANCE = 1e-2
RATE = 1e-4
STEPS = 10
FLOAT = 4  # bytes


@dataclass(frozen=True)
class Size:
    """Width m, inputs n, outputs C and number of hidden layers."""

    m: int
    n: int = 60
    C: int = 3
    depth: int = 1

    @property
    def num_weights(self) -> int:
        return INPUT_DIM * self.m + (self.depth - 1) * self.m**2 + self.m * self.C

    def network(self, activation: str) -> tuple[FullyConnected, PyTree, jax.Array]:
        """Draw a network and inputs."""
        net = FullyConnected(
            width=self.m,
            depth=self.depth,
            num_outputs=self.C,
            activation=activation,
            use_bias=False,
        )
        params = jax.jit(net.init, static_argnums=1)(jax.random.key(0), (INPUT_DIM,))
        return (
            net,
            jax.block_until_ready(params),
            jax.random.normal(jax.random.key(1), (self.n, INPUT_DIM)),
        )


class Needs(NamedTuple):
    """Least operations and bytes of one unit of work."""

    operations: float
    bytes: float


def kernel_needs(size: Size) -> Needs:
    """Forward, C backward passes, Σ (a·a') ∘ (δ·δ') with each pair once.

    The last layer's cotangents are products s_ik v_ck, so that pairs c <= d of outputs suffice
    there.
    """
    forward = 2 * size.n * size.num_weights
    backward = 2 * size.n * size.C * (size.depth - 1) * size.m**2
    last = size.n**2 * size.C * (size.C + 1) // 2
    cotangents = size.m * (last + (size.n * size.C) ** 2 * (size.depth - 1))
    inputs = size.n**2 * (INPUT_DIM + size.m * size.depth)
    # Behind one hidden layer the cotangents need no weights but the last.
    passes = 2 if size.depth > 1 else 1
    return Needs(forward + backward + cotangents + inputs, passes * FLOAT * size.num_weights)


def hessian_product_needs(size: Size) -> Needs:
    """Forward and backward tangents through every weight matrix."""
    return Needs(4 * size.num_weights, 2 * FLOAT * size.num_weights)


def training_step_needs(size: Size) -> Needs:
    """Forward, gradients of activations and weights; weights read twice and updated."""
    behind_first = size.num_weights - INPUT_DIM * size.m
    return Needs(2 * size.n * (2 * size.num_weights + behind_first), 4 * FLOAT * size.num_weights)


@dataclass(frozen=True)
class Work:
    """Timed work: ``units()`` after a ``call`` is the divisor of its time."""

    call: Callable[[], object]
    needs: Needs
    units: Callable[[], int] = lambda: 1

    def timed(self, repeats: int, budget_s: float) -> tuple[Row, Row]:
        """Return the times of a call, and its units with their time."""
        times = alternate({"ours": local(self.call)}, repeats=repeats, budget_s=budget_s).times[
            "ours"
        ]
        return times, {"units": self.units(), "unit_s": times["median_s"] / self.units()}


def kernel(size: Size) -> Work:
    net, params, x = size.network("relu")
    return Work(lambda: empirical_ntk(net, params, x), kernel_needs(size))


def hessian_product(size: Size) -> Work:
    net, params, x = size.network("tanh")
    products: list[int] = []

    def call() -> jax.Array:
        found = hessian_norm(net, params, x[0], tolerance=TOLERANCE)
        products[:] = [int(found.num_matvecs)]
        return found.value

    return Work(call, hessian_product_needs(size), lambda: products[0])


def training_step(size: Size) -> Work:
    net, params, x = size.network("relu")
    y = jax.nn.one_hot(jnp.arange(size.n) % size.C, size.C)
    trained, fixed = net.partition(params)
    model = NetworkModel(net, Loss("linear"))
    optimizer = Optimizer()
    state = [start(model, optimizer, trained, size.n)]

    def call() -> PyTree:
        # Weights are donated: the next call continues from the returned ones.
        first = start(model, optimizer, state[0].trained, size.n)
        state[0] = advance(model, optimizer, first, fixed, x, y, RATE, STEPS, 0.0)
        return state[0].trained

    return Work(call, training_step_needs(size), lambda: STEPS)


WORKS: dict[str, Callable[[Size], Work]] = {
    each.__name__: each for each in (kernel, hessian_product, training_step)
}
# Each axis where the growing size dominates the cost, beyond the overhead of a call.
Axes = dict[str, tuple[Size, tuple[int, ...]]]
_FULLY_CONNECTED: Axes = {
    "m": (Size(0), (10_000, 30_000, 100_000, 300_000)),
    "n": (Size(30_000), (30, 60, 120, 240)),
    "C": (Size(30_000), (2, 4, 8, 16)),
    "depth": (Size(1_000), (2, 4, 8, 16)),
}
AXES: dict[str, Axes] = {
    "kernel": _FULLY_CONNECTED,
    "hessian_product": {
        "m": (Size(0, depth=3), (500, 1_000, 2_000, 4_000)),
        "depth": (Size(1_500), (2, 4, 8)),
    },
    "training_step": _FULLY_CONNECTED,
}
QUICK_AXES: dict[str, Axes] = {
    "kernel": {"n": (Size(8), (3, 4, 5))},
    "hessian_product": {"m": (Size(0), (4,))},
    "training_step": {"depth": (Size(5, n=4), (1,))},
}


def along(name: str, axis: str, base: Size, values: tuple[int, ...]) -> Row:
    """Return time per unit along one size, with its exponent."""
    rows = []
    for value in values:
        times, units = WORKS[name](replace(base, **{axis: value})).timed(repeats=7, budget_s=2)
        rows.append({axis: value, **times, **units})
    kept = {field: number for field, number in vars(base).items() if field != axis}
    return {"kept": kept, "rows": rows, "time": fitted(values, [row["unit_s"] for row in rows])}


def measure(settings: Settings) -> Row:
    """Every work along every one of its sizes."""
    works = (QUICK_AXES if settings.quick else AXES).items()
    return {
        "works": {
            name: {axis: along(name, axis, *sizes) for axis, sizes in axes.items()}
            for name, axes in works
        }
    }


class Machine(NamedTuple):
    """Sizes of the product, the stream and each work."""

    product: int
    stream: int
    works: dict[str, tuple[Size, ...]]


def machine(product: int, stream: int, wide: int, deep: int, trained: int) -> Machine:
    """Return sizes of every work: one and three hidden layers."""
    one = Size(wide)
    three = Size(deep, depth=3)
    training = (one, Size(trained, depth=3))
    return Machine(
        product,
        stream,
        {"kernel": (one, three), "hessian_product": (three,), "training_step": training},
    )


CPU = machine(2_000, 2**26, wide=100_000, deep=3_000, trained=3_000)  # a minute
GPU = machine(8_192, 2**28, wide=1_000_000, deep=30_000, trained=10_000)
QUICK = Machine(64, 2**12, {name: (Size(8, n=3),) for name in WORKS})


def product_ceiling(size: int) -> float:
    """Return operations per second of a size³ product in single precision."""
    a = jax.random.normal(jax.random.key(0), (size, size), jnp.float32)
    product = jax.jit(lambda a, b: jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST))
    return 2 * size**3 / _least(lambda: product(a, a))


def stream_ceiling(size: int) -> float:
    """Return bytes per second of a sum of two arrays, in place."""
    stream = jax.jit(lambda a, b, c, s: b + s * c, donate_argnums=0)
    arrays = [jnp.full((size,), float(k), jnp.float32) for k in range(3)]

    def call() -> jax.Array:
        arrays[0] = stream(arrays[0], arrays[1], arrays[2], jnp.float32(2.0))
        return arrays[0]

    return 3 * FLOAT * size / _least(call)


def _least(work: Callable[[], object]) -> float:
    return float(alternate({"": local(work)}, repeats=9).times[""]["min_s"])


def shares(settings: Settings, machine: Machine = CPU) -> Row:
    """Two ceilings, and each work's share of the one that binds it."""
    machine = QUICK if settings.quick else machine
    ceilings = {
        "operations": product_ceiling(machine.product),
        "bytes": stream_ceiling(machine.stream),
    }
    device = jax.devices()[0]
    rows = []
    for name, size in ((name, size) for name, sizes in machine.works.items() for size in sizes):
        work = WORKS[name](size)
        times, units = work.timed(repeats=2 if settings.quick else 7, budget_s=20)
        needs = work.needs._asdict()
        least = {kind: needs[kind] / ceilings[kind] for kind in needs}
        binds = max(least, key=least.__getitem__)
        peak = (device.memory_stats() or {}).get("peak_bytes_in_use")  # since the process started
        found = {
            "bound_by": binds,
            "share": least[binds] / units["unit_s"],
            "device_peak_bytes": peak,
        }
        rows.append({"work": name, **vars(size), **units, "times": times, "needs": needs, **found})
    return {
        "device": f"{device.platform}: {device.device_kind}",
        "ceilings_per_s": ceilings,
        "rows": rows,
    }


def no_gpu(settings: Settings) -> str | None:
    """Return why no GPU can be measured here, or None."""
    if settings.quick or jax.default_backend() == "gpu":
        return None
    return f"JAX finds no GPU here, its devices are {', '.join(map(str, jax.devices()))}"


def on_gpu(settings: Settings) -> Row:
    """Shares at sizes of a GPU; any device in quick runs."""
    return shares(settings, GPU)
