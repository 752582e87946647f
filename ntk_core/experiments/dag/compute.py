"""Networks on graphs, one width at a time: training, kernels, Hessian norms, smallest eigenvalues."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ntk_core.data import Dataset, data_fingerprint, load_dataset
from ntk_core.dynamics import Loss, auto_learning_rate, descend, eigenvalues, record_steps, start
from ntk_core.errors import InvalidInput
from ntk_core.experiments.dag.costs import MAX_MATVECS
from ntk_core.experiments.dag.result import DAGPoint, DAGRun, LayerLinearity
from ntk_core.experiments.dag.spec import DAGSpec
from ntk_core.hessians import hessian_norm, hessian_norms, smallest_eigenvalue_in_ball
from ntk_core.kernels import empirical_ntk, gradient_norm_bound, kernel_change, pre_output_ntk, through_output
from ntk_core.networks.architectures import DAGNetwork, NetworkParams, PreActivations, merge
from ntk_core.networks.graphs import OUTPUT, Graph
from ntk_core.runs import Outcome, Progress

TOLERANCE = 0.02  # of ‖H‖: far below its spread over inputs and seeds


def load(spec: DAGSpec) -> Dataset:
    """The data of the spec."""
    return load_dataset(spec.dataset.name, **spec.dataset.options())


def fingerprint(data: Dataset) -> str:
    """SHA-256 of the data, for the provenance."""
    return data_fingerprint(data)


def compute(spec: DAGSpec, data: Dataset, key: str) -> Generator[Progress, None, DAGPoint]:
    """All graphs, outputs and seeds of one width; yields (fraction, message) between stretches of work."""
    began, width = time.monotonic(), spec.value_of(key)
    todo = [
        (name, graph, output, seed)
        for name, graph in spec.graphs().items()
        for output in spec.outputs
        for seed in range(spec.seed, spec.seed + spec.num_seeds)
    ]
    runs = []
    for index, (name, graph, output, seed) in enumerate(todo):
        one = _Run(spec, data, name, graph, output, width, seed)
        for share, message in one.work():
            yield (index + share) / len(todo), f"width {width:,}: {message}"
        runs.append(one.result())
    num_params = _network(spec, spec.graph, spec.outputs[0], width, data).num_params(data.input_shape)
    return DAGPoint(width=width, num_params=num_params, runs=tuple(runs), runtime_s=time.monotonic() - began)


def _network(spec: DAGSpec, graph: Graph, output: str, width: int, data: Dataset) -> DAGNetwork:
    return DAGNetwork(
        width=width,
        groups=graph.groups,
        edges=graph.edges,
        num_outputs=data.num_outputs,
        activation=spec.activation,
        output=output,
        use_bias=spec.use_bias,
    )


class _Run:
    """One network: what is measured at w₀, then its training."""

    def __init__(
        self, spec: DAGSpec, data: Dataset, name: str, graph: Graph, output: str, width: int, seed: int
    ) -> None:
        self.spec, self.name, self.output, self.seed = spec, name, output, seed
        self.net = _network(spec, graph, output, width, data)
        self.x, self.y = jnp.asarray(data.x), jnp.asarray(data.y)
        self.params = self.net.init(jax.random.key(seed), data.input_shape)
        self.in_degrees = self.net.in_degree_range(self.params)
        self.loss = Loss(output)
        self.norms: list[float] = []
        self.converged = True
        self.layer_norms: dict[str, float] = {}
        self.layer_changes: dict[str, float] = {}
        self.ball_eigenvalue = math.nan
        self.history: list[tuple[int, float, float, float]] = []

    def work(self) -> Iterator[Progress]:
        """Everything, in order; (share, message) before each stretch."""
        what = self.output if self.name == "drawn" else f"{self.name}, {self.output}"
        yield 0.0, f"{what} output, first kernel"
        self._first()
        for index in range(self.spec.num_hessians):
            yield 0.1, f"{what} output, Hessian norm {index + 1}"
            self._hessian(index)
        if self.spec.pre_activations:
            for name in self.net.depths:
                yield 0.2, f"{what} output, pre-activations of {name}"
                self._layer(name)
        if self.spec.ball_radius:
            yield 0.3, f"{what} output, smallest eigenvalue in the ball"
            self._ball()
        for step in self._training():
            share = math.log1p(step) / math.log1p(self.spec.training.max_steps)
            yield 0.4 + 0.6 * share, f"{what} output, step {step:,}"

    def result(self) -> DAGRun:
        """The run."""
        steps, change, loss, smallest = zip(*self.history, strict=True)
        return DAGRun(
            graph=self.name,
            output=self.output,
            seed=self.seed,
            min_in_degree=self.in_degrees[0],
            max_in_degree=self.in_degrees[1],
            learning_rate=self.rate,
            outcome=self._outcome() or ("diverged" if loss[-1] > loss[0] else "over-budget"),
            steps=steps,
            change=tuple(map(_rounded, change)),
            loss=tuple(map(_rounded, loss)),
            smallest_eigenvalue=tuple(map(_rounded, smallest)),
            hessian_norm=float(np.mean(self.norms)) if self.norms else math.nan,
            hessian_converged=self.converged,
            layers=tuple(
                LayerLinearity(
                    group=name,
                    depth=self.net.depths[name],
                    hessian_norm=norm,
                    change=self.layer_changes[name],
                )
                for name, norm in self.layer_norms.items()
            ),
            ball_eigenvalue=self.ball_eigenvalue,
            gradient_norm=self.gradient_norm,
            gradient_bound=self.gradient_bound,
        )

    def _first(self) -> None:
        before, self.kernel, loss = _kernels(self.net, self.loss, self.params, self.x, self.y)
        given = self.spec.training.learning_rate
        self.rate = auto_learning_rate(before, self.loss) if given == "auto" else float(given)
        self.gradient_norm = float(jnp.mean(jnp.einsum("iiaa->ia", self.kernel)[:, 0]))
        self.gradient_bound = _gradient_bound(self.net, np.asarray(self.x))
        self.history.append((0, 0.0, float(loss), float(eigenvalues(self.kernel)[-1])))

    def _hessian(self, index: int) -> None:
        found = hessian_norm(
            self.net, self.params, self.x[index % len(self.x)], tolerance=TOLERANCE, max_matvecs=MAX_MATVECS
        )
        self.norms.append(found.value)
        self.converged &= found.converged

    def _layer(self, name: str) -> None:
        """‖H‖ of one neuron, over the inputs, and the kernel of two at w₀; the others are alike by symmetry."""
        count = self.net.num_outputs if name == OUTPUT else self.net.sizes[name]
        pair = tuple(range(min(2, count)))
        view = PreActivations(self.net, name, pair)
        inputs = self.x[: max(1, self.spec.num_hessians)]
        found = hessian_norms(view, self.params, inputs, tolerance=TOLERANCE, max_matvecs=MAX_MATVECS)
        self.layer_norms[name], self.layer_changes[name] = float(found.value.mean()), 0.0
        self.converged &= bool(found.converged.all())
        self.layer_kernels = getattr(self, "layer_kernels", {})
        self.layer_kernels[name] = (view, empirical_ntk(view, self.params, self.x))

    def _ball(self) -> None:
        found = smallest_eigenvalue_in_ball(
            self.net, self.params, self.x, self.spec.ball_radius, num_starts=1, num_steps=4
        )
        self.ball_eigenvalue = found.value

    def _training(self) -> Iterator[int]:
        settings = self.spec.training
        trained, fixed = self.net.partition(self.params)
        state = start(jax.tree.map(jnp.copy, trained))
        rate = jnp.asarray(self.rate if math.isfinite(self.rate) else 0.0)
        for until in record_steps(settings.max_steps, settings.num_records):
            if self._outcome():
                return
            state = descend(
                self.net,
                self.loss,
                state,
                fixed,
                self.x,
                self.y,
                rate,
                jnp.asarray(until, jnp.int32),
                jnp.asarray(settings.loss_threshold),
            )
            self._record(merge(state.trained, fixed), int(state.step))
            yield until

    def _record(self, params: NetworkParams, step: int) -> None:
        _, kernel, loss = _kernels(self.net, self.loss, params, self.x, self.y)
        change = float(kernel_change(kernel, self.kernel))
        self.history.append((step, change, float(loss), float(eigenvalues(kernel)[-1])))
        for name in self.layer_changes:
            view, before = self.layer_kernels[name]
            moved = float(kernel_change(empirical_ntk(view, params, self.x), before))
            self.layer_changes[name] = max(self.layer_changes[name], moved)

    def _outcome(self) -> Outcome | None:
        loss = self.history[-1][2]
        if not (math.isfinite(loss) and math.isfinite(self.rate)):
            return "diverged"
        return "converged" if loss <= self.spec.training.loss_threshold else None


@partial(jax.jit, static_argnums=(0, 1))
def _kernels(net: DAGNetwork, loss: Loss, params: NetworkParams, x: Array, y: Array) -> tuple[Array, Array, Array]:
    """(kernel of the pre-outputs, kernel of the outputs, loss)."""
    before, f, _ = pre_output_ntk(net, params, x)
    return before, through_output(net.output, before, f, f), loss(f, y)


def _gradient_bound(net: DAGNetwork, x: np.ndarray) -> float:
    """Mean over the inputs, NaN beyond the assumptions of Proposition 4.4."""
    try:
        return float(np.mean([gradient_norm_bound(net, row) for row in x]))
    except InvalidInput:
        return math.nan


def _rounded(value: float) -> float:
    """Five digits, enough to draw and a third of the size."""
    return float(f"{value:.5g}")
