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
from ntk_core.networks.architectures._composed import Composed
from ntk_core.networks.architectures._contractions import FactoredCotangents, whole
from ntk_core.networks.architectures._convolution import Convolution
from ntk_core.networks.architectures._graph import DAGNetwork
from ntk_core.networks.architectures._initial_output import Mirrored, Paired, Subtracted, subtract_initial_output
from ntk_core.networks.architectures._layered import Layered
from ntk_core.networks.architectures._layers import Dense, Layer, Scaling
from ntk_core.networks.architectures._masked import MaskedDense
from ntk_core.networks.architectures._network import (
    LayerViews,
    Network,
    NetworkParams,
    accepted_network,
    layer_views,
    merge,
)
from ntk_core.networks.architectures._numbered import (
    Bottleneck,
    ConvNet,
    Convolutional,
    DenseNet,
    FullyConnected,
    MixedNet,
    ResNet,
)
from ntk_core.networks.architectures._pre_activations import PreActivations
from ntk_core.networks.architectures._scaled import ScaledNetwork
from ntk_core.networks.architectures._stack import Chain, Stack
from ntk_core.networks.architectures._transformer import Attention, Transformer
from ntk_core.networks.architectures._width_mesh import num_parts, width_mesh
from ntk_core.networks.graphs import Edge, Group
