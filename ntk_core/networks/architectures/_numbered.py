"""Networks with numbered hidden layers; their settings are in ``networks/kinds``."""

from dataclasses import dataclass
from typing import ClassVar

from ntk_core.errors import InvalidInput
from ntk_core.networks.architectures._activations import (
    MAX_WIDTH,
    Activation,
    activation_function,
    check_count,
    hidden_biases,
    hidden_widths,
)
from ntk_core.networks.architectures._layered import Listed
from ntk_core.networks.architectures._layers import Shape
from ntk_core.networks.architectures._network import Network
from ntk_core.networks.kinds import ARCHITECTURES, Hidden, Kind
from ntk_core.networks.kinds.adapted import check


@dataclass(frozen=True)
class Stack(Listed):
    """Abstract: ``depth`` hidden layers and a linear output layer, with their common settings.

    Attributes:
        width: neurons (or channels) of every hidden layer, or one number per layer.
        depth: number of hidden layers.
        num_outputs: C.
        activation: σ, the name of one of ``ntk_core.networks.choices.ACTIVATIONS``, or any
            elementwise JAX function.
        output: φ, one of ``ntk_core.networks.choices.OUTPUTS``; the network returns φ(f).
        parameterization: ``"ntk"``, ``"standard"`` or ``"lecun"``, see :class:`Scaling`.
        use_bias: biases of the hidden layers, one switch for all or one per layer; the output
            layer never has one.
        gain: factor in front of hidden weights (√2 keeps the variance of ReLU layers).
        trained: ``"all"``, or ``"first"``, ``"hidden"``, ``"last"``: layers that are trained
            and enter the kernel.
        output_signs: draw the output weights as ±1 (Liu, Zhu & Belkin 2020, §3.1).

    Raises:
        InvalidInput: names the field for any setting outside its range.

    >>> from ntk_core import FullyConnected
    >>> isinstance(FullyConnected(width=8, depth=2), Stack), FullyConnected(width=8, depth=2).widths
    (True, (8, 8))
    """

    width: int | tuple[int, ...] = 512
    depth: int = 1
    num_outputs: int = 1
    activation: Activation = "relu"
    output: str = "linear"
    parameterization: str = "ntk"
    use_bias: bool | tuple[bool, ...] = True
    gain: float = 1.0
    trained: str = "all"
    output_signs: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        hidden_biases(self.use_bias, self.depth)

    @property
    def hidden(self) -> Hidden:
        return tuple(zip(hidden_widths(self.width, self.depth), self.biases, strict=True))

    @property
    def biases(self) -> tuple[bool, ...]:
        """Whether each hidden layer has biases."""
        return hidden_biases(self.use_bias, self.depth)

    @property
    def unit(self) -> int:
        """The smallest ``width``."""
        return min(hidden_widths(self.width, self.depth))


@dataclass(frozen=True)
class Chain(Stack):
    """Abstract: a stack without skips, which can start at f(w₀; x) = 0.

    Attributes:
        symmetric: with one hidden layer, draw half of it, repeat it, and give the halves
            opposite output weights, so pre-outputs start at 0 (Hu, Xiao, Adlam & Pennington
            2020, §3). In deeper networks the halves would cancel the gradients of all layers
            below: use :class:`Mirrored`.

    >>> from ntk_core import FullyConnected
    >>> net = FullyConnected(width=8, symmetric=True)
    >>> isinstance(net, Chain), net.symmetric
    (True, True)
    """

    symmetric: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.symmetric and self.depth > 1:
            raise InvalidInput(
                "symmetric",
                True,
                "False with more than one hidden layer; Mirrored(net) starts any net at 0",
            )
        if self.symmetric and self.widths[-1] % 2:
            raise InvalidInput(
                "symmetric",
                True,
                f"False, or an even width of the last hidden layer (now {self.widths[-1]})",
            )


