"""Kernel change and logits of any network on any data set."""

from linearity_lab.dashboard.experiment_page import ExperimentPage
from linearity_lab.dashboard.preview import Preview
from linearity_lab.experiments.explore.pairs import following, in_full, preview_of
from linearity_lab.experiments.explore.point import ExplorePoint
from linearity_lab.experiments.explore.spec import ExploreSpec

PAGE = ExperimentPage[ExploreSpec, ExplorePoint](
    "explore",
    controls=(
        "dataset.name",
        "architecture.kind",
        "architecture.depth",
        "outputs",
        "architecture.activation",
        "widths",
        "num_seeds",
    ),
    groups={"Data": ("dataset.", "num_followed", "num_inputs", "num_drawn")},
    preview=Preview(following, preview_of, in_full),
)
show = PAGE.show
