"""A network as boxes from input to outputs with skips; wider layers are taller."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.style import GUIDE_COLOR, Style, network_style
from linearity_lab.experiments.architectures.point import ArchitecturesSpec
from linearity_lab.networks.sizes import LayerSize, min_width
from linearity_lab.networks.spec import ArchitectureSpec
from ntk_core.networks.choices import ACTIVATIONS, PARAMETERIZATIONS
from ntk_core.networks.graphs import Skip
from ntk_core.numbers import width_label

DRAWING_HEIGHT = 190
_HALF = 0.27  # half the width of a box, of the distance between two
_MARKS = {"residual": "⊕", "concat": "‖", "attention": "⊙", "branch": ""}


def drawing(
    architecture: ArchitectureSpec,
    sizes: Sequence[LayerSize],
    input_shape: tuple[int, ...],
    width: int,
) -> go.Figure:
    """Draw boxes for input, hidden layers and outputs.

    Heights are logarithmic in the number of neurons.

    Frozen layers are gray; convolutions are stacks of channels; an arc with ⊕ adds what it
    skips, one with ‖ is concatenated, with ⊙ it mixes values; queries, keys and values
    branch off from one layer.
    """
    style = network_style(architecture.kind)
    features = [math.prod(input_shape), *(size.features for size in sizes)]
    most = max(2, *features, width)
    heights = [0.16 + 1.84 * math.log(count) / math.log(most) for count in features]
    skips = architecture.written_out.connections().skips
    ends = _ends(skips)

    shapes: list[dict[str, object]] = []
    trained = (False, *are_trained(architecture))
    for index, (height, is_trained) in enumerate(zip(heights, trained, strict=True)):
        copies = 3 if index and sizes[index - 1].positions > 1 else 1
        shapes += _boxes(index, height, style if is_trained else None, copies)
    shapes += [_arc(heights, skip, style) for skip in skips]

    figure = go.Figure()
    _add_words(figure, features, heights, layer_words(architecture, sizes, features[0]), width)
    if ends:
        figure.add_scatter(
            x=[_end(*end) + 0.2 for end in ends],
            y=[heights[high] / 2 + 0.17 for high, _ in ends],
            mode="text",
            text=[_MARKS[kind] for _, kind in ends],
            textfont={"size": 14},
            hoverinfo="skip",
        )
    # In one call: Plotly checks all shapes again whenever one is added.
    arrows = _arrows(heights, skips, style)
    figure.update_layout(showlegend=False, shapes=shapes, annotations=arrows)
    figure.update_xaxes(visible=False, range=[-0.55, len(heights) - 0.45], fixedrange=True)
    figure.update_yaxes(visible=False, range=[-1.45, 1.75 if skips else 1.15], fixedrange=True)
    return figure.update_layout(
        height=DRAWING_HEIGHT, margin={"l": 4, "r": 4, "t": 4, "b": 4}, dragmode=False
    )


def layer_words(
    architecture: ArchitectureSpec, sizes: Sequence[LayerSize], num_inputs: int
) -> list[str]:
    """Return the words of the input and of each layer, for hovers."""
    words = [f"input<br>{num_inputs:,} numbers"]
    for row in layer_rows(architecture, sizes):
        frozen = "" if row["trained"] else ", frozen"
        words.append(
            f"{row['layer']}<br>{row['kind']}{frozen}<br>in-degree {row['in-degree']:,}<br>"
            f"{row['neurons or channels']:,} neurons or channels<br>{row['parameters']:,} "
            "parameters"
        )
    return words


def _add_words(
    figure: go.Figure,
    features: Sequence[int],
    heights: Sequence[float],
    words: Sequence[str],
    width: int,
) -> None:
    """Add the number below each box, and its words at an invisible mark in the middle."""
    is_crowded = len(heights) > 8
    labels = []
    for count in features:
        number = f"{count}" if is_crowded else width_label(count)
        labels.append("m" if count == width else number)
    labels[0] = str(features[0])
    labels[-1] = str(features[-1])
    shared = {
        "x": list(range(len(heights))),
        "hovertext": words,
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
    below = [-height / 2 - 0.2 for height in heights]
    font = {"size": 11 if is_crowded else 14}
    figure.add_scatter(**shared, y=below, mode="text", text=labels, textfont=font)
    unseen = {"size": 26, "opacity": 0}
    figure.add_scatter(**shared, y=[0] * len(heights), mode="markers", marker=unseen)


def _ends(skips: Sequence[Skip]) -> list[tuple[int, str]]:
    """Return (layer, kind) of every end of a skip once, in order.

    Several skips may end in one layer.
    """
    different = {(skip.end, skip.kind) for skip in skips}
    return sorted(different)


def _arrows(
    heights: Sequence[float], skips: Sequence[Skip], style: Style
) -> list[dict[str, object]]:
    """Return the arrows between neighboring boxes, and those at the ends of skips."""
    apart = {skip.end for skip in skips if skip.kind == "branch"}  # no edge from the layer below
    joined = [index for index in range(1, len(heights)) if index not in apart]
    arrows = [_arrow((index - 1 + _HALF, 0), (index - _HALF, 0), GUIDE_COLOR) for index in joined]
    for high, kind in _ends(skips):
        x = _end(high, kind)
        top = heights[high] / 2
        arrows.append(_arrow((x, top + 0.2), (x, top), style.color))
    return arrows


def drawn(spec: ArchitecturesSpec, letter: str) -> Chart:
    """One of the networks at the largest width."""
    architecture = spec.networks[letter]
    width = max(spec.widths)
    sizes = spec.layers(letter, width)
    figure = drawing(architecture, sizes, spec.shapes().input_shape, width)
    words = drawing_words(architecture, sizes, width)
    rows = layer_rows(architecture, sizes)
    title = f"{letter}: {architecture.record.title}"
    return Chart(figure, words, rows, name=f"drawing_{letter.lower()}", heading=title)


def size_rows(spec: ArchitecturesSpec) -> list[dict[str, object]]:
    """Return one row per width.

    It has the number of parameters (with removed edges) and the smallest width or in-degree of each
    network.
    """
    rows = []
    for width in spec.widths:
        row: dict[str, object] = {"width m": width}
        for letter, architecture in spec.networks.items():
            sizes = spec.layers(letter, width)
            row[f"{letter}: parameters"] = sum(size.num_params for size in sizes)
            row[f"{letter}: smallest {_smallest(architecture)}"] = min_width(architecture, sizes)
        rows.append(row)
    return rows


def layer_rows(
    architecture: ArchitectureSpec, sizes: Sequence[LayerSize]
) -> list[dict[str, object]]:
    """Return one row per layer: kind (or its role if known), in-degree, neurons, parameters."""
    blocks = architecture.written_out.trained()
    kinds = [
        block.role or block.kind.replace("token-dense", "dense, shared by positions")
        for block in blocks
    ]
    layers = zip(sizes, are_trained(architecture), [*kinds, "dense"], strict=True)
    rows: list[dict[str, object]] = []
    for index, (size, trained, kind) in enumerate(layers, start=1):
        is_last = index == len(sizes)
        row = {
            "layer": "output layer" if is_last else f"hidden layer {index}",
            "kind": kind,
            "trained": trained,
            "in-degree": size.fan_in,
            "neurons or channels": size.features,
            "parameters": size.num_params,
        }
        rows.append(row)
    return rows


def description(architecture: ArchitectureSpec) -> str:
    """Describe the architecture: kind, depth, activation, biases, parameterization."""
    numbered = tuple(has for _, has in architecture.hidden)
    biased = numbered if architecture.uses("depth") else architecture.biases()
    layers = f"{len(biased)} hidden layer" + "s" * (len(biased) > 1)
    activations = (
        ", ".join(ACTIVATIONS[name].title for name in architecture.activations) or "no activation"
    )
    named = ", ".join(str(layer) for layer, has in enumerate(biased, start=1) if has)
    biases = "no biases"
    if all(biased):
        biases = "biases"
    elif any(biased):
        biases = f"biases in layer {named}"
    zero = {"symmetric": ", two mirrored copies", "subtracted": ", minus its output at w₀"}
    return (
        f"{architecture.record.title}, {layers}, {activations}, {biases}, "
        f"{PARAMETERIZATIONS[architecture.parameterization].title} parameterization"
        + (", output weights ±1" if architecture.output_weights == "signs" else "")
        + zero.get(architecture.initial_output, "")
    )


def drawing_words(architecture: ArchitectureSpec, sizes: Sequence[LayerSize], width: int) -> str:
    """Describe the drawing for screen readers."""
    neurons = ", ".join(f"{size.features:,}" for size in sizes[:-1])
    kinds = {skip.kind for skip in architecture.written_out.connections().skips}
    marks = {
        "residual": "⊕ adds the skip connection.",
        "concat": "‖ concatenates the skip connection.",
        "attention": "⊙ mixes values by queries and keys.",
    }
    return (
        f"{description(architecture)}. At width {width:,} its hidden layers have {neurons} "
        f"{'neurons or channels' if sizes[0].positions > 1 else 'neurons'}; the smallest "
        f"{_smallest(architecture)} is {min_width(architecture, sizes):,}."
        + "".join(f" {words}" for kind, words in marks.items() if kind in kinds)
    )


def _smallest(architecture: ArchitectureSpec) -> str:
    return "in-degree" if architecture.record.by_in_degree else "width"


def are_trained(architecture: ArchitectureSpec) -> tuple[bool, ...]:
    """Whether each layer, the output layer last, moves in training."""
    return architecture.written_out.trains(architecture.trained)


def _boxes(index: int, height: float, style: Style | None, copies: int) -> list[dict[str, object]]:
    color = style.color if style else GUIDE_COLOR
    band = style.band if style else "rgba(127, 138, 153, 0.2)"
    right = _HALF if copies == 1 else _HALF - 0.14  # copies need space beside each other
    boxes: list[dict[str, object]] = []
    for copy in reversed(range(copies)):
        shift = 0.07 * copy
        box = {
            "type": "rect",
            "x0": index - _HALF + shift,
            "x1": index + right + shift,
            "y0": -height / 2 + shift,
            "y1": height / 2 + shift,
            "line": {"color": color, "width": 2},
            "fillcolor": band,
        }
        boxes.append(box)
    return boxes


def _arrow(start: tuple[float, float], end: tuple[float, float], color: str) -> dict[str, object]:
    places = {"x": end[0], "y": end[1], "ax": start[0], "ay": start[1]}
    axes = {"xref": "x", "yref": "y", "axref": "x", "ayref": "y"}
    return {
        **places,
        **axes,
        "text": "",
        "showarrow": True,
        "arrowhead": 2,
        "arrowwidth": 1.6,
        "arrowcolor": color,
    }


def _end(high: int, kind: str) -> float:
    """End point of a skip: after the layer for a sum, before it for a concatenation."""
    return high if kind == "residual" else high - _HALF / 2


def _arc(heights: Sequence[float], skip: Skip, style: Style) -> dict[str, object]:
    low = skip.start
    high = skip.end
    end = _end(skip.end, skip.kind)
    top = 1.4 + 0.5 * (high - low) / (len(heights) - 1)
    path = f"M {low},{heights[low] / 2} C {low},{top} {end},{top} {end},{heights[high] / 2 + 0.08}"
    return {"type": "path", "path": path, "line": {"color": style.color, "width": 1.6}}
