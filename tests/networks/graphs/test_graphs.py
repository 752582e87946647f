"""Structure, JSON and verdicts of graphs, without JAX."""

import itertools
import json
import subprocess
import sys

import pytest

from ntk_core.errors import InvalidInput
from ntk_core.networks.graphs import (
    Edge,
    Graph,
    Group,
    dense_graph,
    example_graphs,
    graph_data,
    graph_verdict,
    in_degrees,
    parse_graph,
    residual_graph,
    unequal_graph,
)

EXAMPLES = example_graphs()
SHAPE = (4, 4, 3)


def chain(*names, **settings):
    path = ("input", *names, "output")
    groups = tuple(Group(name, **settings.get(name, {})) for name in names)
    return Graph(groups, tuple(Edge(*pair) for pair in itertools.pairwise(path)))


def test_graphs_do_not_start_jax():
    code = "import sys, ntk_core; ntk_core.graphs.example_graphs(); sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_layer_of_a_group_is_its_longest_path_from_the_input():
    assert dense_graph(3).depths == {"a": 1, "b": 2, "c": 3, "output": 4}
    assert EXAMPLES["irregular"].depths == {"a": 1, "b": 1, "c": 2, "d": 2, "e": 3, "output": 4}
    assert residual_graph(3).first_layers == ("a",)


def test_in_degrees_follow_edges_positions_and_powers():
    found = in_degrees(dense_graph(2, 0.5), 100, (10,), 3)
    assert {name: each.value for name, each in found.items()} == {"a": 5, "b": 55, "output": 105}
    shared = in_degrees(EXAMPLES["shared-weights"], 8, SHAPE, 2)
    assert {name: each.value for name, each in shared.items()} == {"a": 27, "b": 72, "output": 128}
    unequal = in_degrees(unequal_graph(), 100, (10,))
    assert (unequal["b"].value, unequal["c"].value) == (100, 1100)
    assert (unequal["b"].growth, unequal["c"].growth) == (1, 1.5)
    skips = in_degrees(residual_graph(3), 50, (10,))
    assert skips["c"].value == 50  # a fixed skip has no weight


@pytest.mark.parametrize("name", EXAMPLES)
def test_graphs_survive_json(name):
    text = json.dumps(graph_data(EXAMPLES[name]))
    assert parse_graph(text) == EXAMPLES[name]
    assert parse_graph(json.loads(text)) == EXAMPLES[name]


GROUPS = [{"name": "a"}]
EDGES = [{"source": "input", "target": "a"}, {"source": "a", "target": "output"}]


@pytest.mark.parametrize(
    ("data", "field", "shown"),
    [
        ("{", "graph", "JSON"),
        (b"\xff{", "graph", "text that is no JSON"),
        ("[1]", "graph", "groups and edges"),
        ("x" * 300_000, "graph", "300,000 characters"),
        ({"groups": GROUPS}, "edges", "a list"),
        ({"groups": GROUPS, "edges": EDGES, "layers": []}, "graph", "layers"),
        ({"groups": ["a"], "edges": EDGES}, "groups.1", "an object"),
        ({"groups": [{"name": 3}], "edges": EDGES}, "groups.1.name", "text"),
        ({"groups": [{"name": "a", "neurons": 3}], "edges": EDGES}, "groups.1", "neurons"),
        ({"groups": [{"name": "a", "size": "many"}], "edges": EDGES}, "groups.a.size", "integer"),
        (
            {"groups": [{"name": "a", "factor": float("nan")}], "edges": EDGES},
            "groups.a.factor",
            "above 0",
        ),
        ({"groups": [{"name": "a", "power": 9}], "edges": EDGES}, "groups.a.power", "up to 3"),
        ({"groups": [{"name": "<b>"}], "edges": EDGES}, "groups", "printable"),
        ({"groups": [{"name": "=1+1"}], "edges": EDGES}, "groups", "do not begin with"),
        ({"groups": GROUPS, "edges": [*EDGES, {"source": "a"}]}, "edges.3.target", "a name"),
        (
            {"groups": GROUPS, "edges": [{**EDGES[0], "kind": "thick"}, EDGES[1]]},
            "edges.input-a.kind",
            "dense",
        ),
        (
            {"groups": GROUPS, "edges": [{**EDGES[0], "drop_probability": "x"}, EDGES[1]]},
            None,
            "from 0",
        ),
    ],
)
def test_bad_json_is_one_sentence_with_its_field(data, field, shown):
    with pytest.raises(InvalidInput) as error:
        parse_graph(data)
    assert field in (None, error.value.field)
    assert shown in str(error.value)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    ("edges", "shown"),
    [
        ([Edge("a", "b"), Edge("a", "b", kind="shared")], "each edge once"),
        ([Edge("a", "b", kind="skip")], "group 'b'"),  # a fixed skip alone gives no in-degree
        ([Edge("a", "b", kind="shared")], "positions"),
        ([Edge("a", "b"), Edge("input", "b", kind="shared")], "one of both kinds"),
        ([Edge("a", "b"), Edge("a", "output", kind="skip")], "no activation"),
        ([Edge("a", "b", 0.5), Edge("a", "b", 0.1, kind="skip")], "0 for skip edges"),
        ([Edge("a", "b"), Edge("a", "b")], "a → b"),
        ([Edge("a", "b"), Edge("a", "z")], "z"),
        ([Edge("a", "b"), Edge("a", "input")], "input"),
        ([Edge("a", "b"), Edge("output", "b")], "output"),
    ],
)
def test_edges_that_do_not_fit_are_refused(edges, shown):
    with pytest.raises(InvalidInput, match=shown):
        Graph((Group("a"), Group("b")), (Edge("input", "a"), *edges, Edge("b", "output")))


