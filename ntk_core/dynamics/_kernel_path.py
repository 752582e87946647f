"""The tangent kernel of a model, followed while it is trained."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Shaped

from ntk_core.dynamics._history import FloatArray, KernelPath
from ntk_core.dynamics._losses import Loss
from ntk_core.dynamics._models import CallableModel, Model, NetworkModel
from ntk_core.dynamics._rates import eigenvalues
from ntk_core.kernels import empirical_ntk, kernel_derivative, split_inexact, through_output
from ntk_core.networks.architectures import Network, merge
from ntk_core.traced import accepted, accepted_targets

TrainedModel = NetworkModel | CallableModel


class FollowedKernel:
    """Kernels of the net's output φ on ``x`` at each record, compared with the first one."""

    def __init__(self, model: TrainedModel, fixed: Any, x: Array):
        self.model, self.fixed, self.x = model, fixed, x
        self._first: dict[str, FloatArray] = {}
        self._first_pre: FloatArray | None = None
        self._rows: list[dict[str, Any]] = []

    def record(self, trained: Any) -> None:
        """Note the kernel at these parameters."""
        pre_parts = _pre_output_kernels(self.model, trained, self.fixed, self.x)
        output = self.model.net.output if isinstance(self.model, NetworkModel) else "linear"
        parts = pre_parts
        if output != "linear":
            f = pre_outputs(self.model, trained, self.fixed, self.x)
            parts = {name: through_output(output, part, f, f) for name, part in pre_parts.items()}
        now = {name: np.asarray(part, np.float64) for name, part in parts.items()}
        self._first = self._first or now
        first, total = (np.asarray(sum(each.values())) for each in (self._first, now))
        spectrum = eigenvalues(total)
        pre = total if output == "linear" else np.asarray(sum(pre_parts.values()), np.float64)
        self._first_pre = pre if self._first_pre is None else self._first_pre
        pre_spectrum = spectrum if output == "linear" else eigenvalues(pre)
        moved = {name: _share(part - self._first[name], first) for name, part in now.items()}
        self._rows.append({
            "change": _share(total - first, first),
            "smallest": spectrum[-1],
            "largest": spectrum[0],
            "pre_output_smallest": pre_spectrum[-1],
            "pre_output_change": _share(pre - self._first_pre, self._first_pre),
            "layer_change": moved if isinstance(self.model, NetworkModel) else {},
        })  # fmt: skip

    def path(self) -> KernelPath:
        """All records so far."""
        columns: dict[str, Any] = {name: [row[name] for row in self._rows] for name in self._rows[0]}
        layers = columns.pop("layer_change")
        return KernelPath(
            **{name: np.asarray(column) for name, column in columns.items()},
            layer_change={name: np.array([row[name] for row in layers]) for name in layers[0]},
            num_points=len(self.x),
        )


def _share(part: FloatArray, whole: FloatArray) -> float:
    """‖part‖_F / ‖whole‖_F; NaN where there is no kernel at all."""
    norm = float(np.linalg.norm(whole))
    return float(np.linalg.norm(part)) / norm if norm else math.nan


def pre_output_kernel(
    model: TrainedModel, trained: Any, fixed: Any, x1: Shaped[Array, "n1 ..."], x2: Shaped[Array, "n2 ..."]
) -> Float[Array, "n1 n2 C C"]:
    """K of the pre-outputs f, (n1, n2, C, C)."""
    if isinstance(model, NetworkModel):
        return empirical_ntk(model.net.with_output("linear"), merge(trained, fixed), x1, x2)
    return empirical_ntk(model.function, trained, x1, x2)


@partial(jax.jit, static_argnums=0)
def pre_outputs(model: Model, trained: Any, fixed: Any, x: Shaped[Array, "n ..."]) -> Float[Array, "n C"]:
    """f, (n, C)."""
    return model.pre_outputs(trained, fixed, x)


def _pre_output_kernels(model: TrainedModel, trained: Any, fixed: Any, x: Array) -> dict[str, Array]:
    """The layers' parts of K; in one part for a callable."""
    if isinstance(model, NetworkModel):
        return empirical_ntk(model.net.with_output("linear"), merge(trained, fixed), x, per_layer=True)
    return {"": empirical_ntk(model.function, trained, x)}


Apply = Callable[[Any, Array], Array]


def kernel_velocity(
    net: Network | Apply,
    params: Any,
    x: Shaped[ArrayLike, "n ..."],
    y: Shaped[ArrayLike, "n C"],
    loss: Callable[[Array, Array], Array] | None = None,
    *,
    memory_limit: float | None = None,
) -> Float[Array, ""]:
    """Return the relative speed of the kernel at initialization.

    ‖K̇₀‖_F / ‖K₀‖_F, a scalar: the relative speed of the kernel as gradient flow of the mean loss leaves ``params``.

    K̇₀ = d/dt K(w_t) at t = 0 with dw/dt = −∇L is the derivative of the kernel of φ(f) along −∇L. A step of gradient
    descent is η units of this time. Nothing is trained; ``jax.vmap`` over ``params`` takes several draws in one batch.

    >>> w, ones = jnp.array(3.0), jnp.ones((1, 1))
    >>> kernel_velocity(lambda w, x: w**2 * x, w, ones, ones).item()  # ∇L = (9 − 1)·6, K = 4 w²: 8 w ∇L / 4 w²
    32.0

    Args:
        net: a network of this package, or any callable ``apply(params, x) -> (n, C)`` (by Jacobians).
        params: w₀.
        x: inputs (n, *input_shape).
        y: targets (n, C).
        loss: mean loss of (f, y) with the pre-outputs f of a network, or the outputs of a callable; by default what
            ``Loss`` takes for the network's output: cross-entropy for softmax, ½‖φ(f) − y‖² for any other.
        memory_limit: bytes between parameters and kernel, 4 GiB by default; beyond, rows are taken in blocks.

    Returns:
        A scalar array.

    Raises:
        InvalidInput: for a memory limit that is not above 0.

    Source: Dyer & Gur-Ari 2020; Huang & Yau 2020; docs/math/kernel-velocity.md.
    """
    net, rows, num_outputs = accepted(net, params, x)
    inputs, targets = jnp.asarray(rows), jnp.asarray(accepted_targets(y, len(rows), num_outputs))
    mean_loss = loss or Loss(net.output if isinstance(net, Network) else "linear")
    moving: Any
    outputs: Apply
    restore: Callable[[Any], Any]
    if isinstance(net, Network):
        moving, fixed = net.partition(params)
        outputs, restore = net.pre_outputs, partial(merge, fixed=fixed)
    else:
        moving, restore = split_inexact(params)
        outputs = net

    with jax.default_matmul_precision("highest"):
        slopes = jax.grad(lambda w: mean_loss(outputs(restore(w), inputs), targets))(moving)
    downhill = restore(jax.tree.map(jnp.negative, slopes))
    kernel, speed = kernel_derivative(net, params, downhill, inputs, memory_limit=memory_limit)
    return jnp.linalg.norm(speed.ravel()) / jnp.linalg.norm(kernel.ravel())
