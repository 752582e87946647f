"""From the architecture of a spec to a network."""

from __future__ import annotations

from ntk_core.architectures import FullyConnected, Network
from ntk_core.specs import ArchitectureSpec


def build_network(architecture: ArchitectureSpec, width: int, num_outputs: int, output: str) -> Network:
    """The network of this architecture, width and output nonlinearity."""
    return FullyConnected(
        width=width,
        depth=architecture.depth,
        num_outputs=num_outputs,
        activation=architecture.activation,
        output=output,
        parameterization=architecture.parameterization,
        use_bias=architecture.use_bias,
    )
