"""Empirical kernels against neural-tangents' three implementations, in turn, on the same weights.

Run: ``python -m benchmarks.against_neural_tangents [--python PYTHON]``. The peer does not import on current JAX; this
script makes an environment for it (``.venv-neural-tangents``, Python up to 3.12) and talks to one process there. Both
processes stay warm and take turns, so that a drift of the machine's speed hits both.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

import jax
import numpy as np

from benchmarks.measure import environment, forget_peak, peak_of, resident_bytes, save
from ntk_core import ConvNet, FullyConnected, empirical_ntk
from ntk_core.architectures import Network

REQUIREMENTS = ("neural-tangents==0.6.5", "jax==0.4.23", "jaxlib==0.4.23", "numpy<2", "scipy<1.13")
ENVIRONMENT = Path(".venv-neural-tangents")
SIDE = Path(__file__).parent / "neural_tangents_side.py"
NUM_SAMPLES, NUM_OUTPUTS, INPUT_DIM = 60, 3, 10
ALL = ("structured", "ntvp", "jacobian_contraction")
# Jacobians of the larger cases do not fit into memory or take minutes: the better two of the peer compete there.
CASES: tuple[tuple[dict[str, Any], tuple[str, ...], int], ...] = (
    ({"kind": "dense", "hidden_layers": 1, "width": 1_000}, ALL, 7),
    ({"kind": "dense", "hidden_layers": 1, "width": 10_000}, ALL, 7),
    ({"kind": "dense", "hidden_layers": 1, "width": 100_000}, ("structured",), 15),
    ({"kind": "dense", "hidden_layers": 3, "width": 300}, ALL, 7),
    ({"kind": "dense", "hidden_layers": 3, "width": 1_000}, ("structured", "ntvp"), 15),
    ({"kind": "dense", "hidden_layers": 3, "width": 3_000}, ("structured", "ntvp"), 5),
    ({"kind": "convnet", "hidden_layers": 2, "width": 64}, ALL, 15),
    ({"kind": "convnet", "hidden_layers": 2, "width": 256}, ("structured", "ntvp"), 3),
)


def make_environment(python: str) -> str:
    """The interpreter of the peer's environment, made on first use."""
    interpreter = ENVIRONMENT / "bin" / "python"
    if not interpreter.exists():
        subprocess.run([python, "-m", "venv", str(ENVIRONMENT)], check=True)
        subprocess.run([str(interpreter), "-m", "pip", "install", "--quiet", *REQUIREMENTS], check=True)
    return str(interpreter)


def network(case: dict[str, Any]) -> tuple[Network, Any, jax.Array]:
    """Network, weights and inputs of one case."""
    width, depth = case["width"], case["hidden_layers"]
    shape: tuple[int, ...] = (INPUT_DIM,) if case["kind"] == "dense" else (8, 8, 3)
    net: Network = (FullyConnected if case["kind"] == "dense" else ConvNet)(
        width=width, depth=depth, num_outputs=NUM_OUTPUTS, activation="relu"
    )
    params = jax.jit(net.init, static_argnums=1)(jax.random.key(0), shape)
    return net, params, jax.random.normal(jax.random.key(1), (NUM_SAMPLES, *shape))


