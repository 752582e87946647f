"""Uploaded data projected to two directions, and their first images; free of Streamlit."""

import html
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from linearity_lab.charts.axes import finish
from linearity_lab.charts.chart import Chart
from linearity_lab.charts.style import nth_style
from linearity_lab.charts.vector import Stroke, thumbnail
from linearity_lab.data.uploads import EXAMPLE, Cleaned
from ntk_core.markup import shortened
from ntk_core.numbers import percent

MAX_SHOWN = 500
MAX_IMAGES = 16


def card() -> str:
    """Draw the table to begin with, a color for each class."""
    rows = np.genfromtxt(EXAMPLE, delimiter=",", skip_header=1, dtype=str)
    classes = {
        name: rows[rows[:, -1] == name, :2].astype(float).tolist()
        for name in dict.fromkeys(rows[:, -1])
    }
    return thumbnail(
        [
            Stroke(at, nth_style(index, "", "class").color, dots=True)
            for index, at in enumerate(classes.values())
        ]
    )


def projection(data: Cleaned) -> tuple[NDArray[np.float64], float]:
    """Return coordinates (n, 2) of inputs, and their share of all variance.

    The two directions are those of largest variance.

    At most MAX_SHOWN samples, evenly spaced; by the eigenvectors of the smaller of the two Gram
    matrices.
    """
    rows = shown_rows(data)
    x = data.x[rows].reshape(len(rows), -1).astype(np.float64)
    x -= x.mean(axis=0)
    scale = np.abs(x).max()
    x /= scale if scale > 0 else 1.0
    gram = x @ x.T
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values[::-1][:2], 0)
    vectors = vectors[:, ::-1][:, :2]
    total = float(np.trace(gram))
    return vectors * np.sqrt(values), float(values.sum() / total) if total > 0 else 0.0


def shown_rows(data: Cleaned) -> NDArray[np.intp]:
    """The samples that are drawn."""
    return np.unique(np.linspace(0, len(data.x) - 1, min(MAX_SHOWN, len(data.x))).astype(int))


def scatter(data: Cleaned, caption: Sequence[str] = ()) -> Chart:
    """Draw samples in the plane of largest variance.

    Each class has a color and symbol; without classes the target sets the color.
    """
    points, share = projection(data)
    rows = shown_rows(data)
    figure = go.Figure()
    for index, name in enumerate(data.class_names):
        chosen = points[data.labels[rows] == index]
        style = nth_style(index, name, "class")
        marker = {"color": style.color, "symbol": style.symbol, "size": 8, "opacity": 0.8}
        short = html.escape(shortened(name, 24), quote=False)  # Plotly parses tags
        figure.add_scatter(
            x=chosen[:, 0], y=chosen[:, 1], mode="markers", name=short, marker=marker
        )
    if not data.class_names:
        target = data.targets[rows, 0]
        marker = {
            "color": target,
            "colorscale": "Viridis",
            "size": 8,
            "colorbar": {"title": {"text": "y"}},
        }
        figure.add_scatter(
            x=points[:, 0], y=points[:, 1], mode="markers", name="target y", marker=marker
        )
    figure.update_xaxes(title="direction of largest variance")
    figure.update_yaxes(title="second direction")
    kinds = f"{len(data.class_names)} classes" if data.class_names else "a numeric target"
    words = (
        f"{len(data.x):,} samples with {kinds}; the two directions drawn contain "
        f"{percent(share)} of the variance."
    )
    return Chart(finish(figure), words, _rows(data), caption, "scatter")


def _rows(data: Cleaned) -> list[dict[str, object]]:
    if data.class_names:
        return [{"class": name, "samples": count} for name, count in data.counts.items()]
    return [
        {
            "target": index + 1,
            "lowest": float(column.min()),
            "mean": float(column.mean()),
            "highest": float(column.max()),
        }
        for index, column in enumerate(data.targets.T)
    ]


def images(data: Cleaned) -> list[tuple[NDArray[np.uint8], str]]:
    """Return (pixels, class) of some images, balanced over classes; none for other inputs."""
    if len(data.input_shape) != 3 or data.input_shape[-1] not in (1, 3):
        return []
    low = float(data.x.min())
    high = float(data.x.max())
    spread = high - low or 1.0
    groups = [np.flatnonzero(data.labels == index) for index in range(len(data.class_names))] or [
        np.arange(len(data.x))
    ]
    each = max(1, MAX_IMAGES // len(groups))
    chosen = [(row, group) for group, members in enumerate(groups) for row in members[:each]]
    found = []
    times = max(1, 72 // max(data.input_shape[:2]))
    for row, group in chosen[:MAX_IMAGES]:
        pixels = np.clip((data.x[row] - low) / spread * 255, 0, 255).astype(np.uint8)
        # Whole pixels are repeated, so that browsers do not smooth them.
        enlarged = np.repeat(np.repeat(pixels, times, axis=0), times, axis=1)
        found.append((enlarged, data.class_names[group] if data.class_names else ""))
    return found
