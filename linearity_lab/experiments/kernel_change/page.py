"""Kernel change against width and during training (Liu, Zhu & Belkin 2020, Fig. 1)."""

from linearity_lab.dashboard.experiment_page import ExperimentPage
from linearity_lab.dashboard.settings_row import COLUMN
from linearity_lab.experiments.kernel_change.point import KernelChangePoint
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec

PAGE = ExperimentPage[KernelChangeSpec, KernelChangePoint](
    "kernel_change",
    controls=COLUMN,
    groups={"Widths and seeds": ("swept", "hidden_width")},
)
show = PAGE.show
