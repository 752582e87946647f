"""Networks as programs over layers that are linear in their weights."""

from ntk_core.networks.architectures._activations import (
    Activation,
    Pointwise,
    activation_function,
    activation_of,
    largest_slope,
    output_function,
    output_jacobian,
    slope_jumps,
)
from ntk_core.networks.architectures._assembly import Assembly
from ntk_core.networks.architectures._convolution import Convolution
from ntk_core.networks.architectures._derived import (
    Mirrored,
    Paired,
    PreActivations,
    ScaledNetwork,
    Subtracted,
    subtract_initial_output,
)
from ntk_core.networks.architectures._graph import DAGNetwork
from ntk_core.networks.architectures._layered import Composed, Layered
from ntk_core.networks.architectures._layers import (
    Dense,
    Layer,
    MaskedDense,
    Scaling,
    compile_draws,
)
from ntk_core.networks.architectures._network import (
    Network,
    NetworkParams,
    accepted_network,
    check_key,
    merge,
    num_parts,
    width_mesh,
)
from ntk_core.networks.architectures._numbered import (
    Adapted,
    Bottleneck,
    Chain,
    ConvNet,
    Convolutional,
    DenseNet,
    FullyConnected,
    MixedNet,
    ResNet,
    Stack,
)
from ntk_core.networks.architectures._transformer import Attention, Transformer
from ntk_core.networks.graphs import Edge, Group
