"""How long linearity lasts (after Lewkowycz et al. 2020; Lewkowycz & Gur-Ari 2020; Lyu & Li 2020)."""

from linearity_lab.charts.chart import Chart
from linearity_lab.components.chart import Choice, Panel, width_choice
from linearity_lab.components.experiment_page import ExperimentPage
from linearity_lab.components.shown import Shown
from linearity_lab.views.horizon import figures
from ntk_core.experiments.horizon import DEPARTURES, REGIMES, HorizonPoint, HorizonSpec

Runs = Shown[HorizonSpec, HorizonPoint]


def charts(shown: Runs, of: str, width: int, regime: str) -> list[Chart]:
    """Horizons against width, the runs of one width and regime, and steps above the stable rate where there are any."""
    points, spec = shown.points, shown.spec
    has_steps = any(point.regime == "large-rate" for point in points)
    found = [figures.against_width(points, spec, of), figures.along_clock(points, spec, regime, width)]
    return [*found, *([figures.departure_steps(points, spec.widths)] if has_steps else [])]


def draw(shown: Runs) -> list[Panel]:
    """All horizons; below them, runs along their clocks."""
    present = [name for name in REGIMES if any(point.regime == name for point in shown.points)]
    above_stable = present == ["large-rate"]
    chosen = shown.choose(
        Choice("departure", "Departure of", DEPARTURES, "by the {}".format, begins=int(above_stable)),
        more=[
            width_choice(list({point.width: point for point in shown.points}.values())),
            Choice("regime", "Run", present, lambda name: REGIMES[name].title, 220),
        ],
    )
    return shown.panels(charts, *chosen)


TRAINING = (
    "regimes", "kernel_threshold", "output_threshold", "rates", "decay", "max_log_loss", "loss_threshold", "max_steps",
)  # fmt: skip
PAGE = ExperimentPage(
    "horizon",
    draw,
    controls=("regimes", "widths", "kernel_threshold", "output_threshold"),
    groups={
        "Training": TRAINING,
        "Network": ("scale", "architecture."),
        "Widths and seeds": ("widths", "num_seeds", "seed", "draws"),
        "Data": ("dataset.", "num_test"),
    },
)
show = PAGE.show
