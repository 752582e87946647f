"""Liu, Zhu & Belkin (2020), Fig. 1, left: kernel change during training, against the width.

    PYTHONPATH=. python examples/liu_figure_1.py

With a linear output the kernel change decreases with the width; with softmax or swish it does not.
Writes liu_figure_1.html, which opens offline.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

import linearity_lab
from linearity_lab.experiments.kernel_change.point import KernelChangeResult
from linearity_lab.runs.events import Ended, PointFinished
from linearity_lab.settings.grammar import with_settings


def main(settings: dict[str, Any] | None = None) -> dict[str, dict[int, float]]:
    """Return mean ΔK by output and width, over seeds that reached the loss threshold."""
    spec = with_settings(
        linearity_lab.presets()["liu-fig1-left"], settings or {"widths": [30, 100, 300, 1000]}
    )
    for event in linearity_lab.run(spec):
        if isinstance(event, PointFinished):
            print(f"{event.key}: {event.fraction:.0%}")
    assert isinstance(event, Ended)
    assert isinstance(event.result, KernelChangeResult), event.reason
    changes: dict[str, dict[int, float]] = {}
    for point in event.result.points:
        for output in event.result.spec.outputs:
            runs = [run.sup_change for run in point.of(output) if run.outcome == "converged"]
            if runs:
                changes.setdefault(output, {})[point.width] = float(np.mean(runs))
    return changes


def figure(changes: dict[str, dict[int, float]]) -> go.Figure:
    """Return a log-log plot with the theorem's bound for the linear output."""
    chart = go.Figure()
    for output, by_width in changes.items():
        chart.add_scatter(
            x=list(by_width),
            y=list(by_width.values()),
            name=f"{output} output",
            mode="lines+markers",
        )
    widths = np.array(sorted({width for by_width in changes.values() for width in by_width}))
    chart.add_scatter(
        x=widths, y=(widths / widths[0]) ** -0.5, name="m<sup>−1/2</sup>", line={"dash": "dash"}
    )
    chart.update_xaxes(type="log", title="width m").update_yaxes(
        type="log", title="kernel change ΔK"
    )
    return chart


if __name__ == "__main__":
    changes = main()
    for output, by_width in changes.items():
        print(output, {width: f"{change:.3g}" for width, change in by_width.items()})
    figure(changes).write_html("liu_figure_1.html")
