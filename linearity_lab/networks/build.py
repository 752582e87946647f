"""Networks from architecture specs."""

import dataclasses
from pkgutil import resolve_name

from linearity_lab.networks.spec import ArchitectureSpec
from ntk_core.networks.architectures import Mirrored, Network, Subtracted


def build_network(
    architecture: ArchitectureSpec, width: int, num_outputs: int, output: str, **more: object
) -> Network:
    """Build the network of this architecture, width and output.

    ``more`` has further settings of its class.
    """
    made = resolve_name(architecture.record.network)
    taken = {field.name for field in dataclasses.fields(made)}
    named = taken & set(type(architecture).model_fields)
    given = {name: getattr(architecture, name) for name in named if architecture.uses(name)}
    settings = {name: value for name, value in given.items() if value != "same"}  # as by default
    settings |= {
        "width": architecture.widths(width) if architecture.has_relative_widths else width,
        "num_outputs": num_outputs,
        "output": output,
        "output_signs": architecture.output_weights == "signs",
        "use_bias": tuple(bias for _, bias in architecture.hidden),
        "composition": architecture.written_out,
        **more,
    }
    if architecture.uses("width_is"):
        settings[architecture.width_is] = width
    if architecture.uses("grows") and architecture.grows == "rank":
        settings |= {"width": architecture.layer_width, "adapter_rank": width}
    net: Network = made(**{name: value for name, value in settings.items() if name in taken})
    match architecture.initial_output:
        case "symmetric":
            return Mirrored(net)
        case "subtracted":
            return Subtracted(net)
    return net
