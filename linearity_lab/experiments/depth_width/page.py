"""Depth and width: how random the tangent kernel is, and its change in training.

Source: Hanin & Nica 2020.
"""

from linearity_lab.dashboard.experiment_page import ExperimentPage
from linearity_lab.experiments.depth_width.point import DepthWidthPoint, DepthWidthSpec

PAGE = ExperimentPage[DepthWidthSpec, DepthWidthPoint](
    "depth_width",
    controls=("dataset.name", "depths", "widths", "num_seeds", "num_kernels", "trained_width"),
    groups={
        "Depth vs. width": ("depths", "widths", "num_kernels", "seed"),
        "Trained networks": (
            "trained_depth",
            "trained_width",
            "hessian_depth",
            "num_seeds",
            "draws",
            "training.",
        ),
    },
)
show = PAGE.show
