"""The networks of numbered hidden layers; what each kind makes of its settings stands in ``networks/kinds``."""

from dataclasses import dataclass
from typing import ClassVar

from ntk_core.errors import InvalidInput
from ntk_core.networks.architectures._activations import Activation, activation_function
from ntk_core.networks.architectures._convolution import PADDINGS
from ntk_core.networks.architectures._layers import Shape
from ntk_core.networks.architectures._network import Network
from ntk_core.networks.architectures._settings import MAX_WIDTH, check_choice, check_count, check_drop_probability
from ntk_core.networks.architectures._stack import Chain, Stack
from ntk_core.networks.kinds import ARCHITECTURES, Kind

READOUTS = ("flatten", "global-average")


@dataclass(frozen=True)
class FullyConnected(Chain):
    """Fully connected network in the NTK parameterization.

    f = W^(L+1) α^(L) / √m with α^(l) = σ(W^(l) α^(l-1) / √fan_in + b^(l)), α^(0) = the flattened input.

    Settings: :class:`Stack`, :class:`Chain`.

    Source: Liu, Zhu & Belkin 2020, Eq. 7; with one hidden layer and biases, Eq. 43.

    >>> import jax, jax.numpy as jnp
    >>> net = FullyConnected(width=4, depth=1, num_outputs=1, activation="identity", use_bias=False)
    >>> params = net.init(jax.random.key(0), (2,))
    >>> net.apply(params, jnp.ones((3, 2))).shape
    (3, 1)
    """

    kind: ClassVar[Kind] = ARCHITECTURES["fully-connected"]


@dataclass(frozen=True)
class Bottleneck(Chain):
    """Fully connected network with one narrow hidden layer.

    A fully connected network one of whose hidden layers is narrow: not linear, however wide the others are.

    Eq. 31, f = m^(-1/2) vᵀσ(w₃ · m^(-1/2) w₂ᵀσ(w₁x)) with σ(z) = z²/2, is

    >>> net = Bottleneck(width=100, activation="quadratic", bottleneck_width=1, bottleneck_activation="identity")
    >>> net.widths
    (100, 1, 100)

    Attributes:
        bottleneck_width: neurons of the narrow layer.
        bottleneck_layer: which hidden layer is narrow, counted from 1.
        bottleneck_activation: of the narrow layer; None takes ``activation``.

    Source: Liu, Zhu & Belkin 2020, §4.
    """

    kind: ClassVar[Kind] = ARCHITECTURES["bottleneck"]

    depth: int = 3
    bottleneck_width: int = 3
    bottleneck_layer: int = 2
    bottleneck_activation: Activation | None = None

    def __post_init__(self) -> None:
        check_count("bottleneck_width", self.bottleneck_width, MAX_WIDTH)
        check_count("depth", self.depth, 64)
        check_count("bottleneck_layer", self.bottleneck_layer, self.depth)
        if self.bottleneck_activation is not None:
            activation_function(self.bottleneck_activation, "bottleneck_activation")
        super().__post_init__()


@dataclass(frozen=True)
class ResNet(Stack):
    """Residual network with a linear output layer.

    α^(1) = σ(z^(1)), α^(l) = σ(z^(l)) + α^(l-1) for l ≥ 2, then a linear output layer.

    After the first layer, every ``skip_every`` layers the activation of as many layers below is added.

    Source: Liu, Zhu & Belkin 2020, App. G.2, Eq. 97, and with ``skip_every=2`` the remark after it.

    Attributes:
        width: of all hidden layers, one number, since a skip adds what it skips.
        skip_every: number of layers that a skip connection spans.
    """

    kind: ClassVar[Kind] = ARCHITECTURES["resnet"]

    depth: int = 3
    skip_every: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.width, tuple):
            raise InvalidInput(
                "width", self.width, f"one integer from 1 to {MAX_WIDTH:,} for all layers of a residual network"
            )
        super().__post_init__()
        check_count("skip_every", self.skip_every, 2)


@dataclass(frozen=True)
class DenseNet(Stack):
    """Network whose layers read all earlier layers.

    Every layer, the output included, sees the input and all hidden layers below it, concatenated.

    z_v = in(v)^(-1/2) Σ_{u→v} w_uv α_u with the actual in-degree in(v); with ``drop_probability`` each edge is removed
    at random when the parameters are drawn, and stays removed (:class:`MaskedDense`).

    Source: Zhu, Liu & Belkin 2022, App. A and Fig. 2.

    Attributes:
        drop_probability: of each edge, at least 0 and below 1.
    """

    kind: ClassVar[Kind] = ARCHITECTURES["densenet"]

    depth: int = 3
    drop_probability: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_drop_probability(self.drop_probability)
        if self.output_signs and self.drop_probability:
            raise InvalidInput("output_signs", True, "False where edges are dropped")

    def min_width(self, input_shape: Shape) -> int:
        """Smallest expected in-degree outside the first layer (Zhu et al., Eq. 8); ``in_degree_range`` counts it."""
        return max(1, round((1 - self.drop_probability) * Network.min_width(self, input_shape)))


@dataclass(frozen=True)
class Convolutional(Chain):
    """Abstract: convolutions (and poolings) first, then a readout, then dense layers.

    Attributes:
        width: channels of the convolutions, neurons of the dense layers.
        kernel_size: pixels along each side of the receptive field.
        padding: ``"circular"`` or ``"zero"``; the size of the image is kept.
        dimensions: 2 for images (height, width, channels), 1 for sequences (length, channels).
        readout: from the last convolution to flat features: ``"flatten"`` or ``"global-average"``.
        pool_size: side of the windows that are averaged after each convolution; 1 for no pooling.
    """

    width: int | tuple[int, ...] = 64
    kernel_size: int = 3
    padding: str = "circular"
    dimensions: int = 2
    readout: str = "flatten"
    pool_size: int = 1

    def __post_init__(self) -> None:
        check_count("kernel_size", self.kernel_size, 1024)
        check_count("pool_size", self.pool_size, 1024)
        check_choice("padding", self.padding, PADDINGS)
        check_choice("readout", self.readout, READOUTS)
        check_count("dimensions", self.dimensions, 2)
        super().__post_init__()


@dataclass(frozen=True)
class ConvNet(Convolutional):
    """Convolutional network with a linear output layer.

    α^(l) = σ(conv(α^(l-1))) for l = 1…depth, then flatten or global average, then a linear output layer.

    Settings: :class:`Convolutional`.

    Source: Liu, Zhu & Belkin 2020, App. G.1; Hu, Xiao, Adlam & Pennington 2020, §4.

    >>> net = ConvNet(width=8, depth=2, readout="global-average")
    >>> net.num_params((4, 4, 3))
    816
    """

    kind: ClassVar[Kind] = ARCHITECTURES["convnet"]


@dataclass(frozen=True)
class MixedNet(Convolutional):
    """Network of convolutions followed by dense layers.

    Convolutions first, dense hidden layers after them: σ(conv(α)), then α ↦ σ(W α / √fan_in + b).

    Attributes:
        num_conv: how many of the ``depth`` hidden layers are convolutions.

    Source: Liu, Zhu & Belkin 2020, App. G.3.
    """

    kind: ClassVar[Kind] = ARCHITECTURES["mixed"]

    depth: int = 2
    num_conv: int = 1

    def __post_init__(self) -> None:
        check_count("depth", self.depth, 64, lowest=2)
        check_count("num_conv", self.num_conv, self.depth - 1)
        super().__post_init__()
