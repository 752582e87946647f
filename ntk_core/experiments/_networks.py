"""From the architecture of a spec to a network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ntk_core.architectures import Bottleneck, ConvNet, DenseNet, FullyConnected, MixedNet, Network, ResNet
from ntk_core.spec_parts import ArchitectureSpec

_NETWORKS: dict[str, Callable[..., Network]] = {
    "fully-connected": FullyConnected,
    "bottleneck": Bottleneck,
    "resnet": ResNet,
    "densenet": DenseNet,
    "convnet": ConvNet,
    "mixed": MixedNet,
}


def build_network(architecture: ArchitectureSpec, width: int, num_outputs: int, output: str) -> Network:
    """The network of this architecture, width and output nonlinearity.

    Raises:
        InvalidInput: for a combination of settings that the network refuses.
    """
    settings: dict[str, Any] = {
        name: getattr(architecture, name)
        for name in type(architecture).model_fields
        if name != "kind" and architecture.uses(name)
    }
    return _NETWORKS[architecture.kind](width=width, num_outputs=num_outputs, output=output, **settings)
