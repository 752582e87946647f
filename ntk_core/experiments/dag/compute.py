"""Networks on graphs, one width at a time: training, kernels, Hessian norms, smallest eigenvalues."""

import math
from collections.abc import Generator

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ntk_core.data import Dataset
from ntk_core.dynamics import KernelTraining, Loss, eigenvalues
from ntk_core.errors import InvalidInput
from ntk_core.experiments.dag import MAX_MATVECS, DAGPoint, DAGRun, DAGSpec, LayerLinearity
from ntk_core.hessians import hessian_norm, smallest_eigenvalue_in_turn
from ntk_core.kernels import empirical_ntk, gradient_norm_bound, kernel_change
from ntk_core.networks.architectures import DAGNetwork, NetworkParams, PreActivations
from ntk_core.networks.build import initial_key
from ntk_core.networks.graphs import OUTPUT, Graph
from ntk_core.runs import Progress, by_steps, one_after_another

TOLERANCE = 0.02  # of ‖H‖: far below its spread over inputs and seeds


def compute(spec: DAGSpec, data: Dataset, key: str) -> Generator[Progress, None, DAGPoint]:
    """All graphs, outputs and seeds of one width; yields (fraction, message) between stretches of work."""
    width = spec.value_of(key)
    plan = [
        (name, graph, output, seed)
        for name, graph in spec.graphs().items()
        for output in spec.outputs
        for seed in spec.seeds
    ]
    runs = yield from one_after_another([_Run(spec, data, width, *one).work() for one in plan])
    num_params = _network(spec, spec.graph, spec.outputs[0], width, data).num_params(data.input_shape)
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


class _Run:
    """One network: what is measured at w₀, then its training."""

    params: NetworkParams
    gradient_norm: float

    def __init__(
        self, spec: DAGSpec, data: Dataset, width: int, name: str, graph: Graph, output: str, seed: int
    ) -> None:
        self.spec, self.width, self.name, self.output, self.seed = spec, width, name, output, seed
        self.net = _network(spec, graph, output, width, data)
        self.x, self.y = jnp.asarray(data.x), jnp.asarray(data.y)
        self.input_shape = data.input_shape
        self.norms: list[float] = []
        self.converged = True
        self.layer_norms: dict[str, float] = {}
        self.layer_kernels: dict[str, tuple[PreActivations, Array]] = {}
        self.layer_changes: dict[str, float] = {}
        self.smallest: list[float] = []
        self.ball_eigenvalue = math.nan

    def work(self) -> Generator[Progress, None, DAGRun]:
        """Everything, in order; (share, message) before each stretch."""
        what = self.output if self.name == "drawn" else f"{self.name}, {self.output}"
        what = f"width {self.width:,}: {what} output"
        yield 0.0, f"{what}, initial kernel"
        self.params = self.net.init(initial_key(self.seed, self.width), self.input_shape)
        together = jax.tree.map(lambda leaf: leaf[None], self.params)
        settings = self.spec.training.model_dump()
        training = KernelTraining(
            self.net, together, self.x, self.y, Loss(self.output), (self.output,), watch=self._watch, **settings
        )
        del together
        for index in range(self.spec.num_hessians):
            yield 0.1, f"{what}, Hessian norm {index + 1}"
            self._hessian(index)
        if self.spec.pre_activations:
            for name in self.net.depths:
                yield 0.2, f"{what}, pre-activations of {name}"
                self._layer(name)
        if self.spec.ball_radius:
            descents = smallest_eigenvalue_in_turn(self.net, self.params, self.x, self.spec.ball_radius)
            yield 0.3, f"{what}, smallest eigenvalue in the ball"
            for index, found in enumerate(descents):
                self.ball_eigenvalue = found.value
                yield 0.3, f"{what}, smallest eigenvalue in the ball, descent {index + 1}"
        yield from by_steps(training.stretches(), self.spec.training.max_steps, what, first=0.4)
        return self._result(training)

    def _result(self, training: KernelTraining) -> DAGRun:
        fewest, most = self.net.in_degree_range(self.params)
        return DAGRun.read_off(
            self,
            graph=self.name,
            min_in_degree=fewest,
            max_in_degree=most,
            smallest_eigenvalue=tuple(self.smallest),
            hessian_norm=float(np.mean(self.norms)) if self.norms else math.nan,
            hessian_converged=self.converged,
            layers=tuple(
                LayerLinearity(
                    group=name, depth=self.net.depths[name], hessian_norm=norm, change=self.layer_changes[name]
                )
                for name, norm in self.layer_norms.items()
            ),
            gradient_bound=_gradient_bound(self.net, np.asarray(self.x)),
            **training.recorded(0, self.output),
        )

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
        found = hessian_norm(view, self.params, inputs, tolerance=TOLERANCE, max_matvecs=MAX_MATVECS, batched=True)
        self.layer_norms[name], self.layer_changes[name] = float(found.value.mean()), 0.0
        self.converged &= bool(found.converged.all())
        self.layer_kernels[name] = (view, empirical_ntk(view, self.params, self.x))

    def _watch(self, params: NetworkParams, kernels: dict[str, Array]) -> None:
        """λ_min of the kernel, and how far those of the layers have moved."""
        kernel = kernels[self.output][0]
        if not self.smallest:
            self.gradient_norm = float(jnp.mean(jnp.einsum("iiaa->ia", kernel)[:, 0]))
        self.smallest.append(float(eigenvalues(kernel)[-1]))
        params = jax.tree.map(lambda leaf: leaf[0], params) if self.layer_changes else {}
        for name, (view, before) in self.layer_kernels.items():
            moved = float(kernel_change(empirical_ntk(view, params, self.x), before))
            self.layer_changes[name] = max(self.layer_changes[name], moved)


def _gradient_bound(net: DAGNetwork, x: np.ndarray) -> float:
    """Mean over the inputs, NaN beyond the assumptions of Proposition 4.4."""
    try:
        return float(np.mean([gradient_norm_bound(net, row) for row in x]))
    except InvalidInput:
        return math.nan
