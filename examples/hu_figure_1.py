"""Hu, Xiao, Adlam & Pennington (2020), Fig. 1.

Early in training, networks act as linear models of their inputs.

    PYTHONPATH=. python examples/hu_figure_1.py

Test losses of a two-layer network and its linear model first coincide, then diverge. The higher the
input dimension d, the closer they are. Writes hu_figure_1.html.
"""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

import linearity_lab
from linearity_lab.experiments.early_time.point import EarlyPoint, EarlyTimeResult
from linearity_lab.runs.events import Ended, PointProgress
from linearity_lab.settings.grammar import with_settings


def main(settings: dict[str, Any] | None = None) -> dict[int, EarlyPoint]:
    """Return the runs by input dimension."""
    spec = with_settings(
        linearity_lab.presets()["hu-fig1"], settings or {"values": [25, 100], "num_seeds": 1}
    )
    for event in linearity_lab.run(spec):
        if isinstance(event, PointProgress):
            print(f"\r{event.fraction:4.0%} {event.message:60}", end="")
    print()
    assert isinstance(event, Ended)
    assert isinstance(event.result, EarlyTimeResult), event.reason
    return {point.input_dim: point for point in event.result.points}


def figure(points: dict[int, EarlyPoint]) -> go.Figure:
    """Plot test losses against the step."""
    chart = go.Figure()
    for dim, point in points.items():
        run = point.runs[0]
        chart.add_scatter(x=run.steps, y=run.network.test_loss, name=f"network, d = {dim}")
        chart.add_scatter(
            x=run.steps,
            y=run.linear.test_loss,
            name=f"linear model, d = {dim}",
            line={"dash": "dash"},
        )
    chart.update_xaxes(title="step").update_yaxes(type="log", title="test loss")
    return chart


if __name__ == "__main__":
    points = main()
    for dim, point in points.items():
        run = point.runs[0]
        print(
            f"d = {dim}: difference {run.discrepancy:.2g} of the target's power, departs at step "
            f"{run.departure_step}"
        )
    figure(points).write_html("hu_figure_1.html")
