"""How long linearity lasts (after Lewkowycz et al. 2020; Lewkowycz & Gur-Ari 2020; Lyu & Li 2020)."""

from linearity_lab.charts.chart import Chart
from linearity_lab.components.chart import Choice, width_choice
from linearity_lab.components.experiment_page import ExperimentPage
from linearity_lab.components.shown import Shown
from linearity_lab.views.horizon import figures
from ntk_core.experiments.horizon import DEPARTURES, REGIMES, HorizonPoint, HorizonSpec

Runs = Shown[HorizonSpec, HorizonPoint]


def charts(shown: Runs, of: str, width: int, regime: str) -> list[Chart]:
    """Horizons against width, the runs of one width and regime, and steps above the stable rate where there are any."""
    points, spec = shown.points, shown.spec
    found = [figures.against_width(points, spec, of), figures.along_clock(points, spec, regime, width)]
    has_steps = "large-rate" in _present(shown)
    return [*found, *([figures.departure_steps(points, spec.widths)] if has_steps else [])]


def _present(shown: Runs) -> list[str]:
    return [name for name in REGIMES if any(point.regime == name for point in shown.points)]


def choices(shown: Runs) -> list[Choice[str]]:
    """Which departure: of the outputs at first where all runs are above the stable rate."""
    begins = int(_present(shown) == ["large-rate"])
    return [Choice("departure", "Departure of", DEPARTURES, "by the {}".format, begins=begins)]


PAGE = ExperimentPage(
    "horizon",
    charts=charts,
    choices=choices,
    more=lambda shown: [
        width_choice(list({point.width: point for point in shown.points}.values())),
        Choice("regime", "Run", _present(shown), lambda name: REGIMES[name].title, 220),
    ],
    controls=("regimes", "widths", "kernel_threshold", "output_threshold"),
    groups={
        "Training": (
            "regimes", "kernel_threshold", "output_threshold", "rates", "decay", "max_log_loss", "loss_threshold",
            "max_steps",
        ),
        "Network": ("scale", "architecture."),
        "Widths and seeds": ("widths", "num_seeds", "seed", "draws"),
        "Data": ("dataset.", "num_test"),
    },
)  # fmt: skip
show = PAGE.show
