"""Networks as programs over layers that are linear in their weights."""

from ntk_core.architectures._activations import activation_function, output_function, output_jacobian
from ntk_core.architectures._convolution import Convolution
from ntk_core.architectures._fully_connected import FullyConnected
from ntk_core.architectures._layers import Dense, Layer, Scaling
from ntk_core.architectures._masked import MaskedDense
from ntk_core.architectures._network import LayerViews, Network, NetworkParams, layer_views, merge

__all__ = [
    "Convolution",
    "Dense",
    "FullyConnected",
    "Layer",
    "LayerViews",
    "MaskedDense",
    "Network",
    "NetworkParams",
    "Scaling",
    "activation_function",
    "layer_views",
    "merge",
    "output_function",
    "output_jacobian",
]
