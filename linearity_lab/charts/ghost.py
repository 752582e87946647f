"""What an earlier run showed stays in sight below the points of the one that is under way."""

from typing import Any

import plotly.graph_objects as go

GHOST_OPACITY = 0.16  # so pale that nothing of it is taken for a new point
_GHOST = {"ghost": True}


def above(figure: go.Figure, before: go.Figure) -> go.Figure:
    """A copy of ``figure`` above the pale curves of ``before``, with axes that hold both.

    Where the axes measure something else, or nothing is a curve, ``figure`` itself.
    """
    ghosts = [_pale(trace) for trace in before.data if _is_curve(trace)]
    if _axes(figure) != _axes(before) or not ghosts or figure.frames:
        return figure
    both = go.Figure([*figure.data, *ghosts], figure.layout)
    for name in _axes(figure):
        ends = _both(figure.layout[name].range, before.layout[name].range)
        both.layout[name].update(range=ends, autorangeoptions=None)
        if own := _ticks(figure.layout[name]):
            ticks = _ticks(before.layout[name]) | own
            both.layout[name].update(tickvals=list(ticks), ticktext=list(ticks.values()))
    return both


def _is_curve(trace: Any) -> bool:
    """Neither words nor bands nor single seeds, which would be too pale to see and only cost time."""
    is_seeds = isinstance(trace.meta, dict) and "seeds" in trace.meta
    stands_out = trace.opacity is None or trace.opacity == 1
    return (
        isinstance(trace, go.Scatter)
        and "text" not in (trace.mode or "")
        and not trace.fill
        and stands_out
        and not is_seeds
    )


def _pale(trace: go.Scatter) -> dict[str, Any]:
    hidden = {"showlegend": False, "legendgroup": None, "hoverinfo": "skip", "hovertemplate": None}
    return {**trace.to_plotly_json(), **hidden, "opacity": GHOST_OPACITY, "zorder": -1, "meta": _GHOST}


def _axes(figure: go.Figure) -> dict[str, tuple[Any, ...]]:
    """Axis → what it measures."""
    layout = figure.layout
    return {name: (layout[name].title.text, layout[name].type) for name in layout if name[:5] in ("xaxis", "yaxis")}


def _both(range_: tuple[float, float] | None, before: tuple[float, float] | None) -> list[float] | None:
    """A range that holds both; None, which Plotly fits to what is drawn, where one of them is not set."""
    if range_ is None or before is None:
        return None
    return [min(range_[0], before[0]), max(range_[1], before[1])]


def _ticks(axis: Any) -> dict[float, str]:
    return dict(zip(axis.tickvals or (), axis.ticktext or (), strict=False))
