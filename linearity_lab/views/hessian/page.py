"""Hessian norms against width, beside the kernel change of the same networks (Liu, Zhu & Belkin 2020, Table 1)."""

from linearity_lab.charts.chart import Chart
from linearity_lab.components.chart import Choice, Panel, choose
from linearity_lab.components.drawn_once import drawn_once
from linearity_lab.components.experiment_page import experiment_page
from linearity_lab.components.forms import Group
from linearity_lab.components.run_panel import Shown
from linearity_lab.components.words_table import words_table
from linearity_lab.views.hessian import figures
from linearity_lab.views.hessian.networks import SETTINGS, activation_chooser, networks_chooser, networks_form
from linearity_lab.views.hessian.parts import balls, one_network

PAGE = "hessian"
TITLE = "Why do wide networks become linear? The Hessian"
CONTROLS = (networks_chooser, activation_chooser, "widths", "num_seeds")
GROUPS = (
    Group("Widths and seeds", ("widths", "num_seeds", "seed", "draws", "num_inputs", "output_index")),
    Group("Balls and bounds", ("bounds", "vector", "blocks", "radii", "num_starts", "num_ball_seeds")),
    Group("Training", ("num_trained", "training.")),
    Group("Data", ("dataset.",)),
)


def draw(shown: Shown) -> list[Panel]:
    """Draw norms, kernel changes from the same weights, Table 1, balls around w₀, and one network in detail."""
    points = shown.points

    def norms() -> Chart:
        views = Choice("view", "Vertical axis", list(figures.VIEWS), pixels=150)
        (view,) = choose(PAGE, views, f"against {figures.place_name(points).rpartition(' ')[0]}")
        return drawn_once(f"{PAGE}.norms", shown.identity, lambda view: figures.against_width(points, view), view)

    def changes() -> Chart:
        return drawn_once(f"{PAGE}.changes", shown.identity, lambda: figures.change_against_width(points))

    def table() -> None:
        rows = drawn_once(f"{PAGE}.table", shown.identity, lambda: figures.table_rows(points))
        about = f"95% confidence intervals {shown.spec.scope}, converged runs. The verdict uses ‖H‖ / ‖∇f‖²."
        words_table(rows, about)

    trained = [Panel("ΔK of the same weights", changes)] if figures.trained_lines(points) else []
    rest = [*trained, *balls(PAGE, shown), Panel("Table 1, measured", table), *one_network(PAGE, shown)]
    return [Panel("Norms", norms), *rest]


def show() -> None:
    """Draw the page."""
    experiment_page(PAGE, TITLE, GROUPS, draw, controls=CONTROLS, elsewhere=tuple(SETTINGS), first=networks_form)
