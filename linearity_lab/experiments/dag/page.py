"""Draw a network as a graph and see whether it becomes linear (Zhu, Liu & Belkin 2022)."""

from linearity_lab.charts.chart import Chart
from linearity_lab.dashboard.chart import Choice
from linearity_lab.dashboard.experiment_page import ExperimentPage
from linearity_lab.dashboard.shown import Shown
from linearity_lab.experiments.dag import figures
from linearity_lab.experiments.dag.graph_editor import graph_editor
from linearity_lab.experiments.dag.point import DAGPoint, DAGSpec
from ntk_core.networks.graphs import GRAPH_TITLES, example_graphs

Runs = Shown[DAGSpec, DAGPoint]
TABS = {
    "change": "Kernel change",
    "hessian": "Hessian norm",
    "layer_hessian": "‖H‖ of pre-activations",
    "layer_change": "ΔK of pre-activations",
    "eigenvalue": "Smallest eigenvalue",
    "gradient": "Gradient",
}


def charts(shown: Runs, axis: figures.Axis) -> list[Chart]:
    """Draw every figure with data."""
    known = (
        GRAPH_TITLES[name] for name, graph in example_graphs().items() if graph == shown.spec.graph
    )
    return figures.charts(shown.points, shown.spec.widths, axis, next(known, figures.YOURS))


def choices(shown: Runs) -> list[str | Choice]:
    """Return the choice of width or realized in-degree."""
    return [
        "Against the",
        Choice("axis", "Axis", figures.axes_of(shown.points), figures.AXIS_TITLES.__getitem__, 260),
    ]


PAGE = ExperimentPage[DAGSpec, DAGPoint](
    "dag",
    charts=charts,
    choices=choices,
    note=lambda shown: shown.spec.almost_everywhere,
    tabs=TABS,
    controls=("activation", "outputs", "widths"),
    groups={
        "Network": ("activation", "outputs", "use_bias", "compared"),
        "Measured": ("num_hessians", "pre_activations", "ball_radius"),
    },
    title="Does this graph become linear?",
    elsewhere=("graph",),
    editor=graph_editor,
)
show = PAGE.show
