"""Duration of linearity (after Lewkowycz et al. 2020; Lewkowycz & Gur-Ari 2020; Lyu & Li 2020)."""

from linearity_lab.charts.chart import Chart, occurring
from linearity_lab.charts.departures import against_width, departure_steps
from linearity_lab.dashboard.chart import Choice, width_choice
from linearity_lab.dashboard.experiment_page import ExperimentPage
from linearity_lab.dashboard.shown import Shown
from linearity_lab.experiments.horizon.figures import along_clock
from linearity_lab.experiments.horizon.point import REGIMES, HorizonPoint, HorizonSpec


def charts(
    shown: Shown[HorizonSpec, HorizonPoint], of: str, width: int, regime: str
) -> list[Chart]:
    """Draw horizons against width, runs of one width and regime, and any steps above the stable rate."""
    points, spec = shown.points, shown.spec
    found = [against_width(points, spec, of), along_clock(points, spec, regime, width)]
    return [
        *found,
        *([departure_steps(points, spec.widths)] if "large-rate" in spec.regimes else []),
    ]


PAGE = ExperimentPage[HorizonSpec, HorizonPoint](
    "horizon",
    charts=charts,
    choices=lambda shown: [
        Choice("departure", "Departure of", shown.spec.departures, "by the {}".format)
    ],
    more=lambda shown: [
        width_choice(shown.points),
        Choice(
            "regime",
            "Run",
            occurring(shown.points, "regime"),
            lambda name: REGIMES[name].title,
            220,
            begins=-1,
        ),
    ],
    controls=("regimes", "widths", "kernel_threshold", "output_threshold"),
    groups={"Network": ("scale",), "Data": ("dataset.", "num_test")},
)
show = PAGE.show
