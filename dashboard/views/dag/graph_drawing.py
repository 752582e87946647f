"""A graph of groups as boxes, layer by layer, as high as they have neurons, with every edge between them."""

import math
from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go

from dashboard.charts.chart import Chart
from dashboard.charts.style import BLUE, GUIDE_COLOR, network_style
from ntk_core.networks.choices import ACTIVATIONS
from ntk_core.networks.graphs import INPUT, OUTPUT, Edge, Graph, Group, InDegree, Verdict, in_degrees

_HALF = 0.3  # half the width of a box, of the distance between two layers
_GAP = 1.25  # between boxes of one layer
_DASHES = {"dense": "solid", "shared": "solid", "skip": "dash"}
Place = tuple[float, float]


def graph_drawing(graph: Graph, width: int, input_shape: tuple[int, ...], num_outputs: int, found: Verdict) -> Chart:
    """Boxes for the input, every group and the outputs; heights are logarithmic in the number of neurons.

    Groups that speak against transition to linearity are vermilion. Dotted edges are removed in part, thick ones share
    their weights, dashed ones are fixed skips.
    """
    degrees = in_degrees(graph, width, input_shape, num_outputs)
    neurons = {INPUT: math.prod(input_shape), **{name: each.num_neurons for name, each in degrees.items()}}
    places, halves = _places(graph), _halves(neurons)
    against = {reason.group for reason in found.reasons if reason.against}
    shapes = [_box(places[name], halves[name], name, against) for name in neurons]
    arrows: list[dict[str, Any]] = []
    for edge in graph.edges:
        path, arrow = _edge(edge, places, halves)
        shapes.append(path)
        arrows.append(arrow)
    figure = go.Figure()
    names = list(neurons)
    figure.add_scatter(
        x=[places[name][0] for name in names],
        y=[places[name][1] for name in names],
        mode="text",
        text=[f"<b>{name}</b><br>{_count(graph, name, neurons[name])}" for name in names],
        textfont={"size": 13},
        hovertext=[_hover(graph, degrees.get(name), name, neurons[name]) for name in names],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    figure.update_layout(showlegend=False, shapes=shapes, annotations=arrows)
    most = max(abs(y) + halves[name] for name, (_, y) in places.items())
    last = max(x for x, _ in places.values())
    bend = max((_height(edge, places) for edge in graph.edges), default=0.0)
    figure.update_xaxes(visible=False, range=[-_HALF - 0.1, last + _HALF + 0.1], fixedrange=True)
    figure.update_yaxes(visible=False, range=[-most - 0.15, most + 0.15 + 0.78 * bend], fixedrange=True)
    height = round(60 + 85 * (2 * most + 0.78 * bend))
    figure.update_layout(height=min(max(height, 190), 520), margin={"l": 4, "r": 4, "t": 4, "b": 4}, dragmode=False)
    caption = [words] if (words := edge_words(graph)) else []
    return Chart(figure, _words(graph, width, found), _rows(graph, degrees), caption, "drawing")


def edge_words(graph: Graph) -> str:
    """What the kinds of lines that occur mean."""
    words = []
    if any(edge.drop_probability for edge in graph.edges):
        words.append("dotted: edges removed at random")
    if any(edge.kind == "shared" for edge in graph.edges):
        words.append("thick: shared weights")
    if any(edge.kind == "skip" for edge in graph.edges):
        words.append("dashed: fixed skip, weight 1")
    return "; ".join(words)


def _words(graph: Graph, width: int, found: Verdict) -> str:
    """The drawing for those who do not see it."""
    layers: dict[int, list[str]] = {}
    for name, depth in graph.depths.items():
        layers.setdefault(depth, []).append(name)
    listed = "; ".join(f"layer {depth}: {', '.join(names)}" for depth, names in layers.items())
    return (
        f"A graph of {len(graph.groups)} groups and {len(graph.edges)} edges between them; {listed}. At width "
        f"{width:,} in-degrees outside the first layer go from {found.min_in_degree:,.4g} to "
        f"{found.max_in_degree:,.4g}. Verdict: {found.outcome}."
    )


def _rows(graph: Graph, degrees: Mapping[str, InDegree]) -> list[dict[str, object]]:
    """One row per group and for the output, in the order of evaluation."""
    return [
        {
            "group": name,
            "layer": graph.depths[name],
            "neurons": degree.num_neurons,
            "expected in-degree": degree.value,
            "from": ", ".join(degree.sources),
            "in-degree grows as": f"m^{degree.growth:g}" if degree.growth else "stays the same",
        }
        for name, degree in degrees.items()
    ]


def _places(graph: Graph) -> dict[str, Place]:
    layers: dict[int, list[str]] = {0: [INPUT]}
    for name, depth in graph.depths.items():
        layers.setdefault(depth, []).append(name)
    return {
        name: (float(depth), _GAP * ((len(names) - 1) / 2 - row))
        for depth, names in layers.items()
        for row, name in enumerate(names)
    }


def _halves(neurons: dict[str, int]) -> dict[str, float]:
    largest = math.log(max(2, *neurons.values()))
    return {name: 0.26 + 0.26 * math.log(count) / largest for name, count in neurons.items()}


def _box(place: Place, half: float, name: str, against: set[str]) -> dict[str, Any]:
    style = network_style("bottleneck" if name in against else "fully-connected")
    plain = name == INPUT
    return {
        "type": "rect",
        "x0": place[0] - _HALF,
        "x1": place[0] + _HALF,
        "y0": place[1] - half,
        "y1": place[1] + half,
        "line": {"color": GUIDE_COLOR if plain else style.color, "width": 2.5 if name in against else 2},
        "fillcolor": "rgba(127, 138, 153, 0.2)" if plain else style.band,
    }


def _height(edge: Edge, places: dict[str, Place]) -> float:
    """How far an edge bends upwards: over the layers that it passes."""
    (x0, _), (x1, _) = places[edge.source], places[edge.target]
    return 0.0 if x1 - x0 < 1.5 else 0.75 + 0.32 * (x1 - x0)


def _edge(edge: Edge, places: dict[str, Place], halves: dict[str, float]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The line of an edge, and the head of its arrow."""
    (x0, y0), (x1, y1) = places[edge.source], places[edge.target]
    bend = _height(edge, places)
    color = BLUE if edge.kind == "skip" else GUIDE_COLOR
    if bend:
        start, end = (x0 + 0.1, y0 + halves[edge.source]), (x1 - 0.12, y1 + halves[edge.target])
        top = max(y0, y1) + bend
        path = f"M {start[0]},{start[1]} C {start[0] + 0.2},{top} {end[0] - 0.2},{top} {end[0]},{end[1]}"
        tail = (end[0] - 0.03, end[1] + 0.1)
    else:
        down = 0.12 if edge.kind == "skip" else 0.0
        start, end = (x0 + _HALF, y0 - down), (x1 - _HALF, y1 - down)
        path = f"M {start[0]},{start[1]} L {end[0]},{end[1]}"
        tail = (end[0] - 0.1 * (end[0] - start[0]), end[1] - 0.1 * (end[1] - start[1]))
    dash = "dot" if edge.drop_probability else _DASHES[edge.kind]
    line = {"color": color, "width": 4 if edge.kind == "shared" else 1.6, "dash": dash}
    arrow = {
        **{"x": end[0], "y": end[1], "ax": tail[0], "ay": tail[1]},
        **{"xref": "x", "yref": "y", "axref": "x", "ayref": "y"},
        **{"text": "", "showarrow": True, "arrowhead": 2, "arrowwidth": 1.6, "arrowcolor": color},
    }
    return {"type": "path", "path": path, "line": line}, arrow


def _count(graph: Graph, name: str, count: int) -> str:
    """How many neurons, as the width that they follow: ``m``, ``0.5 m``, ``m^1.5``, or a number."""
    group = graph.group.get(name)
    if group is None or group.size is not None:
        return f"{count:,}" if group is None or name not in graph.positioned else f"{group.size:,} channels"
    return _law(group) + (" channels" if name in graph.positioned else "")


def _law(group: Group) -> str:
    factor = "" if group.factor == 1 else f"{group.factor:g} "
    return factor + ("m" if group.power == 1 else f"m<sup>{group.power:g}</sup>")


def _hover(graph: Graph, degree: InDegree | None, name: str, count: int) -> str:
    if degree is None:
        return f"input<br>{count:,} numbers"
    group = graph.group.get(name)
    activation = f"<br>{ACTIVATIONS[group.activation].title}" if group and group.activation else ""
    layer = "outputs" if name == OUTPUT else f"group {name}"
    return (
        f"{layer}, layer {graph.depths[name]}<br>{count:,} neurons{activation}<br>"
        f"in-degree {degree.value:,.4g}, from {', '.join(degree.sources)}"
    )
