"""How fast this machine is, learned from the runs that it has finished; free of JAX."""

import collections
import itertools
import math
import threading
from collections.abc import Iterable
from dataclasses import astuple

import numpy as np
from numpy.typing import NDArray

from ntk_core.runs._costs import SHIPPED, Machine, Work

MAX_KEPT = 400  # finished points, those of last
PRIOR = 1.0  # what is shipped counts for each constant as much as so many points
SMALLEST_S = 0.2  # shorter points say more about the clock than about the machine
_ROUNDS = 12
_FAR = 0.7  # a point that took twice as long as foreseen, or half as long, weighs less from here on
_lock = threading.Lock()
_finished: collections.deque[tuple[Work, float]] = collections.deque(maxlen=MAX_KEPT)
_here = SHIPPED


def machine() -> Machine:
    """What is known of this machine: what was shipped, until :func:`learn` was told of finished points."""
    return _here


def learn(points: Iterable[tuple[Work, float]]) -> None:
    """Take note of finished points: their work, and the seconds that they took."""
    global _here
    with _lock:
        _finished.extend((work, seconds) for work, seconds in points if seconds >= SMALLEST_S)
        _here = fitted(list(_finished))


def forget() -> None:
    """Know nothing but what was shipped."""
    global _here
    with _lock:
        _finished.clear()
        _here = SHIPPED


def fitted(points: list[tuple[Work, float]], prior: Machine = SHIPPED, weight: float = PRIOR) -> Machine:
    """The constants c ≥ 0 that minimize Σ log²(c·w / t) over works w and their seconds t, near ``prior``.

    Least squares of c·w/√(t ŝ) with the prediction ŝ of the round before are its Gauss–Newton steps; far-off points
    weigh less, and at last all constants are scaled so that the median of t / c·w comes nearer to 1, as near as so many
    points are worth against the prior.
    """
    if not points:
        return prior
    start = np.array(astuple(prior))
    counts = np.array([astuple(work) for work, _ in points]) * start  # each constant in units of the prior's
    seconds = np.array([taken for _, taken in points])
    scale = np.ones(len(start))
    pull = math.sqrt(weight) * np.eye(len(start))
    for _ in range(_ROUNDS):
        foreseen = np.maximum(counts @ scale, 1e-9)
        off = np.abs(np.log(seconds / foreseen))
        each = np.sqrt(np.minimum(1.0, _FAR / np.maximum(off, 1e-9)) / (seconds * foreseen))
        rows = np.vstack([counts * each[:, None], pull])
        scale = _non_negative(rows, np.concatenate([seconds * each, pull.sum(axis=1)]))
    median = float(np.median(np.log(seconds / np.maximum(counts @ scale, 1e-9))))
    return Machine(*(start * scale * math.exp(median * len(points) / (len(points) + weight))).tolist())


def _non_negative(rows: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    """The x ≥ 0 with the smallest ‖rows·x − wanted‖: the best of all choices of entries that are 0, which are few."""
    size, best, least = rows.shape[1], np.zeros(rows.shape[1]), math.inf
    for kept in itertools.product((True, False), repeat=size):
        chosen = np.flatnonzero(kept)
        found = np.zeros(size)
        found[chosen] = np.linalg.lstsq(rows[:, chosen], wanted, rcond=None)[0]
        error = float(np.linalg.norm(rows @ found - wanted))
        if (found >= 0).all() and error < least:
            best, least = found, error
    return best
