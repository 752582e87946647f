"""A network and its linear model trained side by side: agreement and separation."""

from linearity_lab.dashboard.experiment_page import ExperimentPage
from linearity_lab.dashboard.settings_row import COLUMN
from linearity_lab.experiments.dynamics.point import DynamicsPoint, DynamicsSpec

PAGE = ExperimentPage[DynamicsSpec, DynamicsPoint](
    "dynamics",
    controls=(*COLUMN, "methods", "training.learning_rate"),
    groups={"Data": ("dataset.", "num_test", "num_followed")},
)
show = PAGE.show
