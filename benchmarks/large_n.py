"""Kernels of thousands of inputs without holding them: kernel change, exact and estimated, solves and eigenvalues.

The largest sizes run in a process of their own, which reports the memory they took above weights and inputs. At sizes
that others reach: neural-tangents' kernels in blocks (``nt.batch``), which it then holds, and SciPy on a kernel.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from scipy.sparse.linalg import eigsh

from benchmarks.measure import Settings, alternate, own, peak_of, ratio
from benchmarks.peers.process import Peer
from benchmarks.peers.side import forget_peak, resident_bytes
from ntk_core import FullyConnected, KernelOperator, empirical_ntk, kernel_change_between, kernel_regression

WIDTH, NUM_OUTPUTS, INPUT_DIM, MOVED = 1_000, 10, 10, 0.1
LIMIT, PROBES, RIDGE = 2**30, 32, 1e-2
NT, PEER_SAMPLES, PEER_ROWS = "neural-tangents", 2_000, (250, 500, 1_000)
EXPLICIT_SAMPLES, EXPLICIT_OUTPUTS = 2_000, 3
# What, of how many inputs.
ALONE = (("exact", 10_000), ("estimated", 10_000), ("estimated", 100_000), ("solve", 10_000), ("largest", 10_000))


class Problem:
    """A network of one hidden layer, w₀, w₁ = w₀ + 0.1 of a second draw, inputs and targets."""

    def __init__(self, num_samples: int, width: int = WIDTH, num_outputs: int = NUM_OUTPUTS):
        self.net = FullyConnected(width=width, depth=1, num_outputs=num_outputs, activation="relu", use_bias=False)
        draws = [self.net.init(jax.random.key(seed), (INPUT_DIM,)) for seed in (0, 1)]
        self.before = draws[0]
        self.after = jax.tree.map(lambda w, v: w + MOVED * v, *draws)
        rng = np.random.default_rng(2)
        self.x = rng.standard_normal((num_samples, INPUT_DIM), np.float32)
        self.y = np.eye(num_outputs, dtype=np.float32)[rng.integers(num_outputs, size=num_samples)]
        jax.block_until_ready((self.before, self.after))

    def operator(self) -> KernelOperator:
        return KernelOperator(self.net, self.before, self.x, memory_limit=LIMIT)

    def change(self, probes: int | None = None) -> dict[str, float]:
        found = kernel_change_between(
            self.net, self.before, self.after, self.x, targets=self.y, memory_limit=LIMIT, probes=probes
        )
        return found._asdict()

    def solved(self) -> dict[str, float]:
        found = self.operator().solve(self.y, ridge=RIDGE)
        return {"residual": found.residual, "num_products": found.num_products}

    def largest(self) -> dict[str, float]:
        return self.operator().extremes(max_products=30)._asdict()


def works(problem: Problem) -> dict[str, Callable[[], dict[str, float]]]:
    return {
        "exact": problem.change,
        "estimated": lambda: problem.change(PROBES),
        "solve": problem.solved,
        "largest": problem.largest,
    }


def alone(name: str, num_samples: int, width: int = WIDTH) -> dict[str, Any]:
    """For a process of its own: one work, the first time, compilation included, and what it added to the memory."""
    problem = Problem(num_samples, width)
    before, began = forget_peak(), time.perf_counter()
    found = works(problem)[name]()
    seconds = time.perf_counter() - began
    held = 4 * (num_samples * NUM_OUTPUTS) ** 2
    row = {"work": name, "num_samples": num_samples, "first_s": seconds, "kernel_would_need_bytes": held}
    return {**row, "added_bytes": max(0, resident_bytes("VmHWM") - before), "found": found}


def against_blocks(peer: Peer | None, quick: bool) -> dict[str, Any]:
    """ΔK at sizes whose kernels fit: ours, streamed, against kernels in blocks that are held."""
    num_samples, width = (20, 8) if quick else (PEER_SAMPLES, WIDTH)
    problem, kept = Problem(num_samples, width), dict[str, float]()
    competitors = {"ours": own(lambda: kept.update(problem.change()))}
    answers: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        if peer is not None:
            path = Path(folder) / "weights.npz"
            weights: dict[str, Any] = {
                f"{letter}{k}": np.asarray(layer["weight"])
                for letter, params in (("a", problem.before), ("b", problem.after))
                for k, layer in enumerate(params.values())
            }
            np.savez(path, x=problem.x, **weights)
            rows = [10] if quick else PEER_ROWS
            calls = peer.ask({"what": "changes", "file": str(path), "rows": rows})["calls"]
            competitors |= {f"{NT}, {name}": peer.competitor(name, answers) for name in calls}
        times = alternate(competitors, repeats=1 if quick else 3, least=2, budget_s=60)
    best = min((name for name in times if name != "ours"), key=lambda name: times[name]["median_s"], default=None)
    differences = [abs(answer["change"] / kept["change"] - 1) for answer in answers.values()]
    return {
        "num_samples": num_samples,
        "times": times,
        "best_of_peers": best,
        "times_faster": best and ratio(times, best, "ours"),
        "relative_difference": max(differences, default=None),
    }


def against_explicit(quick: bool, only: str = "") -> list[dict[str, Any]]:
    """λ_max and a regression by products, or one of them, against SciPy on the kernel, which is computed each time."""
    num_samples, width = (20, 8) if quick else (EXPLICIT_SAMPLES, WIDTH)
    problem = Problem(num_samples, width, EXPLICIT_OUTPUTS)
    kept: dict[str, Any] = {}

    def explicit() -> np.ndarray:
        kernel = np.asarray(empirical_ntk(problem.net, problem.before, problem.x))
        size = num_samples * EXPLICIT_OUTPUTS
        return kernel.transpose(0, 2, 1, 3).reshape(size, size)

    def largest() -> None:
        kept["scipy"] = float(eigsh(explicit(), k=1, which="LA", tol=1e-3, return_eigenvectors=False)[0])

    def regression() -> None:
        kernel = explicit()
        found = kernel_regression(kernel, problem.y.reshape(-1, 1), kernel, ridge=RIDGE).outputs
        kept["scipy"] = float(np.linalg.norm(found))

    def solved() -> None:
        operator = problem.operator()
        fitted = operator.product(operator.solve(problem.y, ridge=RIDGE).coefficients)
        kept["ours"] = float(np.linalg.norm(np.asarray(fitted)))

    pairs: dict[str, tuple[Callable[[], None], Callable[[], None]]] = {
        "largest eigenvalue": (lambda: kept.update(ours=problem.largest()["largest"]), largest),
        "regression": (solved, regression),
    }
    rows = []
    for name, (ours, scipy) in pairs.items():
        if only not in ("", name):
            continue
        times = alternate({"ours": own(ours), "scipy": own(scipy)}, repeats=1 if quick else 5, budget_s=30)
        difference = abs(kept["scipy"] / kept["ours"] - 1)
        faster = ratio(times, "scipy", "ours")
        rows.append({"work": name, "times": times, "times_faster": faster, "relative_difference": difference})
    return rows


def measure(settings: Settings) -> dict[str, Any]:
    """Others at sizes that they reach, then what only products and streams reach, each in a process of its own."""
    python, quick = settings.interpreter(NT), settings.quick
    data: dict[str, Any] = {"width": WIDTH, "num_outputs": NUM_OUTPUTS, "limit_bytes": LIMIT, "probes": PROBES}
    if python is None:
        data |= {"peers": {}, "blocks": against_blocks(None, quick)}
    else:
        with Peer(python, "neural_tangents_side.py") as peer:
            data |= {"peers": {NT: peer.packages()}, "blocks": against_blocks(peer, quick)}
    data |= {"explicit_samples": EXPLICIT_SAMPLES, "explicit_outputs": EXPLICIT_OUTPUTS}
    data["explicit"] = against_explicit(quick)
    if quick:
        return {**data, "alone": [alone(name, 20, 8) for name in works(Problem(2, 2))]}
    return {**data, "alone": [peak_of("benchmarks.large_n", name, str(size)) for name, size in ALONE]}


if __name__ == "__main__":
    print(json.dumps(alone(sys.argv[1], *map(int, sys.argv[2:]))))