@pytest.mark.parametrize(
    ("group", "field"),
    [
        (("input",), "groups"),
        (("c",), "groups"),
        (("a", 0), "groups.a.size"),
        (("a", 3, "sine"), "groups.a.activation"),
    ],
)
def test_groups_that_cannot_be_are_refused(group, field):
    edges = [("input", "c"), ("c", "output"), ("input", group[0]), (group[0], "output")]
    with pytest.raises(InvalidInput) as error:
        Graph((Group("c"), Group(*group)), tuple(Edge(*edge) for edge in edges))
    assert error.value.field == field
    with pytest.raises(InvalidInput, match="input-a"):
        Edge("input", "a", 1.0)


def test_skips_join_groups_of_equal_size_only():
    with pytest.raises(InvalidInput, match="'a' and 'b' differ"):
        Graph((Group("a"), Group("b", 3)), (*chain("a", "b").edges, Edge("a", "b", kind="skip")))


def test_shared_group_has_one_kernel_size_and_no_masks():
    shared = (Edge("input", "a", kind="shared"), Edge("a", "b", kind="shared"))
    edges = (*shared, Edge("input", "b", kind="shared", kernel_size=1), Edge("b", "output"))
    with pytest.raises(InvalidInput, match="one kernel size"):
        Graph((Group("a"), Group("b")), edges)
    with pytest.raises(InvalidInput, match="more than one source"):
        Graph((Group("a"), Group("b")), (*shared, Edge("b", "output", 0.5), Edge("a", "output")))


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("densenet-dropped", "wide"),
        ("irregular", "wide"),
        ("fully-connected", "wide"),
        ("few-bottleneck-neurons", "wide but for a few"),
        ("bottleneck-layer", "not wide"),
        ("bottleneck-repaired", "wide"),
        ("fixed-skips", "wide"),
        ("shared-weights", "wide"),
        ("unequal", "wide"),
    ],
)
def test_verdicts_are_those_of_the_theorems_and_of_appendix_f(name, outcome):
    assert graph_verdict(EXAMPLES[name], 100, SHAPE).outcome == outcome
    assert graph_verdict(EXAMPLES[name], 100, SHAPE, output="softmax").outcome == "nonlinear output"


def test_verdicts_name_the_group_its_in_degree_and_the_cause():
    harmful = graph_verdict(EXAMPLES["bottleneck-layer"], 100, (3,))
    assert not harmful.becomes_linear
    words = "All 100 neurons of group c have in-degree 2 (from b) at every width: not wide."
    assert [(reason.group, reason.words) for reason in harmful.reasons] == [("c", words)]
    few = graph_verdict(EXAMPLES["few-bottleneck-neurons"], 100, (3,))
    assert few.becomes_linear
    assert few.reasons[0].words == (
        "The 2 neurons of group few have in-degree 1 (from one): a vanishing share of the inputs "
        "of wide neurons."
    )
    assert (
        "m^1 to m^1.5: a polynomial ratio"
        in graph_verdict(EXAMPLES["unequal"], 100, (3,)).reasons[0].words
    )


def test_an_output_of_fixed_in_degree_is_narrow():
    found = graph_verdict(chain("a", "b", b={"size": 5}), 100, (3,))
    assert (found.outcome, found.reasons[0].group) == ("not wide", "output")
    assert (
        found.reasons[0].words
        == "The one neuron of the output has in-degree 5 (from b) at every width: not wide."
    )


def test_narrow_neurons_are_harmful_without_wide_neighbors():
    """Two neurons are harmful if they are the only inputs of the next group."""
    pairs = ("input a", "input one", "one few", "a b", "b output", "few c", "c output")
    groups = (Group("a"), Group("one", 1), Group("few", 2), Group("b"), Group("c"))
    graph = Graph(groups, tuple(Edge(*pair.split()) for pair in pairs))
    assert graph_verdict(graph, 100, (3,)).outcome == "not wide"


def test_a_fixed_skip_hands_a_narrow_group_on():
    names = ("a", "n", "c", "d")
    edges = [Edge(*pair.split()) for pair in ("input a", "a n", "n c", "a d", "d output")]
    groups = (Group("a"), Group("n", 2), Group("c"), Group("d"))
    graph = Graph(groups, (*edges, Edge("c", "d", kind="skip")))
    found = graph_verdict(graph, 100, (3,))
    assert found.outcome == "not wide"
    assert {reason.group for reason in found.reasons} <= set(names)
