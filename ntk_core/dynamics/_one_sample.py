"""Gradient descent on one sample, where the quadratic model of a two-layer ReLU network is a map of the plane."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class OneSamplePath(NamedTuple):
    """The recursion, row t at step t.

    Attributes:
        u: ‖x‖²η²(g − y)²/(m d), (T + 1,): the squared residual, 2 L ‖x‖²η²/(m d).
        v: ηλ, (T + 1,): the curvature in units of the rate; the linear model diverges above 2.
        w: ‖x‖²η²(g − y) y/(m d), (T + 1,).
    """

    u: FloatArray
    v: FloatArray
    w: FloatArray


def one_sample_catapult(u: float, v: float, w: float, num_steps: int) -> OneSamplePath:
    """Return the catapult dynamics of one training sample.

    The quadratic model g of f = a·relu(Wx/√d)/√m trained on one sample with L = ½(g − y)².

    u' = (1 − v + u + w)² u,  v' = v − u(4 − v) − 4w,  w' = (1 − v + u + w) w: exact, without a network. Rows are not
    finite once it has diverged.

    >>> one_sample_catapult(0.01, 1.0, 0.0, 1).u.round(6).tolist()  # v = 1: one step is all that it takes
    [0.01, 1e-06]

    Args:
        u: squared residual ‖x‖²η²(g − y)²/(m d) at the start.
        v: ηλ at the start.
        w: ‖x‖²η²(g − y) y/(m d) at the start.
        num_steps: steps after the start.

    Returns:
        u, v and w at every step, ``num_steps + 1`` rows.

    Source: Zhu, Liu, Radhakrishnan & Belkin 2022, §3.
    """
    rows = [(u, v, w)]
    with np.errstate(over="ignore", invalid="ignore"):
        now = np.asarray(rows[0], np.float64)
        for _ in range(num_steps):
            u_, v_, w_ = now
            factor = 1 - v_ + u_ + w_
            now = np.array([factor**2 * u_, v_ - u_ * (4 - v_) - 4 * w_, factor * w_])
            rows.append(tuple(now))
    return OneSamplePath(*np.asarray(rows, np.float64).T)
