"""From lazy to rich (Yang & Hu 2021; Chizat, Oyallon & Bach 2019; Liu, Zhu & Belkin 2020, §1.1)."""

from linearity_lab.dashboard.experiment_page import ExperimentPage
from linearity_lab.dashboard.settings_row import COLUMN
from linearity_lab.experiments.lazy.point import LazyPoint, LazySpec

PAGE = ExperimentPage[LazySpec, LazyPoint](
    "lazy",
    note=lambda shown: shown.spec.almost_everywhere,
    controls=COLUMN,
    groups={
        "Width, scale and richness": ("widths", "scales", "richness", "num_seeds", "seed", "draws"),
        "Network": ("outputs", "starts"),
    },
    elsewhere=("architecture.initial_output",),
)
show = PAGE.show
