"""Convergence without linearity (Liu, Zhu & Belkin 2020, §5)."""

from linearity_lab.dashboard.experiment_page import ExperimentPage
from linearity_lab.dashboard.settings_row import COLUMN
from linearity_lab.experiments.optimization.point import OptimizationPoint, OptimizationSpec

PAGE = ExperimentPage[OptimizationSpec, OptimizationPoint](
    "optimization", controls=(*COLUMN, "rates")
)
show = PAGE.show
