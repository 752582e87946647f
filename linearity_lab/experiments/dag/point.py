"""Directed acyclic graphs against their in-degrees."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    InstanceOf,
    NonNegativeInt,
    PlainSerializer,
    model_validator,
)

from linearity_lab.data import DatasetShapes, dataset_shapes
from linearity_lab.experiments.trained_sweep import TrainedPoint, TrainedRun
from linearity_lab.networks.spec import ActivationName, OutputName
from linearity_lab.runs import (
    Experiment,
    ResultValue,
    SpecOf,
    SweepSpec,
    Value,
    columns,
    costs,
    finite_sup,
)
from linearity_lab.runs.columns import Column, runs_of, text_table
from linearity_lab.settings.part import Once, Width
from linearity_lab.settings.training import DescentSettings, DescentSpec
from ntk_core.errors import InvalidInput
from ntk_core.fits import exponent_line, fit_power_law
from ntk_core.networks.choices import almost_everywhere
from ntk_core.networks.graphs import (
    GRAPH_TITLES,
    Graph,
    LayerSize,
    dense_graph,
    example_graphs,
    graph_steps,
    graph_verdict,
    lay_out,
    named_inside,
    parse_graph,
)
from ntk_core.stored_numbers import NonNegative

if TYPE_CHECKING:
    ExampleName = str
else:
    ExampleName = Literal[tuple(GRAPH_TITLES)]

DRAWN = "drawn"


GraphField = Annotated[
    InstanceOf[Graph], BeforeValidator(named_inside(parse_graph)), PlainSerializer(Graph.data)
]


class DAGSpec(SweepSpec, SpecOf["DAGResult"]):
    """Kernel change and Hessian norms of networks on graphs.

    ΔK = sup_t ‖K(w_t) − K(w₀)‖_F / ‖K(w₀)‖_F and ‖∂²f_a/∂w²‖ at w₀ against width. Each graph and
    output has its own network, trained by full-batch gradient descent: cross-entropy for softmax,
    ½‖φ(f) − y‖² otherwise.

    Source: Zhu, Liu & Belkin 2022, Fig. 2, Theorems 3.6 and 3.8, App. D to F, §4.

    >>> DAGSpec(widths=(8, 16), compared=("irregular",)).point_keys()
    ('width=8', 'width=16')
    """

    experiment: Literal["dag"] = "dag"
    graph: GraphField = Field(default=dense_graph(3, 0.5), title="Graph")
    """Groups of neurons and the edges between them."""
    compared: Annotated[tuple[ExampleName, ...], Once] = Field(
        default=(), max_length=3, title="Compared with"
    )
    """Graphs of the gallery to draw beside yours."""
    activation: ActivationName = Field(default="tanh", title="Activation σ")
    """Nonlinearity σ of groups without their own."""
    outputs: Annotated[tuple[OutputName, ...], Once] = Field(
        default=("linear",),
        min_length=1,
        max_length=3,
        title="Outputs φ",
        json_schema_extra={"common_ending": " output"},
    )
    """Output nonlinearities φ to compare."""
    use_bias: bool = Field(default=False, title="Biases b")
    """Biases b in the hidden groups."""
    widths: tuple[Width, ...] = SweepSpec.field(
        "widths",
        (32, 64, 128, 256, 512),
        "Widths m: a group without a size has m neurons, or factor · m^power of them.",
    )
    num_seeds: int = SweepSpec.field("num_seeds", 3)
    training: DescentSettings = DescentSpec()
    num_hessians: int = Field(default=2, ge=0, le=16, title="Inputs for ‖H‖")
    """Inputs over which ‖H‖ at w₀ is averaged; 0 for none."""
    pre_activations: bool = Field(default=False, title="Pre-activations")
    """Measure ‖H‖ and kernel change of pre-activations of every group (Theorem 3.8)."""
    ball_radius: float = Field(default=0.0, ge=0, le=100, title="Radius R for λ_min")
    """Search for the smallest λ_min of the kernel within distance R of w₀; 0 skips it."""

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        shapes = self.dataset.known_shapes()
        for name, graph in self.graphs().items():
            if graph.positioned and shapes is not None and len(shapes.input_shape) != 3:
                field = "graph" if name == DRAWN else "compared"
                raise InvalidInput(
                    field, "shared weights", "images only, for example dataset cifar2"
                )
        return self

    @property
    def almost_everywhere(self) -> str:
        """Curvature that the Hessians miss at kinks; empty without kinks or Hessians."""
        if not (self.num_hessians or self.pre_activations):
            return ""
        groups = [group for graph in self.graphs().values() for group in graph.groups]
        return almost_everywhere(
            [group.activation or self.activation for group in groups], self.outputs
        )

    def graphs(self) -> dict[str, Graph]:
        """The drawn graph and the graphs to compare, by name."""
        return {DRAWN: self.graph, **{name: example_graphs()[name] for name in self.compared}}

    def num_records(self, key: str) -> Mapping[str, int]:
        """One run per graph, output and seed."""
        return {"runs": len(self.graphs()) * len(self.outputs) * self.num_seeds}


MAX_MATVECS = 52  # a relative residual of 10⁻³ takes 5 to 52 products here, rarely more
TYPICAL_STEPS = 300
TYPICAL_MATVECS = 25
# λ_min in a ball: four descents of 33 kernels; a kernel's gradient costs about three kernels.
BALL_VALUES = 4 * 33
BALL_KERNELS = 4.5
BALL_CUBES = 20
BALL_CALLS = 375


def counts(spec: DAGSpec, key: str, most: bool = False) -> tuple[costs.Counts, ...]:
    """Count one width with all graphs, outputs and seeds.

    ``most`` assumes all allowed steps and products.
    """
    return tuple(_of_graph(spec, network, most) for network in _networks(spec, spec.value_of(key)))


@functools.lru_cache(maxsize=64)
def _networks(spec: DAGSpec, width: int) -> tuple[costs.Counted, ...]:
    shapes = _shapes(spec)
    return tuple(
        costs.Counted(layer_sizes_of(spec, graph, width), shapes.num_samples, shapes.num_outputs)
        for graph in spec.graphs().values()
    )


def layer_sizes_of(spec: DAGSpec, graph: Graph, width: int) -> list[LayerSize]:
    """Layers of the network on this graph, in order of evaluation."""
    shapes = _shapes(spec)
    steps = graph_steps(graph, width, spec.activation, spec.use_bias)
    return list(lay_out(steps, width, shapes.input_shape, num_outputs=shapes.num_outputs))


def _shapes(spec: DAGSpec) -> DatasetShapes:
    return dataset_shapes(spec.dataset.name, **spec.dataset.options())


def _of_graph(spec: DAGSpec, network: costs.Counted, most: bool) -> costs.Counts:
    layers = network.layers
    basis = _basis_entries(network.layers)
    matvecs = MAX_MATVECS if most else TYPICAL_MATVECS
    norms = bool(spec.num_hessians) + spec.pre_activations * len(layers)
    products = max(1, spec.num_hessians) * norms * matvecs
    values = BALL_VALUES * bool(spec.ball_radius)
    watched = 0.2 * spec.pre_activations * len(layers)
    programs = {
        "training": 1,
        "hessian": norms + spec.pre_activations * len(layers),
        "search": bool(values),
    }
    return costs.Counts(
        network,
        {kind: len(spec.outputs) * number for kind, number in programs.items()},
        times=len(spec.outputs) * spec.num_seeds,
        steps=costs.typical_steps(spec.training.max_steps, most, TYPICAL_STEPS),
        kernels=spec.training.num_records * (1 + watched) + BALL_KERNELS * values,
        products=products,
        cubes=BALL_CUBES * values,
        more=costs.Work(
            4 * products * matvecs * basis,
            2 * costs.BYTES * products * matvecs * basis,
            BALL_CALLS * values,
        ),
        copies=3,
        views=1,
        matrices=6,
        numbers=(MAX_MATVECS + 8) * basis if products else 0,
    )


def _basis_entries(layers: Sequence[LayerSize]) -> int:
    """Size of one direction of the Hessian's space.

    All edges of masked layers, else fan-in and features.
    """
    entries = 0
    for layer in layers:
        if layer.masked:
            entries += layer.num_params
            continue
        rank = min(layer.positions, layer.fan_in)
        entries += min(layer.num_params, rank * (layer.fan_in + layer.features))
    return entries


class LayerLinearity(Value):
    """Pre-activations of one group as functions of the weights below.

    Source: Zhu, Liu & Belkin 2022, Theorem 3.8.

    Attributes:
        group: its name, ``"output"`` for the outputs.
        depth: its layer, the longest path from the input.
        hessian_norm: ‖H‖ at w₀, mean over the inputs, of one neuron.
        change: sup over the recorded times of the kernel change of two neurons.
    """

    group: str
    depth: NonNegativeInt
    hessian_norm: NonNegative
    change: NonNegative


class DAGRun(TrainedRun):
    """One training run of one graph with one output.

    Attributes:
        graph: ``"drawn"``, or the name of a graph of the gallery.
        output: output nonlinearity φ.
        min_in_degree: smallest number of edges into a neuron outside the first layer
            (Zhu et al., Eq. 8).
        max_in_degree: the largest one.
        smallest_eigenvalue: λ_min(K(w_t)) at the recorded steps.
        hessian_norm: ‖H‖ of the first output at w₀, mean over inputs; NaN if not requested.
        hessian_converged: whether every Hessian norm reached its tolerance.
        layers: pre-activations of every group, if requested.
        ball_eigenvalue: smallest λ_min(K(w)) found for ‖w − w₀‖ ≤ R: an upper bound of
            the infimum; else NaN.
        gradient_norm: mean over the inputs of ‖∇_w f‖² of the first output at w₀.
        gradient_bound: its lower bound in expectation (Proposition 4.4), NaN beyond its
            assumptions.
        linear_model_change: ΔK(t) of softmax(f_lin), with f_lin trained by the same steps; softmax
            output alone. Empty in results of older versions.
    """

    other_lengths: ClassVar[tuple[str, ...]] = ("layers",)

    graph: str
    output: str
    min_in_degree: NonNegativeInt
    max_in_degree: NonNegativeInt
    smallest_eigenvalue: tuple[float, ...]
    hessian_norm: NonNegative = math.nan
    hessian_converged: bool = True
    layers: tuple[LayerLinearity, ...] = ()
    ball_eigenvalue: float = math.nan
    gradient_norm: NonNegative = math.nan
    gradient_bound: NonNegative = math.nan
    linear_model_change: tuple[NonNegative, ...] = ()

    @property
    def linear_model_sup(self) -> float:
        """ΔK of softmax(f_lin); NaN if it was not trained."""
        return finite_sup(self.linear_model_change) if self.linear_model_change else math.nan


class DAGPoint(TrainedPoint[DAGRun]):
    """All runs of one width, graphs × outputs × seeds.

    ``num_params`` is that of the drawn graph.
    """

    line = ("graph", "output")

    kind: Literal["dag"] = "dag"


COLUMNS = (
    columns.WIDTH,
    Column(
        "graph", "graph", format=lambda name: GRAPH_TITLES.get(name, "drawn graph"), role="line"
    ),
    columns.OUTPUT,
    columns.SEED,
    Column("min_in_degree", "smallest in-degree", format=columns.counted),
    Column("max_in_degree", "largest in-degree"),
    columns.CHANGE,
    Column(
        "hessian_norm",
        "Hessian norm ‖H‖",
        format=columns.precise,
        counts=lambda run: run.hessian_converged,
    ),
    Column("hessian_converged", ""),
    Column("smallest_eigenvalue", "λ_min of the kernel", lambda _, run: run.smallest_eigenvalue[0]),
    Column(
        "smallest_eigenvalue_on_path",
        "λ_min on the path",
        lambda _, run: min(run.smallest_eigenvalue),
    ),
    Column("smallest_eigenvalue_in_ball", "λ_min in the ball", lambda _, run: run.ball_eigenvalue),
    Column("gradient_norm", "‖∇f‖²"),
    Column("gradient_bound", "lower bound of ‖∇f‖²"),
    columns.FINAL_LOSS,
    columns.STEPS,
    columns.LEARNING_RATE,
    columns.OUTCOME,
)


class DAGResult(ResultValue):
    """Result of a ``dag`` run.

    ``points`` are in the order of the widths; some may be missing.

    ΔK = sup_t ‖K(w_t) − K(w₀)‖_F / ‖K(w₀)‖_F, ‖∂²f_a/∂w²‖ at w₀ and λ_min(K(w_t)) of every
    graph, output and seed.

    Source: Zhu, Liu & Belkin 2022, Fig. 2, Theorems 3.6 and 3.8, §4.

    >>> from linearity_lab.runs.gallery import GALLERY
    >>> result = DAGResult.model_validate_json((GALLERY / "zhu-fig2.json").read_bytes())
    >>> result.points[0].width, result.points[0].runs[0].min_in_degree
    (32, 19)
    """

    columns = COLUMNS
    spec: DAGSpec
    points: tuple[DAGPoint, ...]

    def rows(self) -> list[dict[str, object]]:
        """One row per run, with the norms and changes of every group of the drawn graph."""
        found = super().rows()
        for row, (_, run) in zip(found, runs_of(self.points), strict=True):
            for layer in run.layers if run.graph == "drawn" else ():
                row[f"hessian_norm_{layer.group}"] = layer.hessian_norm
                row[f"kernel_change_{layer.group}"] = layer.change
        return found


def dag_summary(spec: DAGSpec, points: Sequence[DAGPoint]) -> str:
    """Return the summary of each graph and output.

    It has realized in-degree, ΔK, ‖H‖, the verdicts, and exponents with their intervals.
    """
    series = [(graph, output) for graph in spec.graphs() for output in spec.outputs]
    notes = columns.outcome_notes(points, then="; excluded from means")
    laws = [exponent(points, *each) for each in series]
    missed = [spec.almost_everywhere] if spec.almost_everywhere else []
    return "\n".join([*text_table(COLUMNS, points), "", *missed, *notes, *_verdicts(spec), *laws])


def exponent(points: Sequence[DAGPoint], graph: str, output: str) -> str:
    """Return the exponent of ΔK in the smallest in-degree.

    If the in-degree is constant, it is that in the width.
    """
    runs = [(point.width, run) for point in points for run in point.of(graph, output)]
    constant = len({run.min_in_degree for _, run in runs if run.outcome == "converged"}) < 2
    name, places = (
        ("m", [m for m, _ in runs])
        if constant
        else ("in-degree", [run.min_in_degree for _, run in runs])
    )
    law = fit_power_law(
        places,
        [run.sup_change for _, run in runs],
        seeds=[run.seed for _, run in runs],
        usable=[run.outcome == "converged" for _, run in runs],
        diverged=[run.outcome == "diverged" for _, run in runs],
        swept=[width for width, _ in runs],
    )
    return exponent_line(f"{title_of(graph)}, {output} output: ΔK", law, name)


def title_of(graph: str) -> str:
    """Title of a graph."""
    return GRAPH_TITLES.get(graph, "drawn graph")


def _verdicts(spec: DAGSpec) -> list[str]:
    shapes = spec.dataset.known_shapes()
    if shapes is None:  # uploaded data that this machine does not have
        return []
    lines = []
    for name, graph in spec.graphs().items():
        found = graph_verdict(graph, spec.widths[-1], shapes.input_shape)
        lines += [
            f"{title_of(name)}: {found.outcome}. "
            + " ".join(reason.words for reason in found.reasons)
        ]
    return lines


EXPERIMENT = Experiment(
    DAGSpec, DAGPoint, DAGResult, counts, dag_summary, ("liu", "zhu"), record_bytes=200
)
