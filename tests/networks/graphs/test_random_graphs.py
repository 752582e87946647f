"""500 random graphs: built and equal to single neurons, or refused with the right reason.

The slow tier evaluates a fortieth of them and compiles fewer; ``make programs`` evaluates all.
"""

import jax
import numpy as np
import pytest

from ntk_core.errors import InvalidInput
from ntk_core.hessians import hessian_norm
from ntk_core.kernels import empirical_ntk, pre_output_ntk
from ntk_core.networks.architectures import DAGNetwork
from ntk_core.networks.graphs import Edge, Group
from tests import neuron_oracle
from tests.cases import Case, inputs, random_params
from tests.plain_derivatives import largest, small_hessian
from tests.tiers import EXHAUSTIVE

NUM_GRAPHS, NUM_INPUTS = 500, 3
SHARES = range(40 if EXHAUSTIVE else 1)


def random_parts(rng):
    """Groups and edges, mostly forward, some backward, self-referential, missing or skipping."""
    names = list(rng.permutation(list("abcde")[: rng.integers(1, 6)]))
    groups = tuple(
        Group(
            str(name),
            int(rng.integers(1, 4)),
            rng.choice([None, "quadratic", "identity"], p=[0.6, 0.2, 0.2]),
        )
        for name in names
    )
    order = ["input", *names, "output"]
    edges = []
    for i, source in enumerate(order[:-1]):
        for j, target in enumerate(order[1:], start=1):
            likely = 0.55 if j == i + 1 else 0.4 if j > i else 0.012
            if rng.random() < likely + 0.35 * (j == i + 1):
                edges.append(Edge(str(source), str(target), float(rng.choice([0, 0, 0.4]))))
            if j > i > 0 and j < len(order) - 1 and rng.random() < 0.06:
                edges.append(Edge(str(source), str(target), kind="skip"))
    return groups, tuple(edges)


def defects(groups, edges):
    """Names of groups that make the graph impossible, by reachability matrices.

    Empty for possible graphs.
    """
    names = ["input", *(group.name for group in groups), "output"]
    size = {group.name: group.size for group in groups}
    step, trained = np.zeros((len(names),) * 2, int), np.zeros((len(names),) * 2, int)
    for edge in edges:
        step[names.index(edge.source), names.index(edge.target)] = 1
        trained[names.index(edge.source), names.index(edge.target)] |= edge.kind == "dense"
    reach = np.sum([np.linalg.matrix_power(step, k) for k in range(1, len(names) + 1)], axis=0) > 0
    found = {names[i] for i in range(len(names)) if reach[i, i]}  # on a cycle
    found |= {names[j] for j in range(1, len(names)) if not trained[:, j].any()}  # in-degree 0
    found |= {names[i] for i in range(len(names) - 1) if not reach[i, -1]}  # no path to the output
    found |= {
        edge.target
        for edge in edges
        if edge.kind == "skip" and edge.source != "input" and size[edge.source] != size[edge.target]
    }
    return found


def longest_paths(groups, edges):
    """Longest path from the input to every group, by trying all paths."""
    found: dict[str, int] = {}

    def walk(name, length):
        found[name] = max(found.get(name, 0), length)
        for edge in edges:
            if edge.source == name:
                walk(edge.target, length + 1)

    walk("input", 0)
    return {name: length for name, length in found.items() if name != "input"}


@pytest.fixture(scope="module")
def graphs():
    rng = np.random.default_rng(0)
    return [random_parts(rng) for _ in range(NUM_GRAPHS)]


def accepted(graphs):
    """Index and network of every graph that can be built, with two outputs."""
    for index, (groups, edges) in enumerate(graphs):
        if not defects(groups, edges):
            yield (
                index,
                DAGNetwork(
                    groups=groups, edges=edges, num_outputs=2, activation="tanh", use_bias=False
                ),
            )


def of_neurons(index, net):
    """(Neurons of a network, its parameters, two inputs)."""
    case = Case("", net, (NUM_INPUTS,))
    params, x = random_params(case, index), inputs(case, 2, index)
    return neuron_oracle.written_out(net, params, NUM_INPUTS), params, x


def test_impossible_random_graphs_are_refused_by_name(graphs):
    refused = 0
    for groups, edges in graphs:
        wrong = defects(groups, edges)
        if not wrong:
            net = DAGNetwork(groups=groups, edges=edges, use_bias=False)
            assert net.depths == longest_paths(groups, edges)
            continue
        refused += 1
        with pytest.raises(InvalidInput) as error:
            DAGNetwork(groups=groups, edges=edges, use_bias=False)
        assert error.value.field.startswith(("groups", "edges"))
        assert any(name in str(error.value) for name in wrong), (str(error.value), wrong)
    assert 100 < refused < 400


@pytest.mark.long
@pytest.mark.parametrize("share", SHARES)
def test_random_graphs_equal_their_neurons(graphs, share, x64):
    chosen = list(accepted(graphs))[share::40]
    assert len(chosen) > 5
    with jax.disable_jit():  # compilation of five hundred different programs takes half an hour
        for index, net in chosen:
            neurons, params, x = of_neurons(index, net)
            kernel, values, _ = pre_output_ntk(net, params, x)
            np.testing.assert_allclose(
                values, neuron_oracle.outputs(neurons, x), rtol=1e-10, atol=1e-10
            )
            expected = neuron_oracle.kernel(neurons, x)
            np.testing.assert_allclose(
                kernel, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max()
            )
            degrees = [len(each.incoming) for each in neurons.neurons]
            first = sum(net.sizes[name] for name in net.graph.first_layers if name != "output")
            judged = degrees[first:] or degrees
            assert net.in_degree_range(params) == (min(judged), max(judged))


@pytest.mark.long
def test_random_graphs_have_the_hessians_of_their_neurons(graphs, x64):
    """The small space has all non-zero eigenvalues of the full Hessian; one program per graph."""
    for index, net in list(accepted(graphs))[1::20]:
        neurons, params, x = of_neurons(index, net)
        hessian = neuron_oracle.hessian(neurons, x[0])
        found, expected = (
            np.linalg.eigvalsh(small_hessian(net, params, x[0])[0]),
            np.linalg.eigvalsh(hessian),
        )
        size = max(len(found), len(expected))
        found, expected = (
            np.sort(np.pad(each, (0, size - len(each)))) for each in (found, expected)
        )
        np.testing.assert_allclose(
            found, expected, rtol=0, atol=1e-10 * np.abs(expected).max() + 1e-12
        )


@pytest.mark.slow  # compiles two large programs
def test_compiled_kernels_and_norms_are_those_of_the_neurons(graphs, x64):
    """By the public functions, for two graphs, since each program takes seconds to compile."""
    for index, net in [pair for pair in accepted(graphs) if len(pair[1].groups) > 2][:2]:
        neurons, params, x = of_neurons(index, net)
        expected = neuron_oracle.kernel(neurons, x)
        np.testing.assert_allclose(empirical_ntk(net, params, x), expected, rtol=1e-10, atol=1e-10)
        norm = largest(neuron_oracle.hessian(neurons, x[0]))
        assert hessian_norm(net, params, x[0]).value == pytest.approx(norm, rel=1e-10, abs=1e-12)
