"""Kernel changes, solves and eigenvalues of thousands of inputs.

The largest sizes run in a fresh process, which reports the memory that they add to weights and
inputs. At smaller sizes: neural-tangents' kernels in blocks (``nt.batch``), held in memory,
and SciPy on a kernel.
"""

from collections.abc import Callable

import jax
import numpy as np
from scipy.sparse.linalg import eigsh

from benchmarks.measure import Meter, Row, Settings, alternate, isolated, local
from benchmarks.peers.process import Peers, peers
from ntk_core import (
    FullyConnected,
    KernelOperator,
    empirical_ntk,
    kernel_change_between,
    kernel_regression,
)
from ntk_core.kernels._outputs import as_matrix

WIDTH = 1_000
NUM_OUTPUTS = 10
INPUT_DIM = 10
MOVED = 0.1
LIMIT = 2**30
PROBES = 32
RIDGE = 1e-2
NT = "neural-tangents"
PEER_SAMPLES = 2_000
PEER_ROWS = (250, 500, 1_000)
EXPLICIT_SAMPLES = 2_000
EXPLICIT_OUTPUTS = 3
# Measurement, and its number of inputs.
ALONE = (
    ("exact", 10_000),
    ("estimated", 10_000),
    ("estimated", 100_000),
    ("solve", 10_000),
    ("largest", 10_000),
)


class Problem:
    """One hidden layer at w₀ and w₁, with inputs and targets."""

    def __init__(self, num_samples: int, width: int = WIDTH, num_outputs: int = NUM_OUTPUTS):
        self.net = FullyConnected(
            width=width, depth=1, num_outputs=num_outputs, activation="relu", use_bias=False
        )
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
        weights = self.before, self.after
        found = kernel_change_between(
            self.net, *weights, self.x, targets=self.y, memory_limit=LIMIT, probes=probes
        )
        return found._asdict()

    def solved(self) -> dict[str, float]:
        found = self.operator().solve(self.y, ridge=RIDGE)
        return {"residual": found.residual, "num_products": found.num_products}

    def largest(self) -> dict[str, float]:
        return self.operator().extremes(max_products=30)._asdict()

    def fitted_norm(self) -> float:
        """Return the norm of the regression's outputs, by products."""
        operator = self.operator()
        fitted = operator.product(operator.solve(self.y, ridge=RIDGE).coefficients)
        return float(np.linalg.norm(np.asarray(fitted)))

    def explicit(self) -> np.ndarray:
        """Return the kernel as a matrix."""
        return as_matrix(empirical_ntk(self.net, self.before, self.x))

    def explicit_largest(self) -> float:
        return float(
            eigsh(self.explicit(), k=1, which="LA", tol=1e-3, return_eigenvectors=False)[0]
        )

    def explicit_fitted_norm(self) -> float:
        kernel = self.explicit()
        return float(
            np.linalg.norm(
                kernel_regression(kernel, self.y.reshape(-1, 1), kernel, ridge=RIDGE).outputs
            )
        )


WORKS: dict[str, Callable[[Problem], dict[str, float]]] = {
    "exact": Problem.change,
    "estimated": lambda problem: problem.change(PROBES),
    "solve": Problem.solved,
    "largest": Problem.largest,
}
# Work → (by products, on the kernel).
EXPLICIT: dict[str, tuple[Callable[[Problem], float], Callable[[Problem], float]]] = {
    "largest eigenvalue": (lambda problem: problem.largest()["largest"], Problem.explicit_largest),
    "regression": (Problem.fitted_norm, Problem.explicit_fitted_norm),
}


def first_call(name: str, num_samples: int, width: int = WIDTH) -> Row:
    """Measure a first call, compilation included, and its added memory."""
    problem = Problem(num_samples, width)
    meter = Meter()
    found = WORKS[name](problem)
    cost = meter.read()
    held = 4 * (num_samples * NUM_OUTPUTS) ** 2
    row = {
        "work": name,
        "num_samples": num_samples,
        "first_s": cost["wall_s"],
        "kernel_would_need_bytes": held,
    }
    return {**row, "added_bytes": cost["added_bytes"], "found": found}


def against_blocks(running: Peers, quick: bool) -> Row:
    """Time ΔK, streamed, against kernels in blocks held in memory."""
    num_samples, width = (20, 8) if quick else (PEER_SAMPLES, WIDTH)
    problem = Problem(num_samples, width)
    arrays = {
        f"{letter}{k}": np.asarray(layer["weight"])
        for letter, params in (("a", problem.before), ("b", problem.after))
        for k, layer in enumerate(params.values())
    }
    request = {"what": "changes", "rows": [10] if quick else PEER_ROWS}
    competitors = {"ours": local(problem.change)}
    competitors |= running.competitors(NT, request, {"x": problem.x, **arrays}, f"{NT}, {{}}")
    rounds = alternate(competitors, repeats=1 if quick else 3, least=2, budget_s=60)
    change, *others = (found["change"] for found in rounds.found.values())
    difference = max((abs(other / change - 1) for other in others), default=None)
    return {"num_samples": num_samples, **rounds.row(), "relative_difference": difference}


def against_explicit(work: str, quick: bool = False) -> Row:
    """Time products against SciPy on the kernel, which is computed each time."""
    num_samples, width = (20, 8) if quick else (EXPLICIT_SAMPLES, WIDTH)
    problem = Problem(num_samples, width, EXPLICIT_OUTPUTS)
    ours, scipy = EXPLICIT[work]
    competitors = {"ours": local(lambda: ours(problem)), "scipy": local(lambda: scipy(problem))}
    rounds = alternate(competitors, repeats=1 if quick else 5, budget_s=30)
    difference = abs(rounds.found["scipy"] / rounds.found["ours"] - 1)
    times = {"times": rounds.times, "times_faster": rounds.ratio("scipy")}
    return {"work": work, **times, "relative_difference": difference}


def measure(settings: Settings) -> Row:
    """Sizes that others reach, then those of products and streams alone."""
    quick = settings.quick
    with peers(settings, NT) as running:
        packages = running.packages()
        blocks = against_blocks(running, quick)
    sizes = {"width": WIDTH, "num_outputs": NUM_OUTPUTS, "limit_bytes": LIMIT, "probes": PROBES}
    small = {"explicit_samples": EXPLICIT_SAMPLES, "explicit_outputs": EXPLICIT_OUTPUTS}
    rows = (
        [first_call(name, 20, 8) for name in WORKS]
        if quick
        else [isolated(first_call, *each) for each in ALONE]
    )
    explicit = [against_explicit(work, quick) for work in EXPLICIT]
    return {
        **sizes,
        **small,
        "peers": packages,
        "blocks": blocks,
        "explicit": explicit,
        "alone": rows,
    }
