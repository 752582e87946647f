"""Networks on graphs, one width at a time.

Training, kernels, Hessian norms, smallest eigenvalues.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import PyTree

from linearity_lab.data import Dataset
from linearity_lab.experiments.dag.point import (
    DRAWN,
    MAX_MATVECS,
    DAGPoint,
    DAGRun,
    DAGSpec,
    LayerLinearity,
)
from linearity_lab.experiments.kernel_change.compute import PreOutputsAtStart
from linearity_lab.experiments.kernel_change.linear_model import MAX_ROWS
from linearity_lab.experiments.train_options import train_options
from ntk_core.dynamics import (
    Descent,
    KernelChangeMeasure,
    Loss,
    Measure,
    RecordedChange,
    descend,
    eigenvalues,
    network_of_seeds,
    softmax_changes,
)
from ntk_core.errors import InvalidInput
from ntk_core.hessians import SpectralEstimate, hessian_norm, smallest_eigenvalue_in_ball
from ntk_core.kernels import empirical_ntk, gradient_norm_bound, kernel_change, unchecked_ntk
from ntk_core.networks.architectures import DAGNetwork, PreActivations, merge
from ntk_core.networks.graphs import OUTPUT, Graph
from ntk_core.networks.keys import initial_key
from ntk_core.progress import Progress

# Of ‖H‖; at 0.02, one norm in thirty is that of another eigenvalue, up to 14% smaller.
TOLERANCE = 1e-3


def compute(spec: DAGSpec, data: Dataset, key: str, progress: Progress) -> DAGPoint:
    """Compute one width, all graphs, outputs and seeds."""
    width = spec.value_of(key)
    plan = [
        (name, graph, output, seed)
        for name, graph in spec.graphs().items()
        for output in spec.outputs
        for seed in spec.seeds
    ]
    runs = []
    for index, one in enumerate(plan):
        runs.append(_run(spec, data, width, *one, progress.part(index, len(plan))))
    num_params = _network(spec, spec.graph, spec.outputs[0], width, data).num_params(
        data.input_shape
    )
    return DAGPoint(width=width, num_params=num_params, runs=tuple(runs))


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


def _run(
    spec: DAGSpec,
    data: Dataset,
    width: int,
    name: str,
    graph: Graph,
    output: str,
    seed: int,
    progress: Progress,
) -> DAGRun:
    """Measure one network at w₀, then train it."""
    line = output if name == DRAWN else f"{name}, {output}"
    progress = progress.named(f"width {width:,}: {line} output")
    progress.report(0.0, "initial kernel")
    net = _network(spec, graph, output, width, data)
    x = jnp.asarray(data.x)
    params = net.init(initial_key(seed, width), data.input_shape)
    norm, is_norm_converged = _mean_norm(spec, net, params, x, progress)
    groups = _groups(spec, net, params, x, progress)
    ball = _ball_eigenvalue(spec, net, params, x, progress.between(0.3, 0.4))

    change = KernelChangeMeasure((output,))
    spectrum = _Spectrum(output)
    moved = _ViewChange(groups, x)
    at_start = PreOutputsAtStart()
    together = jax.tree.map(lambda leaf: leaf[None], params)  # one seed, (1, …)
    models = network_of_seeds(net, together, x, data.y, Loss(output))
    options = train_options(spec.training, together=True)
    measures = [change, spectrum, moved, at_start]
    descend(*models, options, measures, progress.between(0.4, 1.0))

    recorded = change.result()[output][0]
    of_linear_model: tuple[float, ...] = ()
    if output == "softmax" and len(x) * net.num_outputs <= MAX_ROWS:
        of_linear_model = _softmax_of_linear_model(change, at_start, data, recorded)
    fewest, most = net.in_degree_range(params)
    are_groups_converged = all(group.is_converged for group in groups.values())
    return DAGRun.read_off(
        recorded,
        graph=name,
        output=output,
        seed=seed,
        min_in_degree=fewest,
        max_in_degree=most,
        smallest_eigenvalue=spectrum.result(),
        hessian_norm=norm,
        hessian_converged=is_norm_converged and are_groups_converged,
        layers=_with_changes(groups, moved.result()),
        ball_eigenvalue=ball,
        gradient_norm=spectrum.first_square,
        gradient_bound=_gradient_bound(net, np.asarray(x)),
        linear_model_change=of_linear_model,
    )


def _mean_norm(
    spec: DAGSpec, net: DAGNetwork, params: PyTree, x: Array, progress: Progress
) -> tuple[float, bool]:
    """Return the mean of ‖H‖ over inputs, and whether all converged; NaN without any input."""
    norms = []
    for index in range(spec.num_hessians):
        progress.report(0.1, f"Hessian norm {index + 1}")
        norms.append(_norm_of(net, params, x[index % len(x)]))
    if not norms:
        return math.nan, True
    mean = float(np.mean([each.value for each in norms]))
    have_converged = all(each.converged for each in norms)
    return mean, have_converged


def _ball_eigenvalue(
    spec: DAGSpec, net: DAGNetwork, params: PyTree, x: Array, progress: Progress
) -> float:
    """Smallest eigenvalue of the kernel in the ball around w₀; NaN without a ball."""
    if not spec.ball_radius:
        return math.nan
    progress = progress.named("smallest eigenvalue in the ball")
    progress.report(0.0)
    return smallest_eigenvalue_in_ball(net, params, x, spec.ball_radius, progress=progress).value


def _softmax_of_linear_model(
    change: KernelChangeMeasure,
    at_start: PreOutputsAtStart,
    data: Dataset,
    recorded: RecordedChange,
) -> tuple[float, ...]:
    """ΔK of a softmax output of the linear model, at the records of the only seed."""
    assert change.kernel is not None
    assert at_start.pre_outputs is not None
    kernel = change.kernel[0]
    pre_outputs = at_start.pre_outputs[0]
    return softmax_changes(kernel, pre_outputs, data.y, recorded.learning_rate, recorded.steps)


def _norm_of(
    model: DAGNetwork | PreActivations, params: PyTree, x: Array, *, batched: bool | None = None
) -> SpectralEstimate:
    """Return ‖H‖ of an input, or of each of several, with the accuracy of this page."""
    return hessian_norm(
        model,
        params,
        x,
        batched=batched,
        tolerance=TOLERANCE,
        max_matvecs=MAX_MATVECS,
        repeated=False,
    )


class _Group(NamedTuple):
    """The pre-activations of a group of neurons at w₀."""

    linearity: LayerLinearity
    view: PreActivations
    first_kernel: Array
    is_converged: bool  # its norms


def _with_changes(
    groups: Mapping[str, _Group], largest: Mapping[str, float]
) -> tuple[LayerLinearity, ...]:
    """Return what was measured of each group, with its largest change in training."""
    layers = []
    for title, group in groups.items():
        layers.append(group.linearity.model_copy(update={"change": largest[title]}))
    return tuple(layers)


def _groups(
    spec: DAGSpec, net: DAGNetwork, params: PyTree, x: Array, progress: Progress
) -> dict[str, _Group]:
    """Measure ‖H‖ of one neuron and the kernel of two: neurons of a group are exchangeable."""
    groups: dict[str, _Group] = {}
    if not spec.pre_activations:
        return groups
    inputs = x[: max(1, spec.num_hessians)]
    for name, depth in net.depths.items():
        progress.report(0.2, f"pre-activations of {name}")
        num_neurons = net.num_outputs if name == OUTPUT else net.sizes[name]
        view = PreActivations(net, name, tuple(range(min(2, num_neurons))))
        found = _norm_of(view, params, inputs, batched=True)
        linearity = LayerLinearity(
            group=name, depth=depth, hessian_norm=float(found.value.mean()), change=0.0
        )
        is_converged = bool(found.converged.all())
        groups[name] = _Group(linearity, view, empirical_ntk(view, params, x), is_converged)
    return groups


class _Spectrum(Measure[tuple[float, ...]]):
    """λ_min of the kernel under an output.

    Attributes:
        first_square: mean ‖∇f‖² of the first output at w₀.
    """

    def __init__(self, output: str):
        self.first_square = math.nan
        self._output = output
        self._smallest: list[float] = []

    def record(self, step: int, models: Mapping[str, Descent]) -> None:
        kernel = models["network"].kernels_of((self._output,))[self._output][0]
        if not self._smallest:
            self.first_square = float(jnp.mean(jnp.einsum("iiaa->ia", kernel)[:, 0]))
        self._smallest.append(float(eigenvalues(kernel)[-1]))

    def result(self) -> tuple[float, ...]:
        """λ_min at the recorded steps."""
        return tuple(self._smallest)


class _ViewChange(Measure[dict[str, float]]):
    """Largest kernel change of the pre-activations of each group."""

    def __init__(self, groups: Mapping[str, _Group], x: Array):
        self._groups = groups
        self._x = x
        self._largest = dict.fromkeys(groups, 0.0)

    def record(self, step: int, models: Mapping[str, Descent]) -> None:
        if not step or not self._groups:
            return
        network = models["network"]
        params = merge(network.trained, network.fixed)
        now = jax.tree.map(lambda leaf: leaf[0], params)
        for name, group in self._groups.items():
            kernel = unchecked_ntk(group.view, now, self._x)
            change = float(kernel_change(kernel, group.first_kernel))
            self._largest[name] = max(self._largest[name], change)

    def result(self) -> dict[str, float]:
        """The largest change so far, by group."""
        return dict(self._largest)


def _gradient_bound(net: DAGNetwork, x: np.ndarray) -> float:
    """Mean over the inputs, NaN beyond the assumptions of Proposition 4.4."""
    try:
        return float(np.mean([gradient_norm_bound(net, row) for row in x]))
    except InvalidInput:
        return math.nan
