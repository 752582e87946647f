"""From the architecture of a spec to a network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ntk_core.networks.architectures import (
    Bottleneck,
    Composed,
    ConvNet,
    DenseNet,
    FullyConnected,
    Mirrored,
    MixedNet,
    Network,
    ResNet,
    Subtracted,
)
from ntk_core.networks.spec import ArchitectureSpec

_NETWORKS: dict[str, Callable[..., Network]] = {
    "fully-connected": FullyConnected,
    "bottleneck": Bottleneck,
    "resnet": ResNet,
    "densenet": DenseNet,
    "convnet": ConvNet,
    "mixed": MixedNet,
    "composed": Composed,
}


# Settings that a network takes under the same name.
_DIRECT = (
    "depth",
    "activation",
    "parameterization",
    "trained",
    "bottleneck_width",
    "bottleneck_layer",
    "skip_every",
    "drop_probability",
    "kernel_size",
    "padding",
    "readout",
    "pool_size",
    "composition",
)


def build_network(architecture: ArchitectureSpec, width: int, num_outputs: int, output: str) -> Network:
    """The network of this architecture, width and output nonlinearity.

    Raises:
        InvalidInput: for a combination of settings that the network refuses.
    """
    settings: dict[str, Any] = {name: getattr(architecture, name) for name in _DIRECT if architecture.uses(name)}
    if not architecture.uses("composition"):
        settings["use_bias"] = architecture.biases()
    if architecture.uses("relative_widths") and architecture.relative_widths is not None:
        settings["width"] = architecture.widths(width)
    if architecture.uses("bottleneck_activation") and architecture.bottleneck_activation != "same":
        settings["bottleneck_activation"] = architecture.bottleneck_activation
    net = _NETWORKS[architecture.kind](
        **{
            "width": width,
            "num_outputs": num_outputs,
            "output": output,
            "output_signs": architecture.output_weights == "signs",
            **settings,
        }
    )
    match architecture.initial_output:
        case "symmetric":
            return Mirrored(net)
        case "subtracted":
            return Subtracted(net)
    return net
