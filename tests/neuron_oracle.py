"""Naive oracle of graphs in NumPy: single neurons, as in Zhu, Liu & Belkin 2022, Eq. 2.

Sums over single edges, a backward pass over single neurons, and Hessians by complex steps (the
imaginary part of a gradient at w + ih is exact to rounding), without groups, masks or matrices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

ACTIVATIONS = {
    "tanh": (np.tanh, lambda z: 1 - np.tanh(z) ** 2),
    "quadratic": (lambda z: z * z / 2, lambda z: z),
    "identity": (lambda z: z, np.ones_like),
    "sigmoid": (lambda z: 1 / (1 + np.exp(-z)), lambda z: np.exp(-z) / (1 + np.exp(-z)) ** 2),
}


class Neuron(NamedTuple):
    """Activation, incoming (neuron, weight index) pairs, and neurons added to the output."""

    activation: str
    incoming: list[tuple[int, int]]
    skips: list[int]


class Neurons(NamedTuple):
    """All neurons in order of evaluation, inputs first; output neurons; one vector of weights."""

    num_inputs: int
    neurons: list[Neuron]
    outputs: list[int]
    weights: np.ndarray


def written_out(net, params, num_inputs) -> Neurons:
    """Neurons of a DAGNetwork with dense edges and fixed skips."""
    index = {"input": list(range(num_inputs))}
    neurons: list[Neuron] = []
    weights: list[float] = []
    for name in net.depths:
        sources = [u for edge in net.graph.parents[name] for u in index[edge.source]]
        weight = np.asarray(params[name]["weight"])
        mask = np.asarray(params[name].get("mask", np.ones_like(weight)))
        skips = [index[edge.source] for edge in net.graph.incoming[name] if not edge.trained]
        activation = (
            "identity" if name == "output" else (net.graph.group[name].activation or net.activation)
        )
        index[name] = []
        for v in range(weight.shape[1]):
            incoming = []
            for row, u in enumerate(sources):
                if mask[row, v]:
                    incoming.append((u, len(weights)))
                    weights.append(weight[row, v])
            index[name].append(num_inputs + len(neurons))
            neurons.append(Neuron(activation, incoming, [group[v] for group in skips]))
    return Neurons(num_inputs, neurons, index["output"], np.asarray(weights))


def evaluate(graph: Neurons, weights, x):
    """(all α, all z) for one input x, complex where the weights are."""
    alpha = [*x.astype(weights.dtype)]
    z = [None] * graph.num_inputs
    for neuron in graph.neurons:
        total = sum(weights[w] * alpha[u] for u, w in neuron.incoming) / np.sqrt(
            len(neuron.incoming)
        )
        z.append(total)
        alpha.append(ACTIVATIONS[neuron.activation][0](total) + sum(alpha[u] for u in neuron.skips))
    return alpha, z


def gradient(graph: Neurons, weights, x, output):
    """∂f_output/∂w, one number per edge."""
    alpha, z = evaluate(graph, weights, x)
    back = [0.0] * len(alpha)
    back[graph.outputs[output]] = 1.0
    result = np.zeros_like(weights)
    for v in reversed(range(graph.num_inputs, len(alpha))):
        neuron = graph.neurons[v - graph.num_inputs]
        for u in neuron.skips:
            back[u] += back[v]
        slope = back[v] * ACTIVATIONS[neuron.activation][1](z[v]) / np.sqrt(len(neuron.incoming))
        for u, w in neuron.incoming:
            result[w] += slope * alpha[u]
            back[u] += slope * weights[w]
    return result


def outputs(graph: Neurons, x):
    """f of each input, (n, C)."""
    return np.asarray(
        [[evaluate(graph, graph.weights, row)[0][v] for v in graph.outputs] for row in x]
    )


def kernel(graph: Neurons, x):
    """K, (n, n, C, C)."""
    jacobian = [
        [gradient(graph, graph.weights, row, c) for c in range(len(graph.outputs))] for row in x
    ]
    return np.einsum("iap,jbp->ijab", jacobian, jacobian)


def hessian(graph: Neurons, x, output=0, step=1e-30):
    """∂²f_output/∂w² for one input, (p, p)."""
    columns = [
        gradient(graph, graph.weights + 1j * step * unit, x, output).imag / step
        for unit in np.eye(len(graph.weights))
    ]
    return np.stack(columns, axis=1)
