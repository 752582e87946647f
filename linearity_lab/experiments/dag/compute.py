"""Networks on graphs, one width at a time: training, kernels, Hessian norms, smallest eigenvalues."""

import math
from collections.abc import Mapping
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

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
    descend,
    eigenvalues,
    network_of_seeds,
    softmax_changes,
)
from ntk_core.errors import InvalidInput
from ntk_core.hessians import hessian_norm, smallest_eigenvalue_in_ball
from ntk_core.kernels import empirical_ntk, gradient_norm_bound, kernel_change, unchecked_ntk
from ntk_core.networks.architectures import DAGNetwork, PreActivations, merge
from ntk_core.networks.graphs import OUTPUT, Graph
from ntk_core.networks.keys import initial_key
from ntk_core.progress import Progress

TOLERANCE = (
    1e-3  # of ‖H‖; at 0.02, one norm in thirty is that of another eigenvalue, up to 14% smaller
)


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
    norm_of = partial(hessian_norm, tolerance=TOLERANCE, max_matvecs=MAX_MATVECS, repeated=False)
    layers: dict[str, LayerLinearity] = {}
    views: dict[str, PreActivations] = {}
    first_kernels: dict[str, Array] = {}  # of the views, at w₀
    together = jax.tree.map(lambda leaf: leaf[None], params)
    norms, converged, ball = [], True, math.nan
    for index in range(spec.num_hessians):
        progress.report(0.1, f"Hessian norm {index + 1}")
        norms.append(norm_of(net, params, x[index % len(x)]))
    for group in net.depths if spec.pre_activations else ():
        progress.report(0.2, f"pre-activations of {group}")
        # ‖H‖ of one neuron, and the kernel of two: neurons of a group are exchangeable.
        count = net.num_outputs if group == OUTPUT else net.sizes[group]
        view = PreActivations(net, group, tuple(range(min(2, count))))
        found = norm_of(view, params, x[: max(1, spec.num_hessians)], batched=True)
        norm = float(found.value.mean())
        layers[group] = LayerLinearity(
            group=group, depth=net.depths[group], hessian_norm=norm, change=0.0
        )
        converged &= bool(found.converged.all())
        views[group] = view
        first_kernels[group] = empirical_ntk(view, params, x)
    if spec.ball_radius:
        of_ball = progress.between(0.3, 0.4).named("smallest eigenvalue in the ball")
        of_ball.report(0.0)
        lowest = smallest_eigenvalue_in_ball(net, params, x, spec.ball_radius, progress=of_ball)
        ball = lowest.value
    change = KernelChangeMeasure((output,))
    spectrum = _Spectrum(output)
    moved = _ViewChange(views, first_kernels, x)
    models = network_of_seeds(net, together, x, data.y, Loss(output))
    options = train_options(spec.training, together=True)
    at_start = PreOutputsAtStart()
    measures = [change, spectrum, moved, at_start]
    descend(*models, options, measures, progress.between(0.4, 1.0))
    for group, largest in moved.result().items():
        layers[group] = layers[group].model_copy(update={"change": largest})
    fewest, most = net.in_degree_range(params)
    recorded = change.result()[output][0]
    of_linear_model: tuple[float, ...] = ()
    if output == "softmax" and len(x) * net.num_outputs <= MAX_ROWS:
        assert change.kernel is not None
        assert at_start.pre_outputs is not None
        of_linear_model = softmax_changes(
            change.kernel[0],
            at_start.pre_outputs[0],
            data.y,
            recorded.learning_rate,
            recorded.steps,
        )
    return DAGRun.read_off(
        recorded,
        graph=name,
        output=output,
        seed=seed,
        min_in_degree=fewest,
        max_in_degree=most,
        smallest_eigenvalue=spectrum.result(),
        hessian_norm=float(np.mean([each.value for each in norms])) if norms else math.nan,
        hessian_converged=converged and all(each.converged for each in norms),
        layers=tuple(layers.values()),
        ball_eigenvalue=ball,
        gradient_norm=spectrum.first_square,
        gradient_bound=_gradient_bound(net, np.asarray(x)),
        linear_model_change=of_linear_model,
    )


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

    def __init__(self, views: dict[str, PreActivations], first: dict[str, Array], x: Array):
        self._views = views
        self._first = first
        self._x = x
        self._largest = dict.fromkeys(views, 0.0)

    def record(self, step: int, models: Mapping[str, Descent]) -> None:
        if not step or not self._views:
            return
        network = models["network"]
        params = merge(network.trained, network.fixed)
        now = jax.tree.map(lambda leaf: leaf[0], params)
        for group, view in self._views.items():
            kernel = unchecked_ntk(view, now, self._x)
            change = float(kernel_change(kernel, self._first[group]))
            self._largest[group] = max(self._largest[group], change)

    def result(self) -> dict[str, float]:
        """The largest change so far, by group."""
        return dict(self._largest)


def _gradient_bound(net: DAGNetwork, x: np.ndarray) -> float:
    """Mean over the inputs, NaN beyond the assumptions of Proposition 4.4."""
    try:
        return float(np.mean([gradient_norm_bound(net, row) for row in x]))
    except InvalidInput:
        return math.nan
