"""Figures and claims of Zhu, Liu & Belkin 2022, in the order of the paper."""

from __future__ import annotations

from typing import Any

from ntk_core.data.spec import DatasetSpec
from ntk_core.dynamics.spec import TrainingSpec
from ntk_core.experiments.dag.spec import DAGSpec
from ntk_core.networks.graphs import (
    dense_graph,
    few_bottleneck_neurons_graph,
    residual_graph,
    shared_graph,
    unequal_graph,
)
from ntk_core.runs import Preset, Spec

_CHOICES = (
    "Sample size, resolution and standardization of CIFAR-2, drop probability, activation, widths, learning rate, loss "
    "threshold and the number of runs are our choice."
)
_GRAPH_CHOICES = "The graph is our choice. " + _CHOICES
_CIFAR2: dict[str, Any] = {
    "dataset": DatasetSpec(name="cifar2", num_samples=40, standardize="standard"),
    "training": TrainingSpec(loss_threshold=0.02, num_records=16, max_steps=3000),
}
_MIXTURE: dict[str, Any] = {
    "dataset": DatasetSpec(name="gaussian-mixture", num_samples=30, num_classes=2, input_dim=10),
    "training": TrainingSpec(loss_threshold=0.02, num_records=16, max_steps=3000),
}
_WIDE = (64, 128, 256, 512, 1024, 2048)


def _settings(common: dict[str, Any], **own: Any) -> dict[str, Any]:
    return {**common, **own}


def _preset(name: str, title: str, claim: str, source: str, our_choice: str, settings: dict[str, Any]) -> Preset[Spec]:
    larger = {**settings, "widths": _WIDE, "num_seeds": 5}
    return Preset(name, title, claim, source, our_choice, DAGSpec(**settings), DAGSpec(**larger))


PRESETS: tuple[Preset[Spec], ...] = (
    _preset(
        "zhu-fig2",
        "Dropped edges: ΔK and ‖H‖ against in-degree",
        "A DenseNet from which edges are removed at random becomes linear as its realized width, the smallest "
        "in-degree, grows: ΔK and ‖H‖ fall about as m^(-1/2).",
        "Zhu, Liu & Belkin 2022, Fig. 2",
        _CHOICES,
        _settings(_CIFAR2, graph=dense_graph(3, 0.5), widths=(32, 64, 128, 256, 512, 1024)),
    ),
    _preset(
        "zhu-preactivations",
        "Pre-activations of every layer",
        "Not only the output: every pre-activation, as a function of the weights below it, becomes linear with the "
        "width; those of the first layer are linear at every width.",
        "Zhu, Liu & Belkin 2022, Theorem 3.8",
        _CHOICES,
        _settings(_MIXTURE, graph=dense_graph(3), widths=(32, 128, 512), pre_activations=True, num_hessians=4),
    ),
    _preset(
        "zhu-bottleneck-neurons",
        "Bottleneck neurons, a layer of them, a repair",
        "Two neurons of in-degree 1 do no harm. A whole layer of in-degree 2 does; added connections repair it.",
        "Zhu, Liu & Belkin 2022, Fig. 3 and App. F",
        _GRAPH_CHOICES,
        _settings(
            _MIXTURE,
            graph=few_bottleneck_neurons_graph(),
            compared=("bottleneck-layer", "bottleneck-repaired"),
            widths=(32, 80, 200, 500),
            num_seeds=5,
        ),
    ),
    _preset(
        "zhu-skip",
        "Fixed skip connections",
        "Skip connections that are never trained keep the m^(-1/2): the same network with and without them.",
        "Zhu, Liu & Belkin 2022, App. D",
        _GRAPH_CHOICES,
        _settings(_MIXTURE, graph=residual_graph(3), compared=("fully-connected",), widths=(32, 100, 300, 1000)),
    ),
    _preset(
        "zhu-shared",
        "Shared weights",
        "Weights that are shared by all positions of an image, as in a convolution, keep the m^(-1/2); the width is "
        "the number of channels.",
        "Zhu, Liu & Belkin 2022, App. E",
        _GRAPH_CHOICES,
        _settings(_CIFAR2, graph=shared_graph(2), widths=(8, 16, 32, 64), num_hessians=1)
        | {"dataset": DatasetSpec(name="cifar2", num_samples=20, standardize="standard")},
    ),
    _preset(
        "zhu-unequal",
        "Unequal in-degrees",
        "In-degrees may differ by a power of the width: only the smallest one counts.",
        "Zhu, Liu & Belkin 2022, Assumption 3.5",
        _GRAPH_CHOICES,
        _settings(_MIXTURE, graph=unequal_graph(), widths=(16, 32, 64, 128, 256)),
    ),
    _preset(
        "zhu-nonlinear-output",
        "Nonlinear outputs",
        "With a nonlinear output the same graph does not become linear: ΔK and ‖H‖ stay large at every width.",
        "Zhu, Liu & Belkin 2022, §3 and §4",
        _GRAPH_CHOICES,
        _settings(
            _MIXTURE,
            graph=dense_graph(2),
            outputs=("linear", "softmax", "swish"),
            widths=(32, 100, 300, 1000),
            num_hessians=6,
        ),
    ),
    _preset(
        "zhu-pl",
        "PL* at initialization and in a ball",
        "Gradients at initialization stay above their bound at every width, and the smallest eigenvalue of the kernel "
        "survives in a ball as the width grows.",
        "Zhu, Liu & Belkin 2022, Proposition 4.4 and §4",
        _GRAPH_CHOICES + " So is the radius of the ball.",
        _settings(
            _MIXTURE,
            graph=dense_graph(2, 0.5),
            activation="relu",
            widths=(32, 64, 128, 256, 512),
            num_hessians=0,
            ball_radius=1.0,
        ),
    ),
)
