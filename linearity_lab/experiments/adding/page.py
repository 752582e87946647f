"""Adding networks (after Ilharco et al. 2023; Ortiz-Jimenez, Favero & Frossard 2023)."""

from linearity_lab.dashboard.experiment_page import ExperimentPage
from linearity_lab.experiments.adding.point import AddingPoint, AddingSpec
from linearity_lab.experiments.lettered_networks import groups_of_networks

PAGE = ExperimentPage[AddingSpec, AddingPoint](
    "adding",
    note=lambda shown: shown.spec.almost_everywhere,
    controls=(
        "dataset.name",
        "architectures.0.kind",
        "widths",
        "num_seeds",
        "num_tasks",
        "scale",
    ),
    groups={
        **groups_of_networks(),
        "Tasks": ("num_tasks", "scale", "outputs"),
        "Widths and seeds": ("architectures", "widths"),
        "Data": ("dataset.", "num_test"),
    },
)
show = PAGE.show
