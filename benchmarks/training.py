"""Training against plain routes.

Steps against ``jax.grad``, trajectories against neural-tangents.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import PyTree

from benchmarks.measure import Row, Settings, alternate, local
from benchmarks.peers.process import Peers, peers
from ntk_core import FullyConnected, empirical_ntk
from ntk_core.dynamics import ClosedForm, Loss, NetworkModel, Optimizer, advance, start

NUM_SAMPLES = 60
INPUT_DIM = 10
NUM_OUTPUTS = 3
RATE = 1e-3
STEPS = 100
SIZES = ((1_000, 1), (10_000, 1), (100_000, 1), (1_000, 3))
QUICK_SIZES = ((20, 1),)


def compare(width: int, depth: int) -> Row:
    """Time steps of gradient descent both ways; compare the weights (float32)."""
    net = FullyConnected(
        width=width, depth=depth, num_outputs=NUM_OUTPUTS, activation="relu", use_bias=True
    )
    params = net.init(jax.random.key(0), (INPUT_DIM,))
    x = jax.random.normal(jax.random.key(1), (NUM_SAMPLES, INPUT_DIM))
    y = jax.nn.one_hot(jnp.arange(NUM_SAMPLES) % NUM_OUTPUTS, NUM_OUTPUTS)
    loss = Loss("linear")
    model = NetworkModel(net, loss)
    optimizer = Optimizer()
    steps = STEPS if width <= 10_000 and depth == 1 else STEPS // 5

    @jax.jit
    def plain(params: PyTree, x: Array, y: Array) -> PyTree:
        def step(_: Array, params: PyTree) -> PyTree:
            gradient = jax.grad(lambda w: loss(net.apply(w, x), y))(params)
            return jax.tree.map(lambda w, g: w - RATE * g, params, gradient)

        return jax.lax.fori_loop(0, steps, step, params)

    def ours(copy: PyTree) -> PyTree:
        trained, fixed = net.partition(copy)
        first = start(model, optimizer, trained, NUM_SAMPLES)
        return advance(model, optimizer, first, fixed, x, y, RATE, steps, 0.0).trained

    # Arguments are donated: each call gets a copy, made before the clock starts.
    copies = [jax.tree.map(jnp.copy, params) for _ in range(12)]
    competitors = {
        "ours": local(lambda: ours(copies.pop())),
        "plain_grad": local(lambda: plain(params, x, y)),
    }
    rounds = alternate(competitors, repeats=9)
    weights = rounds.found["ours"], net.partition(rounds.found["plain_grad"])[0]
    differences = jax.tree.map(lambda a, b: float(jnp.abs(a - b).max()), *weights)
    step_s = {name: row["median_s"] / steps for name, row in rounds.times.items()}
    times = {"step_s": step_s, "times": rounds.times, "times_faster": rounds.ratio("plain_grad")}
    sizes = {"width": width, "hidden_layers": depth, "steps": steps}
    return {**sizes, **times, "largest_difference": max(jax.tree.leaves(differences))}


def step_cost(width: int) -> Row:
    """Processor seconds of 1,000 steps of gradient descent, compiled before."""
    net = FullyConnected(width=width, num_outputs=NUM_OUTPUTS, activation="relu", use_bias=True)
    params = net.init(jax.random.key(0), (INPUT_DIM,))
    x = jax.random.normal(jax.random.key(1), (NUM_SAMPLES, INPUT_DIM))
    y = jax.nn.one_hot(jnp.arange(NUM_SAMPLES) % NUM_OUTPUTS, NUM_OUTPUTS)
    model = NetworkModel(net, Loss("linear"))
    optimizer = Optimizer()
    trained, fixed = net.partition(params)
    state = start(model, optimizer, trained, NUM_SAMPLES)
    spent = 0.0
    for until in (1, 1_001):  # the first call compiles
        began = time.process_time()
        state = advance(model, optimizer, state, fixed, x, y, RATE, until)
        jax.block_until_ready(state)
        spent = time.process_time() - began
    return {f"width {width:,}": spent / 1_000}


def measure(settings: Settings) -> Row:
    """Every size."""
    rows = [compare(*size) for size in (QUICK_SIZES if settings.quick else SIZES)]
    return {"num_samples": NUM_SAMPLES, "num_outputs": NUM_OUTPUTS, "against_plain_grad": rows}


TRAJECTORY_WIDTH = 2_000
NUM_TIMES = 200
TRAINING_POINTS = (30, 60, 120, 200, 400)
NT = "neural-tangents"


def problem(num_samples: int, width: int) -> dict[str, np.ndarray]:
    """Return kernel, outputs and targets at training and other points."""
    net = FullyConnected(
        width=width, depth=1, num_outputs=NUM_OUTPUTS, activation="relu", use_bias=False
    )
    params = net.init(jax.random.key(0), (INPUT_DIM,))
    x = jax.random.normal(jax.random.key(1), (2 * num_samples, INPUT_DIM))
    kernel = np.asarray(empirical_ntk(net, params, x), np.float64)
    outputs = np.asarray(net.apply(params, x), np.float64)
    n = num_samples
    given = {
        "kernel": kernel[:n, :n],
        "other_kernel": kernel[n:, :n],
        "start": outputs[:n],
        "other_start": outputs[n:],
    }
    targets = np.eye(NUM_OUTPUTS)[np.arange(n) % NUM_OUTPUTS]
    return {**given, "targets": targets, "times": np.geomspace(1e-2, 1e6, NUM_TIMES)}


def trajectory(running: Peers, num_samples: int, quick: bool) -> Row:
    """Time both closed forms; compare outputs at all times and points.

    Each call includes the eigendecomposition. neural-tangents averages its square loss over points
    and outputs, we over points alone: its clock runs C times slower.
    """
    given = problem(num_samples, 20 if quick else TRAJECTORY_WIDTH)
    arguments = [
        given[name] for name in ("kernel", "start", "targets", "other_kernel", "other_start")
    ]
    competitors = {"ours": local(lambda: ClosedForm(*arguments).flow(given["times"]))}
    for peer in running.values():
        request = {"what": "trajectories", "answer": str(peer.folder / "answer.npz")}
        competitors |= running.competitors(
            NT, request, {**given, "times": NUM_OUTPUTS * given["times"]}
        )
    rounds = alternate(competitors, repeats=2 if quick else 9, budget_s=6)
    difference = None
    for peer in running.values():
        with np.load(peer.folder / "answer.npz", allow_pickle=False) as arrays:
            pairs = list(
                zip((arrays["train"], arrays["other"]), rounds.found["ours"], strict=False)
            )
        difference = max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)
    sizes = {"num_samples": num_samples, "num_rows": num_samples * NUM_OUTPUTS}
    return {**sizes, **rounds.row(), "largest_relative_difference": difference}


def trajectories(settings: Settings) -> Row:
    """The linear model's trajectory in closed form, in float64."""
    sizes = (4, 6) if settings.quick else TRAINING_POINTS
    with peers(settings, NT, JAX_ENABLE_X64="1") as running:
        packages = running.packages()
        rows = [trajectory(running, size, settings.quick) for size in sizes]
    return {"num_times": NUM_TIMES, "num_outputs": NUM_OUTPUTS, "peers": packages, "cases": rows}
