"""What networks of numbered hidden layers have in common: their settings, and how layers follow from them."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from ntk_core.errors import InvalidInput
from ntk_core.networks.architectures._activations import Activation, activation_function
from ntk_core.networks.architectures._layered import Listed
from ntk_core.networks.architectures._layers import Scaling
from ntk_core.networks.architectures._settings import MAX_DEPTH, check_count, check_switch, hidden_biases, hidden_widths
from ntk_core.networks.graphs import Composition
from ntk_core.networks.kinds import Kind


@dataclass(frozen=True)
class Stack(Listed):
    """Abstract: ``depth`` hidden layers and a linear output layer, with the settings that all such networks take.

    Attributes:
        kind: what its settings make of the layers.
        width: neurons (or channels) of every hidden layer, or one number per layer.
        depth: number of hidden layers.
        num_outputs: C.
        activation: σ, the name of one of ``ntk_core.networks.choices.ACTIVATIONS``, or any elementwise JAX function.
        output: φ, one of ``ntk_core.networks.choices.OUTPUTS``; the network returns φ(f).
        parameterization: ``"ntk"``, ``"standard"`` or ``"lecun"``, see :class:`Scaling`.
        use_bias: biases of the hidden layers, one switch for all or one per layer; the output layer never has one.
        gain: factor in front of hidden weights (√2 keeps the variance of ReLU layers).
        trained: ``"all"``, or ``"first"``, ``"hidden"``, ``"last"``: which layers have a part in training and kernel.
        output_signs: draw the output weights as ±1 (Liu, Zhu & Belkin 2020, §3.1).

    Raises:
        InvalidInput: names the field for any setting outside its range.
    """

    kind: ClassVar[Kind]

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
        check_count("depth", self.depth, MAX_DEPTH)
        hidden_widths(self.width, self.depth)
        hidden_biases(self.use_bias, self.depth)
        activation_function(self.activation)
        super().__post_init__()

    @cached_property
    def written_out(self) -> Composition:
        return self.kind.write_out(self, tuple(zip(hidden_widths(self.width, self.depth), self.biases, strict=True)))

    @property
    def biases(self) -> tuple[bool, ...]:
        """Whether each hidden layer has biases."""
        return hidden_biases(self.use_bias, self.depth)

    @property
    def hidden_scaling(self) -> Scaling:
        """How hidden weights are drawn; the m of ``lecun`` is the smallest of the ``width`` that was set."""
        return Scaling(self.parameterization, self.gain, min(hidden_widths(self.width, self.depth)))


@dataclass(frozen=True)
class Chain(Stack):
    """Abstract: a stack whose layers each feed the next one only, so that it may start at f(w₀; x) = 0.

    Attributes:
        symmetric: with one hidden layer, draw half of it, repeat that, and give the halves opposite output weights; the
            pre-outputs are then 0 at initialization (Hu, Xiao, Adlam & Pennington 2020, §3). Deeper networks are
            refused: opposite halves of the last layer would cancel the gradients of all layers below; use
            :class:`Mirrored`.
    """

    symmetric: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_switch("symmetric", self.symmetric)
        if self.symmetric and self.depth > 1:
            raise InvalidInput(
                "symmetric", True, "False with more than one hidden layer; Mirrored(net) starts any net at 0"
            )
        if self.symmetric and self.widths[-1] % 2:
            raise InvalidInput(
                "symmetric", True, f"False, or an even width of the last hidden layer (now {self.widths[-1]})"
            )
