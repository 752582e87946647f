"""How fast this machine is, learned from the runs that it has finished; free of JAX."""

import collections
import math
import threading
from collections.abc import Iterable

import numpy as np

from ntk_core.runs._costs import SHIPPED, Machine, Work

MAX_KEPT = 400  # most recent points
PRIOR = 1.0  # weight of the shipped constants, in points
SMALLEST_S = 0.2  # shorter points measure the clock rather than the machine
_ROUNDS = 12
_FAR = 0.7  # log of a factor of two, beyond which a point weighs less
_lock = threading.Lock()
_finished: collections.deque[tuple[Work, float]] = collections.deque(maxlen=MAX_KEPT)
_here = SHIPPED


def machine() -> Machine:
    """Speeds of this machine: the shipped ones until :func:`learn` receives finished points."""
    return _here


def learn(points: Iterable[tuple[Work, float]]) -> None:
    """Learn from finished points: their work and their seconds."""
    global _here
    with _lock:
        _finished.extend((work, seconds) for work, seconds in points if seconds >= SMALLEST_S)
        _here = fitted(list(_finished))


def forget() -> None:
    """Return to the shipped constants."""
    global _here
    with _lock:
        _finished.clear()
        _here = SHIPPED


def fitted(points: list[tuple[Work, float]], prior: Machine = SHIPPED, weight: float = PRIOR) -> Machine:
    """The machine on which works w took t seconds, near ``prior``, which counts as much as ``weight`` points."""
    if not points:
        return prior
    start = np.array(prior)
    counts = np.array([work for work, _ in points]) * start
    return Machine(*(start * nonnegative_fit(counts, np.array([seconds for _, seconds in points]), weight)).tolist())


def nonnegative_fit(counts: np.ndarray, seconds: np.ndarray, weight: float) -> np.ndarray:
    """The constants c ≥ 0 that minimize Σ log²(counts·c / seconds), near 1.

    Least squares of counts·c/√(t ŝ) with the prediction ŝ of the round before are its Gauss–Newton steps; far-off
    points weigh less. At last all constants are scaled so that the median of t / counts·c comes nearer to 1.

    Args:
        counts: (points, constants), in units in which the expected constants are 1.
        seconds: (points,).
        weight: of the expected constants, in points.
    """
    from scipy.optimize import nnls  # slow to import, and needed after the first finished point only

    scale, pull = np.ones(counts.shape[1]), math.sqrt(weight) * np.eye(counts.shape[1])
    for _ in range(_ROUNDS):
        expected = np.maximum(counts @ scale, 1e-9)
        off = np.abs(np.log(seconds / expected))
        each = np.sqrt(np.minimum(1.0, _FAR / np.maximum(off, 1e-9)) / (seconds * expected))
        rows = np.vstack([counts * each[:, None], pull])
        scale = nnls(rows, np.concatenate([seconds * each, pull.sum(axis=1)]))[0]
    median = float(np.median(np.log(seconds / np.maximum(counts @ scale, 1e-9))))
    return np.asarray(scale * math.exp(median * len(seconds) / (len(seconds) + weight)))
