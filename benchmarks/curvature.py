"""Curvature of losses against curvlinops on the same weights and data.

A fully connected network, a convolutional one and a small transformer with the square loss: one
product with the loss Hessian and with the Gauss–Newton matrix, and the norm of the Hessian. The
peer's norm is SciPy's ARPACK on its operator. Both sides take all inputs in one batch. The peer
runs with one thread and with all, and the faster counts.
"""

import itertools
import os
from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.measure import Row, Settings, alternate, local
from benchmarks.peers.process import Peers, peers
from ntk_core import gauss_newton, loss_hessian

# With two outputs PyTorch's mean is half the sum over outputs.
TOLERANCE = 1e-2
NUM_OUTPUTS = 2
COUNTS = (1, 30, 1_000)
QUICK_COUNTS = (2,)
LENGTH = 8
FEATURES = 32
Weights = list[jax.Array]


class Model(NamedTuple):
    """Shapes of a model; its inputs have this shape."""

    kind: str
    input_shape: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]


MODELS = (
    Model("dense", (10,), ((10, 300), (300, 300), (300, 300), (300, NUM_OUTPUTS))),
    Model("convnet", (8, 8, 3), ((3, 3, 3, 32), (3, 3, 32, 32), (2_048, NUM_OUTPUTS))),
    Model(
        "transformer",
        (LENGTH, FEATURES),
        (
            *[(FEATURES, FEATURES)] * 4,  # queries, keys, values, projection
            (FEATURES, 4 * FEATURES),
            (4 * FEATURES, FEATURES),
            (FEATURES, NUM_OUTPUTS),
        ),
    ),
)


def dense(w: Weights, x: jax.Array) -> jax.Array:
    for weight in w[:-1]:
        x = jnp.tanh(x @ weight)
    return x @ w[-1]


def convnet(w: Weights, x: jax.Array) -> jax.Array:
    for weight in w[:-1]:
        layout = ("NHWC", "HWIO", "NHWC")
        x = jnp.tanh(
            jax.lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=layout)
        )
    return x.reshape(len(x), -1) @ w[-1]


def transformer(w: Weights, x: jax.Array) -> jax.Array:
    queries, keys, values, projection, up, down, head = w
    scores = (x @ queries) @ jnp.swapaxes(x @ keys, 1, 2) / FEATURES**0.5
    x = x + jax.nn.softmax(scores) @ (x @ values) @ projection
    x = x + jnp.tanh(x @ up) @ down
    return x.mean(1) @ head


APPLY = {"dense": dense, "convnet": convnet, "transformer": transformer}


def measure(settings: Settings) -> Row:
    """Every model and number of inputs."""
    counts = QUICK_COUNTS if settings.quick else COUNTS
    # Small products are faster with one thread, and large ones with all.
    cores = str(os.cpu_count())  # also where the environment sets fewer threads
    with (
        peers(settings, "torch", OMP_NUM_THREADS=cores) as all_threads,
        peers(settings, "torch", OMP_NUM_THREADS="1") as one_thread,
    ):
        packages = all_threads.packages()
        running = {"all threads": all_threads, "one thread": one_thread}
        rows = [
            compare(running, model, count, settings.quick)
            for model, count in itertools.product(MODELS, counts)
        ]
    return {"tolerance": TOLERANCE, "peers": packages, "models": rows}


def compare(running: Mapping[str, Peers], model: Model, count: int, quick: bool) -> Row:
    """Time products and a norm on both sides, and compare their numbers."""
    rng = np.random.default_rng(0)
    w = [
        (rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)
        for shape in model.shapes
    ]
    x = rng.standard_normal((count, *model.input_shape)).astype(np.float32)
    y = rng.standard_normal((count, NUM_OUTPUTS)).astype(np.float32)
    params = [jnp.asarray(each) for each in w]
    hessian = loss_hessian(APPLY[model.kind], params, x, y, "square")
    matrix = gauss_newton(APPLY[model.kind], params, x, y, "square")
    v = rng.standard_normal(hessian.shape[0]).astype(np.float32)
    arrays = {f"w{k}": each for k, each in enumerate(w)} | {"x": x, "y": y, "v": v}
    ours = {
        "hessian product": local(lambda: hessian.flat_product(v)),
        "gauss-newton product": local(lambda: matrix.flat_product(v)),
        "hessian norm": local(lambda: np.asarray(hessian.norm(tolerance=TOLERANCE).value)),
    }
    request = {"what": "curvature", "kind": model.kind, "tolerance": TOLERANCE}
    theirs = {
        f"curvlinops, {threads}": side.competitors("torch", request, arrays)
        for threads, side in running.items()
        if side
    }
    row: Row = {"kind": model.kind, "num_samples": count, "num_params": hessian.shape[0]}
    quantities: Row = {}
    for name, call in ours.items():
        sides = {"ours": call} | {peer: calls[name] for peer, calls in theirs.items()}
        rounds = alternate(sides, repeats=2 if quick else 7, budget_s=0.5, least=3)
        found: Row = rounds.row()
        best = found["best_of_peers"]
        if best:
            size = float(np.linalg.norm(np.asarray(rounds.found["ours"], np.float64)))
            found["difference"] = abs(rounds.found[best]["norm"] / size - 1)
        quantities[name] = found
    return {**row, "quantities": quantities}
