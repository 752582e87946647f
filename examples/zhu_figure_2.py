"""Zhu, Liu & Belkin (2022), Fig. 2: randomly thinned networks against their smallest in-degree.

    PYTHONPATH=. python examples/zhu_figure_2.py

The kernel change decreases with the smallest in-degree of the sampled graph. Writes
zhu_figure_2.html.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

import linearity_lab
from linearity_lab.experiments.dag.point import DAGResult
from linearity_lab.runs.events import Ended, PointFinished
from linearity_lab.settings.grammar import with_settings

Measured = list[tuple[int, float, float]]  # smallest in-degree, ΔK, ‖H‖


def main(settings: dict[str, Any] | None = None) -> Measured:
    """Return one entry per seed and width."""
    spec = with_settings(
        linearity_lab.presets()["zhu-fig2"], settings or {"widths": [32, 64, 128, 256]}
    )
    for event in linearity_lab.run(spec):
        if isinstance(event, PointFinished):
            print(f"{event.key}: {event.fraction:.0%}")
    assert isinstance(event, Ended)
    assert isinstance(event.result, DAGResult), event.reason
    runs = [run for point in event.result.points for run in point.of("drawn", "linear")]
    return [(run.min_in_degree, run.sup_change, run.hessian_norm) for run in runs]


def figure(measured: Measured) -> go.Figure:
    """Return a log-log plot with one marker per run and a guide of slope −1/2."""
    degrees, changes, norms = (np.array(column) for column in zip(*measured, strict=True))
    chart = go.Figure()
    chart.add_scatter(x=degrees, y=changes, name="kernel change ΔK", mode="markers")
    chart.add_scatter(
        x=degrees, y=norms, name="Hessian norm ‖H‖", mode="markers", marker={"symbol": "diamond"}
    )
    guide = changes[0] * (degrees / degrees[0]) ** -0.5
    chart.add_scatter(
        x=degrees, y=guide, name="m<sup>−1/2</sup>", mode="lines", line={"dash": "dash"}
    )
    chart.update_xaxes(type="log", title="smallest in-degree m").update_yaxes(type="log")
    return chart


if __name__ == "__main__":
    measured = main()
    for degree, change, norm in measured:
        print(f"in-degree {degree:4}: ΔK {change:.3g}, ‖H‖ {norm:.3g}")
    figure(measured).write_html("zhu_figure_2.html")
