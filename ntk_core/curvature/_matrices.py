"""The three matrices: what they are, and the checks of model, loss and data."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Float, PyTree

from ntk_core.curvature._operator import CurvatureOperator, MeanLoss, OwnLoss, Request
from ntk_core.dynamics import Loss, LossOfParameters, accepted_loss
from ntk_core.dynamics.choices import LOSSES
from ntk_core.errors import InvalidInput, kind_of
from ntk_core.kernels import refuse_traced
from ntk_core.networks.architectures import Network
from ntk_core.traced import (
    Apply,
    Inputs,
    Rows,
    Trainable,
    refuse_asymmetric,
    with_usual_settings,
)

LossGiven = str | MeanLoss
ROWS_TRIED = 4  # of random outputs, at which a loss must have a second derivative


@with_usual_settings
def loss_hessian(
    net: Network | Apply,
    params: PyTree,
    x: Inputs,
    y: Float[ArrayLike, "n C"],
    loss: LossGiven = "",
    *,
    trainable: Trainable = None,
) -> CurvatureOperator:
    """Return the Hessian of a training loss as an operator.

    H = ∂²L/∂w² of L(w) = (1/n) Σ_i ℓ(f(x_i; w), y_i), (p, p), in all trained parameters.

    H = Jᵀ ∂²L/∂F² J + Σ_ia ∂L/∂F_ia ∂²F_ia/∂w²: the first part is :func:`gauss_newton`.

    >>> w, ones = jnp.array([3.0]), jnp.ones((1, 1))
    >>> hessian = loss_hessian(lambda w, x: x @ w[:, None] ** 2, w, ones, ones)  # L = (w² − 1)²/2
    >>> round(hessian.norm().eigenvalue, 3)
    52.0

    Args:
        net: a network, or any callable ``apply(params, x)`` with outputs (n, C), (n,) or (n, T, C).
        params: w.
        x: inputs (n, *input_shape).
        y: targets, of the shape of the outputs.
        loss: one of ``LOSSES``, such as ``square`` or ``cross-entropy``, by default that of the
            output; or a function (F, y) → the mean loss of outputs F and targets y, both (n, C).
        trainable: the parameters w of this matrix, as for ``empirical_ntk``; all
            others are constants.

    Returns:
        An operator with ``norm``, ``eigenpairs``, ``density``, ``trace`` and products.

    Raises:
        InvalidInput: for incompatible model, data or loss, for a loss without a second derivative
            (with its name), and for second derivatives that are not symmetric, as with
            straight-through estimators.

    Source: Pearlmutter 1994.
    """
    request, rows, targets = _asked("hessian", net, params, x, y, loss, trainable)
    value = LossOfParameters(request.apply, request.loss)
    refuse_asymmetric(request.apply, params, rows, targets, value)
    return CurvatureOperator(request, params, rows, targets)


@with_usual_settings
def gauss_newton(
    net: Network | Apply,
    params: PyTree,
    x: Inputs,
    y: Float[ArrayLike, "n C"],
    loss: LossGiven = "",
    *,
    trainable: Trainable = None,
) -> CurvatureOperator:
    """Return the Gauss–Newton matrix of a training loss as an operator.

    G = Jᵀ ∂²L/∂F² J, (p, p): the loss Hessian without second derivatives of the network.

    It is positive semidefinite for the losses of ``LOSSES``, which are convex in F, and has the
    nonzero eigenvalues of K/n for the square loss.

    >>> w, ones = jnp.array([3.0]), jnp.ones((1, 1))
    >>> round(gauss_newton(lambda w, x: x @ w[:, None] ** 2, w, ones, ones).norm().value, 3)
    36.0

    Args:
        net, params, x, y, loss, trainable: as for :func:`loss_hessian`.

    Returns:
        An operator, as :func:`loss_hessian`.

    Raises:
        InvalidInput: as :func:`loss_hessian`.

    Source: Schraudolph 2002.
    """
    request, rows, targets = _asked("gauss-newton", net, params, x, y, loss, trainable)
    return CurvatureOperator(request, params, rows, targets)


@with_usual_settings
def fisher(
    net: Network | Apply,
    params: PyTree,
    x: Inputs,
    y: Float[ArrayLike, "n C"] | None = None,
    loss: LossGiven = "",
    *,
    empirical: bool = False,
    trainable: Trainable = None,
) -> CurvatureOperator:
    """Return the Fisher information of a model as an operator.

    F = (1/n) Σ_i E_y ∇log p(y | x_i) ∇log p(y | x_i)ᵀ, (p, p), with targets y drawn from the model.

    The loss states the distribution: a normal one of variance 1 around F for ``square``,
    classes with probabilities softmax(F) for ``cross-entropy``, signs for ``logistic``.
    Then F is the Gauss–Newton matrix, without sampling. The empirical one takes the
    gradients at the given targets.

    >>> w, ones = jnp.array([3.0]), jnp.ones((1, 1))
    >>> round(fisher(lambda w, x: x @ w[:, None] ** 2, w, ones, loss="square").norm().value, 3)
    36.0

    Args:
        net, params, x, trainable: as for :func:`loss_hessian`.
        y: targets, of the empirical Fisher information alone.
        loss: one of ``LOSSES``; by default that of the output.
        empirical: return (1/n) Σ_i ∇ℓ_i ∇ℓ_iᵀ of the given targets instead.

    Returns:
        An operator, as :func:`loss_hessian`.

    Raises:
        InvalidInput: as :func:`loss_hessian`; for a loss that is no negative log-likelihood, and
            for the empirical one without targets.

    Source: Amari 1998; Martens 2020; Kunstner, Balles & Hennig 2019 (empirical).
    """
    if not isinstance(loss, str):
        raise InvalidInput("loss", kind_of(loss), "the name of a loss, which states a distribution")
    if empirical:
        if y is None:
            raise InvalidInput("y", None, "the targets (n, C), with empirical=True")
        request, rows, targets = _asked("empirical-fisher", net, params, x, y, loss, trainable)
        return CurvatureOperator(request, params, rows, targets)
    refuse_traced((params, x), "x")
    found = accepted_loss(net, params, x, loss, trainable)
    term = LOSSES[found.loss.kind]
    if not term.is_likelihood:
        allowed = [each.name for each in LOSSES.values() if each.is_likelihood]
        raise InvalidInput("loss", term.name, f"{', '.join(allowed)}; or empirical=True")
    # Its curvature in F is the same for all targets.
    targets = np.zeros((len(found.x), found.num_outputs))
    if term.targets == "one-hot":
        targets[:, 0] = 1
    elif term.targets == "plus-minus":
        targets += 1
    request, rows, targets = _asked("gauss-newton", net, params, x, targets, loss, trainable)
    return CurvatureOperator(request._replace(matrix="fisher"), params, rows, targets)


def _asked(
    matrix: str,
    net: Network | Apply,
    params: PyTree,
    x: Inputs,
    y: ArrayLike,
    loss: LossGiven,
    trainable: Trainable,
) -> tuple[Request, Rows, Rows]:
    """Return (validated request, inputs, targets)."""
    refuse_traced((params, x, y), "x")
    own = None if isinstance(loss, str) else loss
    if own is not None and not callable(own):
        raise InvalidInput("loss", kind_of(own), f"a function, or one of {', '.join(LOSSES)}")
    found = accepted_loss(net, params, x, loss if isinstance(loss, str) else "square", trainable)
    targets = found.targets(y)
    rule = found.loss if own is None else OwnLoss(found.loss.output, own)
    if matrix != "empirical-fisher":
        name = found.loss.kind if own is None else getattr(own, "__name__", repr(own))
        _refuse_flat(rule, name, targets, found.num_outputs)
    return Request(matrix, found.model, found.apply, rule), found.x, targets


def _refuse_flat(rule: Loss | OwnLoss, name: str, targets: Rows, num_outputs: int) -> None:
    """Refuse a loss without a curvature.

    It is no scalar, or its second derivative in the outputs is 0 wherever it exists.
    """
    rows = jnp.asarray(targets[:ROWS_TRIED])
    rng = np.random.default_rng(0)
    outputs = jnp.asarray(rng.standard_normal(rows.shape), rows.dtype)
    direction = jnp.asarray(rng.standard_normal(rows.shape), rows.dtype)
    shape = jax.eval_shape(rule.of_model, outputs, rows).shape
    if shape:
        raise InvalidInput("loss", f"{name} with results of shape {shape}", "a mean loss, a scalar")
    slopes = jax.grad(lambda each: rule.of_model(each, rows))
    _, curved = jax.jvp(slopes, (outputs,), (direction,))
    if not np.any(np.asarray(curved)):
        allowed = [each.name for each in LOSSES.values() if each.is_likelihood]
        raise InvalidInput(
            "loss",
            f"{name}, whose second derivative is 0 for {num_outputs} outputs",
            f"a loss with a second derivative, such as {', '.join(allowed)}",
        )