class Peer:
    """One warm process with neural-tangents."""

    def __init__(self, interpreter: str):
        self._process = subprocess.Popen(
            [interpreter, str(SIDE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        to, answers = cast(IO[str], self._process.stdin), cast(IO[str], self._process.stdout)
        to.write(json.dumps(request) + "\n")
        to.flush()
        return json.loads(answers.readline())

    def close(self) -> None:
        cast(IO[str], self._process.stdin).close()
        self._process.wait()


def compare(peer: Peer, case: dict[str, Any], implementations: tuple[str, ...], repeats: int) -> dict[str, Any]:
    """Median times of ours and of each implementation, called in turn; how far the norms of the kernels differ."""
    net, params, x = network(case)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.npz"
        weights: dict[str, Any] = {
            f"w{k}": _as_filter(case, k, params[name]["weight"]) for k, name in enumerate(params)
        }
        np.savez(path, x=np.asarray(x), **weights)
        versions = peer.ask({"case": case, "file": str(path), "implementations": implementations})
    norms: dict[str, float] = {}

    def ours() -> float:
        began = time.perf_counter()
        kernel = jax.block_until_ready(empirical_ntk(net, params, x))
        seconds = time.perf_counter() - began
        norms["ours"] = float(np.linalg.norm(np.asarray(kernel, np.float64)))
        return seconds

    def theirs(name: str) -> Callable[[], float]:
        def call() -> float:
            answer = peer.ask({"time": name})
            norms[name] = answer["norm"]
            return answer["s"]

        return call

    competitors = {"ours": ours, **{name: theirs(name) for name in implementations}}
    first = {name: call() for name, call in competitors.items()}
    times: dict[str, list[float]] = {name: [] for name in competitors}
    for _ in range(repeats):
        for name, call in competitors.items():
            times[name].append(call())
    medians = {name: statistics.median(values) for name, values in times.items()}
    best = min(implementations, key=medians.__getitem__)
    return {
        **case,
        "num_params": net.num_params(x.shape[1:]),
        "peer": versions,
        "times": {
            name: {"first_s": first[name], "median_s": medians[name], "min_s": min(values), "max_s": max(values)}
            for name, values in times.items()
        },
        "best_of_peer": best,
        "times_faster": medians[best] / medians["ours"],
        "relative_difference_of_norms": max(abs(norms[name] / norms["ours"] - 1) for name in implementations),
    }


def _as_filter(case: dict[str, Any], index: int, weight: jax.Array) -> np.ndarray:
    """A convolution's weight as (height, width, channels in, channels out), as the peer's convolution takes it."""
    array = np.asarray(weight)
    if case["kind"] == "convnet" and index < case["hidden_layers"] and array.ndim == 2:
        return array.reshape(3, 3, -1, array.shape[-1])
    return array


def growth(rows: list[dict[str, Any]], kind: str, depth: int) -> float | None:
    """Exponent of our median time in the width, fitted over the cases of one depth."""
    chosen = [row for row in rows if row["kind"] == kind and row["hidden_layers"] == depth]
    if len(chosen) < 2:
        return None
    logs = [[math.log(row["width"]) for row in chosen], [math.log(row["times"]["ours"]["median_s"]) for row in chosen]]
    return float(np.polyfit(logs[0], logs[1], 1)[0])


def memory_at(width: int) -> None:
    """In a process of its own: time and peak memory of a kernel with 3 hidden layers, above that of the weights."""
    net, params, x = network({"kind": "dense", "hidden_layers": 3, "width": width})
    jax.block_until_ready(params)
    before = forget_peak()
    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        jax.block_until_ready(empirical_ntk(net, params, x))
        seconds.append(time.perf_counter() - began)
    row = {"width": width, "hidden_layers": 3, "num_params": net.num_params(x.shape[1:])}
    print(
        json.dumps(
            {**row, "first_s": seconds[0], "warm_s": seconds[1], "added_bytes": resident_bytes("VmHWM") - before}
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Empirical kernels against neural-tangents.")
    parser.add_argument("--python", default=sys.executable, help="a Python up to 3.12 for the peer's environment")
    parser.add_argument("--memory-at", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_at:
        memory_at(arguments.memory_at)
        return
    began = environment()
    peer = Peer(make_environment(arguments.python))
    rows = [compare(peer, *case) for case in CASES]
    peer.close()
    exponents = {
        f"{kind}, {depth} hidden": growth(rows, kind, depth)
        for kind, depth in (("dense", 1), ("dense", 3), ("convnet", 2))
    }
    large = [peak_of("benchmarks.against_neural_tangents", "--memory-at", str(width)) for width in (10_000, 30_000)]
    data = {"environment": began, "num_samples": NUM_SAMPLES, "num_outputs": NUM_OUTPUTS, "cases": rows}
    save("against_neural_tangents", {**data, "growth_exponents_in_width": exponents, "large": large})


if __name__ == "__main__":
    main()
