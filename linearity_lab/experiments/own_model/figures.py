"""Card and figure of a run on *Results*, and the comparison of such runs."""

from dataclasses import replace

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.figure import Figure, Shown
from linearity_lab.charts.lines import Line, width_axis
from linearity_lab.charts.sweep import sweep
from linearity_lab.experiments.kernel_change.figures import change_lines
from linearity_lab.experiments.own_model.point import OwnModelPoint, OwnModelSpec

Runs = Shown[OwnModelSpec, OwnModelPoint]


def against_width(shown: Runs) -> Chart:
    """ΔK of the runs against width, log–log."""
    axis = width_axis(shown.spec.widths)
    return sweep(
        [_line(shown)],
        axis,
        "kernel change ΔK",
        "ΔK",
        slopes=(-0.5, -1.0),
        of="model",
    )


def _line(shown: Runs) -> Line:
    (line,) = change_lines(shown.points).values()
    return replace(line, style=replace(line.style, title=shown.spec.function))


FIGURES = (Figure("own_model", "Against width", draw=against_width),)
