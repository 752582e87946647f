"""From the architecture of a spec to a network."""

import dataclasses
from pkgutil import resolve_name
from typing import Any

from ntk_core.networks.architectures import Mirrored, Network, Subtracted
from ntk_core.networks.spec import ArchitectureSpec


def build_network(architecture: ArchitectureSpec, width: int, num_outputs: int, output: str, **more: Any) -> Network:
    """The network of this architecture, width and output nonlinearity; ``more`` is what its class alone can be given.

    Raises:
        InvalidInput: for a combination of settings that the network refuses.
    """
    made = resolve_name(architecture.record.network)
    taken = {field.name for field in dataclasses.fields(made)}
    named = taken & set(type(architecture).model_fields)
    given = {name: getattr(architecture, name) for name in named if architecture.uses(name)}
    settings: dict[str, Any] = {name: value for name, value in given.items() if value != "same"}  # as by default
    settings |= {
        "width": architecture.widths(width) if architecture.has_relative_widths else width,
        "num_outputs": num_outputs,
        "output": output,
        "output_signs": architecture.output_weights == "signs",
        "use_bias": architecture.biases(),
        "composition": architecture.written_out,
        **more,
    }
    if architecture.uses("width_is"):
        settings[architecture.width_is] = width
    net: Network = made(**{name: value for name, value in settings.items() if name in taken})
    match architecture.initial_output:
        case "symmetric":
            return Mirrored(net)
        case "subtracted":
            return Subtracted(net)
    return net
