"""The linear model's trajectory in closed form against neural-tangents', on the same kernel at the same times.

Both in float64, the eigendecomposition included in each call, at training and as many other points. neural-tangents
averages its square loss over points and outputs, we over points alone: its clock runs C times slower.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks.measure import Settings, alternate, own, ratio
from benchmarks.peers.process import Peer
from ntk_core import FullyConnected, empirical_ntk
from ntk_core.dynamics import ClosedForm

INPUT_DIM, NUM_OUTPUTS, WIDTH, NUM_TIMES = 10, 3, 2_000, 200
SIZES = (30, 60, 120, 200, 400)
NAME = "neural-tangents"


def problem(num_samples: int, width: int) -> dict[str, np.ndarray]:
    """Kernel, outputs and targets of one network at training points and as many others, in float64."""
    net = FullyConnected(width=width, depth=1, num_outputs=NUM_OUTPUTS, activation="relu", use_bias=False)
    params = net.init(jax.random.key(0), (INPUT_DIM,))
    x = jax.random.normal(jax.random.key(1), (2 * num_samples, INPUT_DIM))
    kernel = np.asarray(empirical_ntk(net, params, x), np.float64)
    outputs = np.asarray(net.apply(params, x), np.float64)
    n = num_samples
    given = {"kernel": kernel[:n, :n], "other_kernel": kernel[n:, :n], "start": outputs[:n], "other_start": outputs[n:]}
    targets = np.eye(NUM_OUTPUTS)[np.arange(n) % NUM_OUTPUTS]
    return {**given, "targets": targets, "times": np.geomspace(1e-2, 1e6, NUM_TIMES)}


def compare(peer: Peer | None, num_samples: int, quick: bool) -> dict[str, Any]:
    """Times of both, and their largest difference at any time and point against the largest output."""
    given = problem(num_samples, 20 if quick else WIDTH)
    kept: dict[str, Any] = {}

    def ours() -> None:
        form = ClosedForm(
            given["kernel"], given["start"], given["targets"], given["other_kernel"], given["other_start"]
        )
        kept["found"] = form.flow(given["times"])

    competitors = {"ours": own(ours)}
    difference = None
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "problem.npz", Path(folder) / "answer.npz"
        if peer is not None:
            np.savez(asked, **{**given, "times": NUM_OUTPUTS * given["times"]})  # type: ignore[arg-type]
            peer.ask({"what": "trajectories", "file": str(asked), "answer": str(answered)})
            competitors[NAME] = peer.competitor(NAME, {})
        rows = alternate(competitors, repeats=2 if quick else 9, budget_s=6)
        if peer is not None:
            with np.load(answered, allow_pickle=False) as arrays:
                pairs = [(arrays["train"], kept["found"][0]), (arrays["other"], kept["found"][1])]
            difference = max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)
    return {
        "num_samples": num_samples,
        "num_rows": num_samples * NUM_OUTPUTS,
        "times": rows,
        "best_of_peers": NAME if peer else None,
        "times_faster": ratio(rows, NAME, "ours") if peer else None,
        "largest_relative_difference": difference,
    }


def measure(settings: Settings) -> dict[str, Any]:
    """Every number of training points in turn."""
    python = settings.interpreter(NAME)
    sizes = (4, 6) if settings.quick else SIZES
    data = {"num_times": NUM_TIMES, "num_outputs": NUM_OUTPUTS, "peers": {}}
    if python is None:
        return {**data, "cases": [compare(None, size, settings.quick) for size in sizes]}
    with Peer(python, "neural_tangents_side.py", {"JAX_ENABLE_X64": "1"}) as peer:
        data["peers"] = {NAME: peer.packages()}
        return {**data, "cases": [compare(peer, size, settings.quick) for size in sizes]}
