"""Kernels of thousands of inputs without holding them: kernel change, exact and estimated, solves and eigenvalues.

The largest sizes run in a process of their own, which reports the memory they took above weights and inputs. At sizes
that others reach: neural-tangents' kernels in blocks (``nt.batch``), which it then holds, and SciPy on a kernel.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
from scipy.sparse.linalg import eigsh

from benchmarks.measure import Meter, Row, Settings, alternate, own
from benchmarks.measure import alone as in_a_process
from benchmarks.peers.process import Peer, peers
from ntk_core import FullyConnected, KernelOperator, empirical_ntk, kernel_change_between, kernel_regression

WIDTH, NUM_OUTPUTS, INPUT_DIM, MOVED = 1_000, 10, 10, 0.1
LIMIT, PROBES, RIDGE = 2**30, 32, 1e-2
NT, PEER_SAMPLES, PEER_ROWS = "neural-tangents", 2_000, (250, 500, 1_000)
EXPLICIT_SAMPLES, EXPLICIT_OUTPUTS = 2_000, 3
# Measurement, and its number of inputs.
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

    def explicit(self) -> np.ndarray:
        """Return the kernel as a matrix."""
        kernel = np.asarray(empirical_ntk(self.net, self.before, self.x))
        size = kernel.shape[0] * kernel.shape[2]
        return kernel.transpose(0, 2, 1, 3).reshape(size, size)


WORKS: dict[str, Callable[[Problem], dict[str, float]]] = {
    "exact": Problem.change,
    "estimated": lambda problem: problem.change(PROBES),
    "solve": Problem.solved,
    "largest": Problem.largest,
}


def alone(name: str, num_samples: int, width: int = WIDTH) -> Row:
    """Measure one work in a process of its own: the first time, compilation included, and the memory it added."""
    problem = Problem(num_samples, width)
    meter = Meter()
    found = WORKS[name](problem)
    cost = meter.read()
    held = 4 * (num_samples * NUM_OUTPUTS) ** 2
    row = {"work": name, "num_samples": num_samples, "first_s": cost.wall_s, "kernel_would_need_bytes": held}
    return {**row, "added_bytes": cost.added_bytes, "found": found}


def against_blocks(peer: Peer | None, quick: bool) -> Row:
    """Time ΔK at sizes whose kernels fit: ours, streamed, against kernels in blocks that are held."""
    num_samples, width = (20, 8) if quick else (PEER_SAMPLES, WIDTH)
    problem = Problem(num_samples, width)
    competitors = {"ours": own(problem.change)}
    if peer is not None:
        arrays = {
            f"{letter}{k}": np.asarray(layer["weight"])
            for letter, params in (("a", problem.before), ("b", problem.after))
            for k, layer in enumerate(params.values())
        }
        request = {"what": "changes", "rows": [10] if quick else PEER_ROWS}
        calls = peer.ask(request, {"x": problem.x, **arrays})["calls"]
        competitors |= peer.competitors(calls, f"{NT}, {{}}")
    turns = alternate(competitors, repeats=1 if quick else 3, least=2, budget_s=60)
    change, *others = (found["change"] for found in turns.found.values())
    difference = max((abs(other / change - 1) for other in others), default=None)
    return {"num_samples": num_samples, **turns.row(), "relative_difference": difference}


def against_explicit(work: str, quick: bool = False) -> Row:
    """Time λ_max or a regression by products against SciPy on the kernel, which is computed each time."""
    num_samples, width = (20, 8) if quick else (EXPLICIT_SAMPLES, WIDTH)
    problem = Problem(num_samples, width, EXPLICIT_OUTPUTS)

    def largest() -> float:
        return float(eigsh(problem.explicit(), k=1, which="LA", tol=1e-3, return_eigenvectors=False)[0])

    def regression() -> float:
        kernel = problem.explicit()
        found = kernel_regression(kernel, problem.y.reshape(-1, 1), kernel, ridge=RIDGE).outputs
        return float(np.linalg.norm(found))

    def solved() -> float:
        operator = problem.operator()
        fitted = operator.product(operator.solve(problem.y, ridge=RIDGE).coefficients)
        return float(np.linalg.norm(np.asarray(fitted)))

    ours, scipy = (solved, regression) if work == "regression" else (lambda: problem.largest()["largest"], largest)
    turns = alternate({"ours": own(ours), "scipy": own(scipy)}, repeats=1 if quick else 5, budget_s=30)
    difference = abs(turns.found["scipy"] / turns.found["ours"] - 1)
    return {"work": work, "times": turns.times, "times_faster": turns.ratio("scipy"), "relative_difference": difference}


def measure(settings: Settings) -> Row:
    """Others at sizes that they reach, then what only products and streams reach, each in a process of its own."""
    quick = settings.quick
    with peers(settings, NT) as at_hand:
        packages = {name: peer.packages() for name, peer in at_hand.items()}
        blocks = against_blocks(at_hand.get(NT), quick)
    return {
        "width": WIDTH,
        "num_outputs": NUM_OUTPUTS,
        "limit_bytes": LIMIT,
        "probes": PROBES,
        "peers": packages,
        "blocks": blocks,
        "explicit_samples": EXPLICIT_SAMPLES,
        "explicit_outputs": EXPLICIT_OUTPUTS,
        "explicit": [against_explicit(work, quick) for work in ("largest eigenvalue", "regression")],
        "alone": [alone(name, 20, 8) for name in WORKS]
        if quick
        else [in_a_process(alone, name, size) for name, size in ALONE],
    }
