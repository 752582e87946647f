"""Generalization of network and kernel: the cost of linearity."""

from linearity_lab.dashboard.experiment_page import ExperimentPage
from linearity_lab.dashboard.settings_row import COLUMN
from linearity_lab.experiments.generalization.point import GeneralizationPoint, GeneralizationSpec

PAGE = ExperimentPage[GeneralizationSpec, GeneralizationPoint](
    "generalization",
    controls=(*COLUMN, "dataset.num_samples"),
    groups={
        "Width, richness and points": (
            "widths",
            "richness",
            "samples",
            "num_seeds",
            "seed",
            "draws",
        ),
        "Kernels and test": ("num_test", "ridge", "infinite_width"),
    },
)
show = PAGE.show
