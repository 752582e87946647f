"""Draw a network as a graph and see whether it becomes linear (Zhu, Liu & Belkin 2022)."""

from linearity_lab.dashboard.experiment_page import ExperimentPage
from linearity_lab.experiments.dag.graph_editor import graph_editor
from linearity_lab.experiments.dag.point import DAGPoint, DAGSpec

PAGE = ExperimentPage[DAGSpec, DAGPoint](
    "dag",
    note=lambda shown: shown.spec.almost_everywhere,
    controls=("dataset.name", "outputs", "activation", "widths", "num_seeds"),
    groups={
        "Network": ("activation", "outputs", "use_bias", "compared"),
        "Measured": ("num_hessians", "pre_activations", "ball_radius"),
    },
    elsewhere=("graph",),
    editor=graph_editor,
)
show = PAGE.show
