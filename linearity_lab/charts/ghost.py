"""Pale curves of an earlier run below the points of the current run."""

from typing import Any

import plotly.graph_objects as go

GHOST_OPACITY = 0.16  # pale enough not to be mistaken for a new point
_GHOST = {"ghost": True}


def above(figure: go.Figure, before: go.Figure) -> go.Figure:
    """Copy ``figure`` above the pale curves of ``before``, with axes that contain both.

    Where the axes measure something else, or nothing is a curve, ``figure`` itself.
    """
    ghosts = [_pale(trace) for trace in before.data if _is_curve(trace)]
    if _axes(figure) != _axes(before) or not ghosts or figure.frames:
        return figure
    # Last, so that the traces keep their numbers; of another z-order, Plotly would cut off the names beside the axes.
    both = go.Figure([*figure.data, *ghosts], figure.layout)
    for name in _axes(figure):
        ends = _both(figure.layout[name].range, before.layout[name].range)
        both.layout[name].update(range=ends, autorangeoptions=None)
        if own := _ticks(figure.layout[name]):
            ticks = _ticks(before.layout[name]) | own
            both.layout[name].update(tickvals=list(ticks), ticktext=list(ticks.values()))
    return both


def _is_curve(trace: Any) -> bool:
    """Whether a trace is a mean curve; text, bands and single seeds would be too pale to see."""
    is_seeds = isinstance(trace.meta, dict) and "seeds" in trace.meta
    is_opaque = trace.opacity is None or trace.opacity == 1
    return (
        isinstance(trace, go.Scatter)
        and "text" not in (trace.mode or "")
        and not trace.fill
        and is_opaque
        and not is_seeds
    )


def _pale(trace: go.Scatter) -> dict[str, Any]:
    hidden = {"showlegend": False, "legendgroup": None, "hoverinfo": "skip", "hovertemplate": None}
    return {**trace.to_plotly_json(), **hidden, "opacity": GHOST_OPACITY, "meta": _GHOST}


def _axes(figure: go.Figure) -> dict[str, tuple[Any, ...]]:
    """Map each axis to its quantity."""
    layout = figure.layout
    return {name: (layout[name].title.text, layout[name].type) for name in layout if name[:5] in ("xaxis", "yaxis")}


def _both(range_: tuple[float, float] | None, before: tuple[float, float] | None) -> list[float] | None:
    """Return a range that contains both, or None (Plotly's own) if one of them is not set."""
    if range_ is None or before is None:
        return None
    return [min(range_[0], before[0]), max(range_[1], before[1])]


def _ticks(axis: Any) -> dict[float, str]:
    return dict(zip(axis.tickvals or (), axis.ticktext or (), strict=False))
