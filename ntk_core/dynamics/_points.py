"""Checked training and test points."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpy.typing import NDArray

from ntk_core.errors import InvalidInput
from ntk_core.networks.architectures import Network
from ntk_core.traced import Apply, Inputs, accepted_targets, like_rows


class TrainingPoints:
    """Checked training and test points on the device, targets of JAX's float type.

    ``x_test`` may have no rows.
    """

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        x_test: Inputs | None,
        y_test: ArrayLike | None,
        followed: Sequence[int] | None,
        followed_test: Sequence[int] | None,
        num_outputs: int,
        axes: tuple[int, ...] = (),
        net: Network | Apply | None = None,
    ):
        floats = jnp.result_type(float)
        self.x = jnp.asarray(x)
        n = len(self.x)
        if not n:
            raise InvalidInput(
                "x", f"shape {self.x.shape}", "shape (n, …) with at least one sample"
            )
        self.y = jnp.asarray(accepted_targets(y, n, num_outputs, axes=axes), floats)
        other_x = self.x[:0] if x_test is None else like_rows(x_test, self.x, "x_test", net)
        self.x_test = jnp.asarray(other_x, self.x.dtype)
        num_test = len(self.x_test)
        other_y = (
            self.y[:0]
            if y_test is None
            else accepted_targets(y_test, num_test, num_outputs, "y_test", axes)
        )
        if num_test != len(other_y):
            raise InvalidInput(
                "y_test", "nothing", f"shape ({num_test}, {num_outputs}), one row for each x_test"
            )
        self.y_test = jnp.asarray(other_y, floats)
        self.followed = _indices("followed", followed, n)
        self.followed_test = _indices("followed_test", followed_test, num_test)

    @property
    def all_x(self) -> Array:
        """Training points, then test points."""
        return jnp.concatenate([self.x, self.x_test]) if len(self.x_test) else self.x


def _indices(field: str, given: Sequence[int] | None, count: int) -> NDArray[np.int64]:
    try:
        chosen = np.arange(count) if given is None else np.asarray(given, np.int64).reshape(-1)
    except (TypeError, ValueError) as error:
        raise InvalidInput(field, given, f"indices from 0 to {count - 1}; {error}") from error
    if len(chosen) and not 0 <= chosen.min() <= chosen.max() < count:
        raise InvalidInput(field, list(map(int, chosen)), f"indices from 0 to {count - 1}")
    return chosen
