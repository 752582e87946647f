"""How the time and memory of a kernel, a Hessian norm and a step of training grow: one size at a time, the others kept.

A Hessian norm belongs to one input and one output: it has no n and no C. The number of products that its Lanczos
iteration takes depends on the weights drawn, so its time is that of one product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from benchmarks.measure import Row, Settings, alternate, fitted, own
from ntk_core import FullyConnected, empirical_ntk, hessian_norm
from ntk_core.dynamics import Loss, NetworkModel, Optimizer, advance, start

INPUT_DIM, TOLERANCE, RATE, STEPS = 10, 1e-2, 1e-4, 10


@dataclass(frozen=True)
class Size:
    """Width m, number of inputs n, of outputs C and of hidden layers."""

    m: int
    n: int = 60
    C: int = 3
    depth: int = 1

    def network(self, activation: str) -> tuple[FullyConnected, PyTree, jax.Array]:
        net = FullyConnected(width=self.m, depth=self.depth, num_outputs=self.C, activation=activation, use_bias=False)
        params = jax.jit(net.init, static_argnums=1)(jax.random.key(0), (INPUT_DIM,))
        return net, jax.block_until_ready(params), jax.random.normal(jax.random.key(1), (self.n, INPUT_DIM))


@dataclass(frozen=True)
class Work:
    """Timed work: ``call`` does it once, ``units()`` is the divisor of the time after a call."""

    call: Callable[[], object]
    units: Callable[[], int] = lambda: 1

    def timed(self, repeats: int, budget_s: float) -> tuple[Row, Row]:
        """Return the times of a call, and units of work in it with their time."""
        times = alternate({"ours": own(self.call)}, repeats=repeats, budget_s=budget_s).times["ours"]
        return times, {"units": self.units(), "unit_s": times["median_s"] / self.units()}


def kernel(size: Size) -> Work:
    net, params, x = size.network("relu")
    return Work(lambda: empirical_ntk(net, params, x))


def hessian_product(size: Size) -> Work:
    net, params, x = size.network("tanh")
    products: list[int] = []

    def call() -> jax.Array:
        found = hessian_norm(net, params, x[0], tolerance=TOLERANCE)
        products[:] = [int(found.num_matvecs)]
        return found.value

    return Work(call, lambda: products[0])


def training_step(size: Size) -> Work:
    net, params, x = size.network("relu")
    y = jax.nn.one_hot(jnp.arange(size.n) % size.C, size.C)
    trained, fixed = net.partition(params)
    model, optimizer = NetworkModel(net, Loss("linear")), Optimizer()
    state = [start(model, optimizer, trained, size.n)]

    def call() -> PyTree:
        # The weights are passed and returned: the next call continues from there.
        first = start(model, optimizer, state[0].trained, size.n)
        state[0] = advance(model, optimizer, first, fixed, x, y, RATE, STEPS, 0.0)
        return state[0].trained

    return Work(call, lambda: STEPS)


WORKS: dict[str, Callable[[Size], Work]] = {
    "kernel": kernel,
    "hessian_product": hessian_product,
    "training_step": training_step,
}
# Each axis where the size that grows dominates the cost, and from where calling overhead no longer does.
Axes = dict[str, tuple[Size, tuple[int, ...]]]
_FULLY_CONNECTED: Axes = {
    "m": (Size(0), (10_000, 30_000, 100_000, 300_000)),
    "n": (Size(30_000), (30, 60, 120, 240)),
    "C": (Size(30_000), (2, 4, 8, 16)),
    "depth": (Size(1_000), (2, 4, 8, 16)),
}
AXES: dict[str, Axes] = {
    "kernel": _FULLY_CONNECTED,
    "hessian_product": {"m": (Size(0, depth=3), (500, 1_000, 2_000, 4_000)), "depth": (Size(1_500), (2, 4, 8))},
    "training_step": _FULLY_CONNECTED,
}
QUICK_AXES: dict[str, Axes] = {
    "kernel": {"n": (Size(8), (3, 4, 5))},
    "hessian_product": {"m": (Size(0), (4,))},
    "training_step": {"depth": (Size(5, n=4), (1,))},
}


def along(name: str, axis: str, base: Size, values: tuple[int, ...]) -> Row:
    """Return the time of a unit of work at each value of one size, with the exponent of its growth."""
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
        "works": {name: {axis: along(name, axis, *of_axis) for axis, of_axis in axes.items()} for name, axes in works}
    }
