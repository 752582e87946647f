"""Trainable models: networks, callables, and their linear models, in weight space or by kernels.

A model is a static description; its numbers are two trees, ``trained`` and ``fixed``. The same loop
trains all models (:func:`ntk_core.dynamics._descent.advance`), with the same steps and batches.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, PyTree, Shaped

from ntk_core.dynamics._linearize import first_order, second_order
from ntk_core.dynamics._losses import Loss
from ntk_core.dynamics._second_order import output_coefficients
from ntk_core.errors import InvalidInput
from ntk_core.kernels import pre_output_ntk
from ntk_core.networks.architectures import Network, NetworkParams, merge
from ntk_core.traced import Apply, linearized, through_output

BatchRows = Array | None  # indices of a batch, or None for all samples
LossAndGradient = Callable[[PyTree, BatchRows], tuple[Array, PyTree]]


class Model:
    """A model F(w; x) with a loss; hashable, hence static under ``jax.jit``."""

    loss: Loss

    def outputs(
        self, trained: PyTree, fixed: PyTree, x: Shaped[Array, "n ..."]
    ) -> Float[Array, "n C"]:
        """F, (n, C)."""
        return self.loss.model(self.pre_outputs(trained, fixed, x))

    def pre_outputs(
        self, trained: PyTree, fixed: PyTree, x: Shaped[Array, "n ..."]
    ) -> Float[Array, "n C"]:
        """f, (n, C)."""
        raise NotImplementedError(f"{type(self).__name__} has no pre-outputs of its own")

    def pack(self, trained: PyTree) -> PyTree:
        """Return the layout for training steps."""
        return trained

    def unpack(self, packed: PyTree) -> PyTree:
        """The inverse of :meth:`pack`."""
        return packed

    def stepping(self, fixed: PyTree, lead: tuple[int, ...]) -> tuple["Model", PyTree]:
        """Return the model that takes the steps by gradients, and its fixed numbers.

        ``lead`` is the shape of the seeds together; () without them.
        """
        return self, fixed

    def packed_outputs(
        self, packed: PyTree, fixed: PyTree, x: Shaped[Array, "n ..."]
    ) -> Float[Array, "n C"]:
        """F from packed parameters."""
        return self.outputs(packed, fixed, x)

    def loss_and_gradient(self, fixed: PyTree, x: Array, y: Array) -> LossAndGradient:
        """Return (packed, rows) ↦ (loss, gradient).

        Precomputes everything constant across steps.
        """

        def at(packed: PyTree, rows: BatchRows) -> tuple[Array, PyTree]:
            batch, targets = (x, y) if rows is None else (x[rows], y[rows])
            return jax.value_and_grad(
                lambda w: self.loss.of_model(self.packed_outputs(w, fixed, batch), targets)
            )(packed)

        return at

    def kernel(self, trained: PyTree, fixed: PyTree, x: Array) -> Float[Array, "n n C C"]:
        """Kernel of F, from its Jacobian."""
        jacobian = jax.jacrev(lambda w: self.outputs(w, fixed, x))(trained)
        parts = []
        for leaf in jax.tree.leaves(jacobian):
            rows = leaf.reshape(*leaf.shape[:2], -1)  # (n, C, weights)
            parts.append(jnp.einsum("iap,jbp->ijab", rows, rows, precision="highest"))
        return jnp.sum(jnp.stack(parts), axis=0)

    def loss_and_gauss_newton(self, fixed: PyTree, x: Array, y: Array) -> LossAndGradient:
        """Return (packed, None) ↦ (loss, (G + λI)⁻¹ ∇L), see :func:`output_coefficients`."""

        def at(packed: PyTree, rows: BatchRows) -> tuple[Array, PyTree]:
            outputs, pull = jax.vjp(lambda w: self.packed_outputs(w, fixed, x), packed)
            loss, cotangent = jax.value_and_grad(self.loss.of_model)(outputs, y)
            kernel = self.kernel(self.unpack(packed), fixed, x)
            coefficients = output_coefficients(self.loss, kernel, outputs, y, cotangent)
            return loss, pull(coefficients)[0]

        return at


@dataclass(frozen=True)
class NetworkModel(Model):
    """F = φ(f(w; x)), or f if the loss applies the softmax.

    ``fixed`` are frozen layers and masks.

    Attributes:
        losses: of other trainings of the same network and this one. One program of steps
            serves them all; by default this training has its own.
    """

    net: Network
    loss: Loss
    losses: tuple[Loss, ...] = ()

    def traced(
        self, trained: NetworkParams, fixed: NetworkParams
    ) -> tuple[Network | Apply, PyTree]:
        """The network without φ, and its parameters."""
        return self.net.with_output("linear"), merge(trained, fixed)

    def pre_outputs(
        self, trained: NetworkParams, fixed: NetworkParams, x: Shaped[Array, "n ..."]
    ) -> Float[Array, "n C"]:
        return self.net.pre_outputs(merge(trained, fixed), x)

    def kernel(
        self, trained: NetworkParams, fixed: NetworkParams, x: Array
    ) -> Float[Array, "n n C C"]:
        kernel, f, _ = pre_output_ntk(self.net, merge(trained, fixed), x)
        return through_output(self.loss.model_output, kernel, f, f)

    def pack(self, trained: NetworkParams) -> NetworkParams:
        layers = self.net.layers
        return {name: layers[name].pack(part) if part else part for name, part in trained.items()}

    def unpack(self, packed: NetworkParams) -> NetworkParams:
        layers = self.net.layers
        return {name: layers[name].unpack(part) if part else part for name, part in packed.items()}

    def stepping(self, fixed: PyTree, lead: tuple[int, ...]) -> tuple[Model, PyTree]:
        if not self.losses:
            return self, fixed
        number = jnp.full(lead, self.losses.index(self.loss), jnp.int32)
        return UnderLosses(self.net, self.losses), Chosen(fixed, number)

    def packed_outputs(
        self, packed: NetworkParams, fixed: NetworkParams, x: Shaped[Array, "n ..."]
    ) -> Float[Array, "n C"]:
        layers = self.net.layers

        def call(name: str, a: Array) -> Array:
            if not packed[name]:
                return layers[name].apply(fixed[name], a)
            return layers[name].apply_packed({**fixed[name], **packed[name]}, a)

        with jax.default_matmul_precision("highest"):
            return self.loss.model(self.net.body(call, x))


class Chosen(NamedTuple):
    """Fixed numbers of a network, and the number of its loss."""

    fixed: PyTree
    loss: Array


@dataclass(frozen=True)
class UnderLosses(Model):
    """Steps of a network under one of several losses, by its number: one program for all.

    ``fixed`` is a Chosen.
    """

    net: Network
    losses: tuple[Loss, ...]

    @property
    def _pre_outputs(self) -> NetworkModel:
        return NetworkModel(self.net, Loss("linear"))  # F = f, to which each loss applies its φ

    def pack(self, trained: NetworkParams) -> NetworkParams:
        return self._pre_outputs.pack(trained)

    def unpack(self, packed: NetworkParams) -> NetworkParams:
        return self._pre_outputs.unpack(packed)

    def loss_and_gradient(self, fixed: Chosen, x: Array, y: Array) -> LossAndGradient:
        def at(packed: NetworkParams, rows: BatchRows) -> tuple[Array, NetworkParams]:
            batch, targets = (x, y) if rows is None else (x[rows], y[rows])
            f, pull = jax.vjp(
                lambda w: self._pre_outputs.packed_outputs(w, fixed.fixed, batch), packed
            )
            values = []
            cotangents = []  # ∂L/∂f, (n, C) each
            for loss in self.losses:
                value, cotangent = jax.value_and_grad(loss)(f, targets)
                values.append(value)
                cotangents.append(cotangent)
            chosen = fixed.loss
            return jnp.stack(values)[chosen], pull(jnp.stack(cotangents)[chosen])[0]

        return at


@dataclass(frozen=True, eq=False)
class CallableModel(Model):
    """F = ``function(leaves, x)``, (n, C), of any function of a list of arrays.

    Nothing is fixed.
    """

    function: Callable[[list[Array], Array], Array]
    loss: Loss

    def traced(self, trained: list[Array], fixed: PyTree) -> tuple[Network | Apply, PyTree]:
        """The function, and its parameters."""
        return self.function, trained

    def pre_outputs(
        self, trained: list[Array], fixed: PyTree, x: Shaped[Array, "n ..."]
    ) -> Float[Array, "n C"]:
        with jax.default_matmul_precision("highest"):
            return self.function(trained, x)


class Origin(NamedTuple):
    """Point of linearization: w₀ and fixed values."""

    trained: PyTree
    fixed: PyTree


@dataclass(frozen=True)
class _Expansion(Model):
    model: Model

    @property
    def loss(self) -> Loss:  # type: ignore[override]
        return self.model.loss


@dataclass(frozen=True)
class TangentModel(_Expansion):
    """F_lin = F(w₀; x) + ⟨∇_w F(w₀; x), w − w₀⟩ of another model, trained in its weights.

    ``fixed`` is an Origin.

    Serves every optimizer and any number of samples; a step costs a forward derivative
    and a backward pass.
    """

    def outputs(
        self, trained: PyTree, fixed: Origin, x: Shaped[Array, "n ..."]
    ) -> Float[Array, "n C"]:
        direction = jax.tree.map(jnp.subtract, trained, fixed.trained)
        return first_order(
            lambda w: self.model.outputs(w, fixed.fixed, x), fixed.trained, direction
        )

    def kernel(self, trained: PyTree, fixed: Origin, x: Array) -> Float[Array, "n n C C"]:
        """Kernel of F at w₀: that of the linear model at any w."""
        return self.model.kernel(fixed.trained, fixed.fixed, x)

    def loss_and_gradient(self, fixed: Origin, x: Array, y: Array) -> LossAndGradient:
        """Precompute the derivative at w₀, which is constant."""

        def derivative(
            batch: Array,
        ) -> tuple[Array, Callable[[PyTree], Array], Callable[[Array], tuple[PyTree]]]:
            def outputs(w: PyTree) -> Array:
                return self.model.outputs(w, fixed.fixed, batch)

            value, push = linearized(outputs, fixed.trained)
            return value, push, jax.linear_transpose(push, fixed.trained)

        whole = derivative(x)

        def at(trained: PyTree, rows: BatchRows) -> tuple[Array, PyTree]:
            value, push, pull = whole if rows is None else derivative(x[rows])
            direction = jax.tree.map(jnp.subtract, trained, fixed.trained)
            targets = y if rows is None else y[rows]
            loss, cotangent = jax.value_and_grad(self.loss.of_model)(
                value + push(direction), targets
            )
            return loss, pull(cotangent)[0]

        return at


class Decay(NamedTuple):
    """Fixed values of a model with weight decay.

    The decay of a step is divided by its learning rate.
    """

    fixed: PyTree
    share: ArrayLike


@dataclass(frozen=True)
class DecayedModel(_Expansion):
    """Another model with weight decay: w ← (1 − decay) w − η ∇L, as ∇L + (decay / η) w.

    ``fixed`` is a Decay.
    """

    def outputs(
        self, trained: PyTree, fixed: Decay, x: Shaped[Array, "n ..."]
    ) -> Float[Array, "n C"]:
        return self.model.outputs(trained, fixed.fixed, x)

    def pack(self, trained: PyTree) -> PyTree:
        return self.model.pack(trained)

    def unpack(self, packed: PyTree) -> PyTree:
        return self.model.unpack(packed)

    def loss_and_gradient(self, fixed: Decay, x: Array, y: Array) -> LossAndGradient:
        without_decay = self.model.loss_and_gradient(fixed.fixed, x, y)

        def at(packed: PyTree, rows: BatchRows) -> tuple[Array, PyTree]:
            loss, gradient = without_decay(packed, rows)
            # Packing changes the order of weights only.
            return loss, jax.tree.map(lambda g, w: g + fixed.share * w, gradient, packed)

        return at

    def loss_and_gauss_newton(self, fixed: Decay, x: Array, y: Array) -> LossAndGradient:
        raise InvalidInput("optimizer", "gauss-newton", "another method with weight decay")


@dataclass(frozen=True)
class QuadraticModel(_Expansion):
    """F_quad = F(w₀) + ⟨∇F(w₀), δ⟩ + ½ δᵀ∇²F(w₀) δ of another model, δ = w − w₀.

    ``fixed`` is an Origin.

    With c = ∂L/∂F the gradient is ∇⟨c, F⟩ + ∇²⟨c, F⟩ δ at w₀: one Hessian-vector
    product for each step.

    Source: Zhu, Liu, Radhakrishnan & Belkin 2022.
    """

    def outputs(
        self, trained: PyTree, fixed: Origin, x: Shaped[Array, "n ..."]
    ) -> Float[Array, "n C"]:
        direction = jax.tree.map(jnp.subtract, trained, fixed.trained)
        return second_order(
            lambda w: self.model.outputs(w, fixed.fixed, x), fixed.trained, direction
        )

    def loss_and_gradient(self, fixed: Origin, x: Array, y: Array) -> LossAndGradient:
        def at(trained: PyTree, rows: BatchRows) -> tuple[Array, PyTree]:
            batch, targets = (x, y) if rows is None else (x[rows], y[rows])
            loss, cotangent = jax.value_and_grad(self.loss.of_model)(
                self.outputs(trained, fixed, batch), targets
            )

            def pulled(w: PyTree) -> PyTree:
                return jax.vjp(lambda v: self.model.outputs(v, fixed.fixed, batch), w)[1](
                    cotangent
                )[0]

            direction = jax.tree.map(jnp.subtract, trained, fixed.trained)
            slope, curvature = jax.jvp(pulled, (fixed.trained,), (direction,))
            return loss, jax.tree.map(jnp.add, slope, curvature)

        return at


class KernelAndStart(NamedTuple):
    """Kernel and initial outputs of a linear model.

    Attributes:
        kernel: K between all points (training points first) and the training points, (N, n, C, C).
        start: F(w₀) at all points, (N, C).
    """

    kernel: Array
    start: Array


@dataclass(frozen=True)
class KernelModel(Model):
    """F_lin = F(w₀) + K c with w = w₀ + ∇F(w₀)ᵀ c.

    The linear model in n·C numbers instead of its weights.

    A step of gradient descent, w ← w − η ∇F(w₀)ᵀ g with g = ∂L/∂F, is exactly c ← c − η g for any
    loss, with batches and momentum too, but not with Adam, whose steps are not linear in the
    gradient. ``fixed`` is a KernelAndStart; with the infinite-width kernel this is the
    infinite-width prediction.

    Source: Lee et al. 2019, §2.2; docs/math/linearized-training.md.
    """

    loss: Loss

    def outputs(
        self, trained: Float[Array, "n C"], fixed: KernelAndStart, x: Array
    ) -> Float[Array, "_ C"]:
        """Return F_lin at all points of ``fixed``; ``x`` is ignored."""
        with jax.default_matmul_precision("highest"):
            return fixed.start + jnp.einsum("ijab,jb->ia", fixed.kernel, trained)

    def loss_and_gradient(self, fixed: KernelAndStart, x: Array, y: Array) -> LossAndGradient:
        """Return a function to the loss and the "gradient" ∂L/∂F.

        The gradient is zero outside the batch.
        """
        n, num_outputs = y.shape
        matrix = jnp.transpose(fixed.kernel[:n], (0, 2, 1, 3)).reshape(
            n, num_outputs, n * num_outputs
        )

        def at(trained: Array, rows: BatchRows) -> tuple[Array, Array]:
            part, start, targets = (
                (each if rows is None else each[rows]) for each in (matrix, fixed.start[:n], y)
            )
            with jax.default_matmul_precision("highest"):
                outputs = start + part @ trained.reshape(-1)
            loss, cotangent = jax.value_and_grad(self.loss.of_model)(outputs, targets)
            return loss, cotangent if rows is None else jnp.zeros_like(trained).at[rows].set(
                cotangent
            )

        return at
