"""Which marks a figure has, so that the words below it name no other."""

import plotly.graph_objects as go

from linearity_lab.charts.axes import GUIDE, SEEDS, is_marked

_DASHES = {"dash": "dashed", "dot": "dotted"}
_IS_EXCLUDED = 2  # width of the outline of runs that means leave out (charts/sweep.py)


def marks_of(figure: go.Figure) -> frozenset[str]:
    """Return the marks that a figure has, of ``words.pages.MARKS``."""
    found = set()
    for trace in figure.data:
        if isinstance(trace, go.Scatter) and trace.visible is not False:
            found |= _marks_of_trace(trace)
    for shape in figure.layout.shapes:
        found.add(_DASHES.get(shape.line.dash, ""))
    return frozenset(found - {""})


def _marks_of_trace(trace: go.Scatter) -> set[str]:
    mode = trace.mode or "lines"
    if trace.fill == "toself":
        return {"band"}
    if is_marked(trace, GUIDE):
        return {"guide"}
    found = set()
    if "lines" in mode:
        found.add(_DASHES.get(trace.line.dash, ""))
    if "markers" not in mode or trace.marker.symbol is None:
        return found
    symbols = (
        trace.marker.symbol if isinstance(trace.marker.symbol, tuple) else (trace.marker.symbol,)
    )
    if any(symbol.startswith("arrow") for symbol in symbols):
        found.add("arrow")
    if is_marked(trace, SEEDS):
        found.add("seeds")
        outlines = trace.marker.line.width
        if isinstance(outlines, tuple) and _IS_EXCLUDED in outlines:
            found.add("excluded")
    elif trace.marker.symbol == "circle-open" and trace.mode == "markers":
        found.add("ring")
    return found