@dataclass(frozen=True)
class FullyConnected(Chain):
    """Fully connected network in the NTK parameterization.

    f = W^(L+1) α^(L) / √m with α^(l) = σ(W^(l) α^(l-1) / √fan_in + b^(l)), α^(0) = the flattened
    input.

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

    Widening the other layers does not make it linear.

    Eq. 31, f = m^(-1/2) vᵀσ(w₃ · m^(-1/2) w₂ᵀσ(w₁x)) with σ(z) = z²/2, is

    >>> narrow = {"bottleneck_width": 1, "bottleneck_activation": "identity"}
    >>> net = Bottleneck(width=100, activation="quadratic", **narrow)
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
        super().__post_init__()
        check_count("bottleneck_layer", self.bottleneck_layer, self.depth)
        if self.bottleneck_activation is not None:
            activation_function(self.bottleneck_activation, "bottleneck_activation")


@dataclass(frozen=True)
class ResNet(Stack):
    """Residual network with a linear output layer.

    α^(1) = σ(z^(1)), α^(l) = σ(z^(l)) + α^(l-1) for l ≥ 2, then a linear output layer.

    After the first layer, every ``skip_every`` layers add the activation from as many layers below.

    Source: Liu, Zhu & Belkin 2020, App. G.2, Eq. 97, and with ``skip_every=2`` the remark after it.

    Attributes:
        width: one number for all hidden layers, which skips require.
        skip_every: number of layers that a skip connection spans.

    >>> ResNet(width=8, depth=3, use_bias=False).num_params((5,))  # 5 m + 2 m² + m
    176
    """

    kind: ClassVar[Kind] = ARCHITECTURES["resnet"]

    depth: int = 3
    skip_every: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.width, tuple):
            raise InvalidInput(
                "width",
                self.width,
                f"one integer from 1 to {MAX_WIDTH:,} for all layers of a residual network",
            )
        super().__post_init__()


@dataclass(frozen=True)
class DenseNet(Stack):
    """Network whose layers read all earlier layers.

    Every layer, including the output, reads the input and all hidden layers below it, concatenated.

    z_v = in(v)^(-1/2) Σ_{u→v} w_uv α_u with the actual in-degree in(v); with ``drop_probability``
    each edge is removed permanently at initialization (:class:`MaskedDense`).

    Source: Zhu, Liu & Belkin 2022, App. A and Fig. 2.

    Attributes:
        drop_probability: of each edge, at least 0 and below 1.

    >>> net = DenseNet(width=8, depth=1, use_bias=False)
    >>> net.num_params((5,))  # the output reads the input too
    53
    """

    kind: ClassVar[Kind] = ARCHITECTURES["densenet"]

    depth: int = 3
    drop_probability: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.output_signs and self.drop_probability:
            raise InvalidInput("output_signs", True, "False where edges are dropped")

    def min_width(self, input_shape: Shape) -> int:
        """Smallest expected in-degree outside the first layer (Zhu et al., Eq. 8).

        ``in_degree_range`` counts it.
        """
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

    >>> from ntk_core import ConvNet
    >>> isinstance(ConvNet(width=4), Convolutional), ConvNet(width=4).readout
    (True, 'flatten')
    """

    width: int | tuple[int, ...] = 64
    kernel_size: int = 3
    padding: str = "circular"
    dimensions: int = 2
    readout: str = "flatten"
    pool_size: int = 1


@dataclass(frozen=True)
class ConvNet(Convolutional):
    """Convolutional network with a linear output layer.

    α^(l) = σ(conv(α^(l-1))) for l = 1…depth, then flatten or global average, then a
    linear output layer.

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
        num_conv: number of convolutions among the ``depth`` hidden layers.

    Source: Liu, Zhu & Belkin 2020, App. G.3.

    >>> MixedNet(width=4, depth=2, num_conv=1, use_bias=False).num_params((6, 6, 1))
    616
    """

    kind: ClassVar[Kind] = ARCHITECTURES["mixed"]

    depth: int = 2
    num_conv: int = 1

    def __post_init__(self) -> None:
        check_count("depth", self.depth, 64, lowest=2)
        check_count("num_conv", self.num_conv, self.depth - 1)
        super().__post_init__()


@dataclass(frozen=True)
class Adapted(Stack):
    """Dense network with frozen weights and trained low-rank updates.

    z = (W + B A / r^s) a / √fan_in + b in the adapted layers, A (r, fan_in) ~ N(0, 1), B = 0 at w₀.

    W, b and all other hidden layers are frozen. ``trained`` chooses among the rest: ``"all"``
    trains A, B and the output layer, ``"hidden"`` A and B, ``"last"`` the output layer. Each
    adapted layer is three: W, A and B.

    >>> import jax, jax.numpy as jnp
    >>> net = Adapted(width=8, depth=2, adapter_rank=2, adapted_layers=(2,), use_bias=False)
    >>> net.num_params((3,), only_trained=True)  # A, B, output layer
    40

    Attributes:
        base: ``"fully-connected"``, ``"bottleneck"`` (three neurons in layer 2),
            ``"resnet"`` or ``"densenet"``.
        adapter_rank: r.
        rank_exponent: s, from 0 to 1; ½ keeps the size of the update's kernel, 1 is that of Hu et
            al.
        adapted_layers: hidden layers with an update, counted from 1; None for all.

    Source: Hu et al. 2022, §4; in the NTK parameterization docs/math/adapters.md.
    """

    kind: ClassVar[Kind] = ARCHITECTURES["adapted"]
    skip_every: ClassVar[int] = 1
    drop_probability: ClassVar[float] = 0.0
    bottleneck_width: ClassVar[int] = 3
    bottleneck_layer: ClassVar[int] = 2
    bottleneck_activation: ClassVar[None] = None

    depth: int = 2
    base: str = "fully-connected"
    adapter_rank: int = 4
    rank_exponent: float = 0.5
    adapted_layers: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self)
