"""How long linearity lasts (after Lewkowycz et al. 2020; Lewkowycz & Gur-Ari 2020; Lyu & Li 2020)."""

from functools import partial

from linearity_lab.charts.chart import Chart
from linearity_lab.components.chart import Choice, Panel, choose, panels, width_choice
from linearity_lab.components.drawn_once import drawn_once
from linearity_lab.components.experiment_page import experiment_page
from linearity_lab.components.forms import Group
from linearity_lab.components.run_panel import Shown
from linearity_lab.views.horizon import figures
from ntk_core.experiments.horizon.result import DEPARTURES, REGIME_TITLES

PAGE = "horizon"
TITLE = "How long does it stay linear?"
CONTROLS = ("regimes", "widths", "kernel_threshold", "output_threshold")
GROUPS = (
    Group("Training", ("regimes", "kernel_threshold", "output_threshold", "rates", "decay", "max_log_loss",
                       "loss_threshold", "max_steps")),
    Group("Network", ("scale", "architecture.")),
    Group("Widths and seeds", ("widths", "num_seeds", "seed", "draws")),
    Group("Data", ("dataset.", "num_test")),
)  # fmt: skip


def charts(shown: Shown, of: str, width: int, regime: str) -> list[Chart]:
    """Horizons against width, the runs of one width and regime, and steps above the stable rate where there are any."""
    along = figures.along(shown.points, shown.spec, regime, width)
    found = [figures.against_width(shown.points, shown.spec, of), along]
    has_steps = any(point.regime == "large-rate" for point in shown.points)
    return found + [figures.departure_steps(shown.points, shown.spec.widths)] * has_steps


def draw(shown: Shown) -> list[Panel]:
    """All horizons; below them, runs along their clocks."""
    present = [name for name in REGIME_TITLES if any(point.regime == name for point in shown.points)]
    above_stable = present == ["large-rate"]
    chosen = choose(
        PAGE,
        Choice("departure", "Departure of", DEPARTURES, "{} leaves".format, begins=int(above_stable)),
        more=[
            width_choice(list({point.width: point for point in shown.points}.values())),
            Choice("regime", "Run", present, REGIME_TITLES.__getitem__, 220),
        ],
    )
    return panels(drawn_once(PAGE, shown.identity, partial(charts, shown), *chosen))


def show() -> None:
    """The page."""
    experiment_page(PAGE, TITLE, GROUPS, draw, controls=CONTROLS)
