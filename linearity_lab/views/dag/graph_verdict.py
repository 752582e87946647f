"""The canvas's view of a graph: its verdict with reasons and in-degrees, or its error."""

import math
from typing import Any

from linearity_lab.views.dag.canvas import words
from linearity_lab.views.dag.edits import drawable
from ntk_core.data import dataset_shapes
from ntk_core.errors import InvalidInput
from ntk_core.experiments.dag.spec import DAGSpec
from ntk_core.networks.graphs import (
    GRAPH_TITLES,
    INPUT,
    OUTPUT,
    Graph,
    Verdict,
    example_graphs,
    graph_verdict,
    in_degrees,
    parse_graph,
)


def sizes(spec: DAGSpec) -> dict[str, Any]:
    """What boxes need beside the graph: the width that is shown, the largest, and the numbers of inputs and outputs."""
    shapes = dataset_shapes(spec.dataset.name, **spec.dataset.options())
    return {"width": spec.widths[-1], "ends": {INPUT: math.prod(shapes.input_shape), OUTPUT: shapes.num_outputs}}


def judged(text: str, spec: DAGSpec, sentence: str) -> dict[str, Any]:
    """Return the verdict on the graph in ``text``; with a ``sentence`` of the form against it, that and no verdict."""
    try:
        graph = parse_graph(text)
    except InvalidInput as error:
        return {
            "outcome": "invalid",
            "title": words()["invalid"],
            "reasons": [f"{error}."],
            "at": at_fault(error, text),
        }
    if sentence:
        return {"outcome": "invalid", "title": words()["invalid"], "reasons": [sentence]}
    shapes, width = dataset_shapes(spec.dataset.name, **spec.dataset.options()), spec.widths[-1]
    found = _verdict(graph, spec)
    degrees = in_degrees(graph, width, shapes.input_shape, shapes.num_outputs)
    ends = dict.fromkeys(f"{degree:,.4g}" for degree in (found.min_in_degree, found.max_in_degree))
    grows = f"In-degrees {' to '.join(ends)} at m = {width:,}."
    return {
        "outcome": "good" if found.becomes_linear else "bad",
        "title": words()[found.outcome],
        "reasons": [*(reason.words for reason in found.reasons), grows],
        "at": [reason.group for reason in found.reasons if reason.against],
        "degrees": {name: each.value for name, each in degrees.items()},
        "counts": {name: dict(zip(each.sources, each.counts, strict=True)) for name, each in degrees.items()},
        "channels": sorted(graph.positioned),
        "summary": _summary(graph, width, found),
    }


def beside(spec: DAGSpec) -> list[str]:
    """Return sentences on the compared graphs of the gallery, and on nonlinear outputs beside a linear one."""
    shapes = dataset_shapes(spec.dataset.name, **spec.dataset.options())
    others = {
        name: graph_verdict(example_graphs()[name], spec.widths[-1], shapes.input_shape) for name in spec.compared
    }
    sentences = [
        f"For comparison, {GRAPH_TITLES[name]}: {each.outcome}. {each.reasons[0].words}"
        for name, each in others.items()
    ]
    nonlinear = [output for output in spec.outputs if output != "linear"]
    if 0 < len(nonlinear) < len(spec.outputs):
        sentences.append("With " + ", ".join(nonlinear) + " outputs no graph becomes linear: ‖H‖ stays of order 1.")
    return sentences


def at_fault(error: InvalidInput, text: str) -> list[str]:
    """The groups, and edges as ``a → b``, that a sentence about a graph names."""
    data = drawable(text)
    names = [INPUT, OUTPUT, *(each.get("name", "") for each in data["groups"])]
    edges = [(each.get("source", ""), each.get("target", "")) for each in data["edges"]]
    path = error.given.split(" → ")
    found = {
        name
        for name in names
        if error.field.startswith((f"groups.{name}.", f"edges.{name}."))
        or error.field == f"edges.{name}"
        or repr(name) in error.given
        or (name in path and error.field in ("groups", "edges"))
    }
    found |= {
        f"{one} → {other}"
        for one, other in edges
        if error.field.startswith(f"edges.{one}-{other}.") or f"{one} → {other}" in error.given
    }
    return sorted(found)


def _verdict(graph: Graph, spec: DAGSpec) -> Verdict:
    shapes = dataset_shapes(spec.dataset.name, **spec.dataset.options())
    output = spec.outputs[0] if "linear" not in spec.outputs else "linear"
    return graph_verdict(graph, spec.widths[-1], shapes.input_shape, output=output, num_outputs=shapes.num_outputs)


def _summary(graph: Graph, width: int, found: Verdict) -> str:
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
