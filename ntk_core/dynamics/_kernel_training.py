"""Networks trained from w₀ to a loss threshold, with the kernels of several outputs measured on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from ntk_core.dynamics._descent import Descent, over_seeds, record_steps, stretches
from ntk_core.dynamics._losses import Loss
from ntk_core.dynamics._models import NetworkModel
from ntk_core.dynamics._optimizers import Optimizer
from ntk_core.dynamics._rates import auto_learning_rate
from ntk_core.kernels import kernel_change, pre_output_ntk, through_output
from ntk_core.networks.architectures import Network, NetworkParams, merge

Kernels = dict[str, Array]


class KernelTraining:
    """Gradient descent of one network for each seed, side by side, and ΔK of its outputs at the recorded steps.

    Outputs that share their parameters share one kernel of the pre-outputs.

    Args:
        params: w₀ of all seeds, with a leading axis.
        x, y: inputs (n, *input_shape) and targets (n, C).
        loss: what is minimized.
        observed: output nonlinearities φ whose kernels are followed.
        learning_rate, loss_threshold, max_steps, num_records: as in ``ntk_core.dynamics.spec.TrainingSpec``.
        watch: called at w₀ and at every record with w_t and the kernels of the observed outputs, of all seeds.

    Attributes:
        kernel: of the pre-outputs at w₀, (S, n, n, C, C).
    """

    def __init__(
        self,
        net: Network,
        params: NetworkParams,
        x: ArrayLike,
        y: ArrayLike,
        loss: Loss,
        observed: tuple[str, ...],
        *,
        learning_rate: float | Literal["auto"],
        loss_threshold: float,
        max_steps: int,
        num_records: int,
        watch: Callable[[NetworkParams, Kernels], None] = lambda params, kernels: None,
    ):
        self.loss, self.observed, self._net, self._watch = loss, observed, net, watch
        self._x, self._y = jnp.asarray(x), jnp.asarray(y)
        self._records = record_steps(max_steps, num_records)
        first = self._measured(params, None)
        assert first.kernel is not None
        self.kernel, self._first = first.kernel, first.kernels
        self._rates = [
            auto_learning_rate(kernel, loss) if learning_rate == "auto" else float(learning_rate)
            for kernel in np.asarray(self.kernel)
        ]
        rates = jnp.asarray(self._rates, jnp.result_type(float))
        trained, fixed = net.partition(params)
        self._descent = Descent(
            NetworkModel(net, loss), Optimizer(), trained, fixed, self._x, self._y, rates,
            threshold=loss_threshold, together=True, dead=[not kernel.any() for kernel in np.asarray(self.kernel)],
        )  # fmt: skip
        self._rows: list[list[tuple[int, list[float], float]]] = [[] for _ in self._rates]
        self._note(first)

    def stretches(self) -> Iterator[int]:
        """Train until every seed is done; yields the step reached, several times a second."""
        return stretches([self._descent], lambda step: self._record(), self._records)

    def recorded(self, seed: int, output: str) -> dict[str, Any]:
        """What was recorded of one seed (its place in the batch) through one of the observed outputs.

        ``learning_rate`` (infinite where it is automatic and the kernel 0), ``outcome``, ``steps``, ``change`` (ΔK) and
        ``loss`` there, by these names.
        """
        steps, changes, losses = zip(*self._rows[seed], strict=True)
        return {
            "learning_rate": self._rates[seed],
            "outcome": self._descent.outcomes()[seed],
            "steps": steps,
            "change": tuple(change[self.observed.index(output)] for change in changes),
            "loss": losses,
        }

    def _record(self) -> None:
        params = merge(self._descent.state.trained, self._descent.fixed)
        self._note(self._measured(params, self._first))

    def _measured(self, params: NetworkParams, first: Kernels | None) -> _Measured:
        found = _measure(self._net, self.observed, self.loss, params, self._x, self._y, first)
        self._watch(params, found.kernels)
        return found

    def _note(self, found: _Measured) -> None:
        steps, changes, losses = self._descent.steps, np.asarray(found.changes, float), np.asarray(found.loss, float)
        for rows, step, change, loss in zip(self._rows, steps, changes, losses, strict=True):
            if not rows or rows[-1][0] < step:
                rows.append((int(step), change.tolist(), float(loss)))
        self._descent.note(found.loss)


class _Measured(NamedTuple):
    """The kernel of the pre-outputs at w₀, its images under each observed output, their changes, the loss."""

    kernel: Array | None
    kernels: Kernels
    changes: Array
    loss: Array


@partial(jax.jit, static_argnums=(0, 1, 2))
def _measure(
    net: Network,
    observed: tuple[str, ...],
    loss: Loss,
    params: NetworkParams,
    x: Array,
    y: Array,
    first: Kernels | None,
) -> _Measured:
    def one(params: NetworkParams, first: Kernels | None) -> _Measured:
        kernel, f, _ = pre_output_ntk(net, params, x)
        kernels = {output: through_output(output, kernel, f, f) for output in observed}
        if first is None:
            return _Measured(kernel, kernels, jnp.zeros(len(observed), kernel.dtype), loss(f, y))
        changes = jnp.stack([kernel_change(kernels[output], first[output]) for output in observed])
        return _Measured(None, kernels, changes, loss(f, y))

    return over_seeds(one, params, first)
