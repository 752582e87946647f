"""Duration of linearity (after Lewkowycz et al. 2020; Lewkowycz & Gur-Ari 2020; Lyu & Li 2020)."""

from linearity_lab.dashboard.experiment_page import ExperimentPage
from linearity_lab.dashboard.settings_row import COLUMN
from linearity_lab.experiments.horizon.point import HorizonPoint, HorizonSpec

PAGE = ExperimentPage[HorizonSpec, HorizonPoint](
    "horizon",
    controls=(*COLUMN, "regimes", "kernel_threshold", "output_threshold"),
    groups={"Network": ("scale",), "Data": ("dataset.", "num_test")},
)
show = PAGE.show
