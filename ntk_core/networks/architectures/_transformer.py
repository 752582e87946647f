"""Attention and transformers; their settings are in ``networks/kinds``."""

from dataclasses import dataclass
from typing import ClassVar

from ntk_core.errors import InvalidInput
from ntk_core.networks.architectures._activations import MAX_WIDTH, Activation, check_count
from ntk_core.networks.architectures._layered import Listed
from ntk_core.networks.architectures._layers import Shape
from ntk_core.networks.graphs import lay_out
from ntk_core.networks.kinds import ARCHITECTURES, Kind


@dataclass(frozen=True)
class Heads(Listed):
    """Abstract: networks with attention, for inputs (n, T, d_in), T positions of d_in features.

    Attributes:
        num_heads, head_dim: H and d; queries, keys and values of all heads are H d features.
        num_outputs: C.
        score_exponent: τ in q·k / d^τ; ½ is usual.
        causal: whether position i sees only positions j ≤ i.
        output: φ, one of ``ntk_core.networks.choices.OUTPUTS``; the network returns φ(f).
        parameterization: ``"ntk"``, ``"standard"`` or ``"lecun"`` (with m = H d), see
            :class:`Scaling`.
        trained: ``"all"``, or ``"first"``, ``"hidden"``, ``"last"``: layers that are trained
            and enter the kernel.
        output_signs: draw the output weights as ±1.

    Raises:
        InvalidInput: names the field for any setting outside its range; by ``init`` unless
            inputs are sequences.
    """

    num_heads: int = 4
    head_dim: int = 16
    num_outputs: int = 1
    score_exponent: float = 0.5
    causal: bool = False
    output: str = "linear"
    parameterization: str = "ntk"
    trained: str = "all"
    output_signs: bool = False

    @property
    def unit(self) -> int:
        return self.num_heads * self.head_dim

    def layer_input_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        if len(input_shape) != 2:
            raise InvalidInput(
                "input_shape", tuple(input_shape), "(positions, features), a sequence"
            )
        lay_out(self.steps, 1, tuple(input_shape))  # its error names the place
        return super().layer_input_shapes(input_shape)


@dataclass(frozen=True)
class Attention(Heads):
    """Network with one attention layer.

    f = (H d)^(−½) Σ_h u_h · (1/T) Σ_ij A^h_ij v^h_j, A^h_i = softmax_j(q^h_i·k^h_j / d^τ):
    one layer of attention.

    q, k, v = W x / √d_in at each of T positions, all weights W and the output layer u ~ N(0, 1);
    the layers are ``hidden1``, ``hidden2``, ``hidden3`` and ``output``, in this order. ‖H_f‖ is
    H^(−½) times the largest Hessian norm of a single head, and does not decrease with d if τ = ½
    (docs/math/attention.md).

    >>> import jax, jax.numpy as jnp
    >>> net = Attention(num_heads=2, head_dim=3, num_outputs=2)
    >>> params = net.init(jax.random.key(0), (5, 4))
    >>> net.apply(params, jnp.ones((7, 5, 4))).shape
    (7, 2)

    Source: Vaswani et al. 2017, §3.2; in the NTK parameterization Hron, Bahri,
    Sohl-Dickstein & Novak 2020.
    """

    kind: ClassVar[Kind] = ARCHITECTURES["attention"]


@dataclass(frozen=True)
class Transformer(Heads):
    """Transformer with a linear output layer.

    An embedding, L blocks α ← α + W_O attention(α̂), α ← α + W₂ σ(W₁ α̂), readout and a
    linear output layer.

    α̂ is α, normalized or not. All W are dense layers at each position, W a / √fan_in with W ~
    N(0, 1) and no biases; embedded positions and learned positions have entries N(0, ‖x‖²/d_in) and
    N(0, 1), fixed ones mean square 1, gains are 1. The model has H d features.

    >>> import jax
    >>> net = Transformer(num_heads=2, head_dim=4, num_blocks=1)
    >>> net.num_params((6, 3))  # embedding, positions, 4 projections, MLP, 3 gains, output
    872

    Attributes:
        num_blocks: L.
        mlp_width: neurons of the MLPs; None for ``mlp_factor`` H d.
        mlp_factor: their number in multiples of H d.
        activation: σ of the MLPs.
        normalization: before attention, MLP and readout: ``"none"``; ``"plain"``,
            (α − mean) / √(variance + 10⁻⁵) at each position; ``"gains"``, that times a
            trained factor for each feature.
        positions: ``"none"``, ``"fixed"`` (sines) or ``"learned"``.
        token_readout: input of the output layer, the ``"mean"`` over positions or the
            ``"first"`` position.

    Source: Vaswani et al. 2017; normalization first: Xiong et al. 2020, §3.
    """

    kind: ClassVar[Kind] = ARCHITECTURES["transformer"]

    num_blocks: int = 2
    mlp_width: int | None = None
    mlp_factor: float = 4.0
    activation: Activation = "relu"
    normalization: str = "gains"
    positions: str = "learned"
    token_readout: str = "mean"

    def __post_init__(self) -> None:
        if self.mlp_width is not None:
            check_count("mlp_width", self.mlp_width, MAX_WIDTH)
        if not 0 < self.mlp_factor <= 64:
            raise InvalidInput("mlp_factor", self.mlp_factor, "a number above 0, at most 64")
        super().__post_init__()
