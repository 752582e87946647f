"""The registered layers of custom networks: names and numbers, never code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from ntk_core.errors import InvalidInput
from ntk_core.networks.choices import ACTIVATIONS, SUB_MODELS

if TYPE_CHECKING:
    from collections.abc import Callable

    from jax import Array

    # Functions only in networks, built without validation.
    FunctionName = str | Callable[[Array], Array]
else:
    FunctionName = Literal[tuple(ACTIVATIONS)]

MAX_WIDTH = 10_000_000
MAX_FACTOR = 64.0
ALLOWED_WIDTH = (
    f"m, a multiple of it such as 2m or 0.5m (at most {MAX_FACTOR:g}m), or an integer "
    f"up to {MAX_WIDTH:,}"
)
_SYMBOL = re.compile(r"(\d{1,4}(?:\.\d{1,4})?)?\s*m\Z")


def _width(given: object) -> int | str:
    """``"m"``, ``"2m"``, ``"0.5m"``, or a number of neurons."""
    if isinstance(given, str) and (found := _SYMBOL.match(given.strip())):
        factor = float(found[1] or 1)
        if 0 < factor <= MAX_FACTOR:
            return "m" if factor == 1 else f"{factor:g}m"
    elif isinstance(given, int) and not isinstance(given, bool) and 1 <= given <= MAX_WIDTH:
        return given
    raise InvalidInput("", given, ALLOWED_WIDTH)


BlockWidth = Annotated[int | str, BeforeValidator(_width)]


def multiple(width: int | str, times: float) -> int | str:
    """Multiply a width, a number or in m."""
    if isinstance(width, str):
        factor = float(width.removesuffix("m") or 1) * times
        if factor == 1:
            return "m"
        return f"{int(factor)}m" if factor.is_integer() else f"{factor!r}m"
    return max(1, round(width * times))


class _Block(BaseModel):
    """Abstract: one step from the values below to the values above."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _Weights(_Block):
    """Abstract: a trained map, linear in its weights.

    Attributes:
        width: neurons, or channels; ``"m"`` and multiples grow with the swept width,
            numbers are constant.
    """

    role: ClassVar[str] = ""
    frozen: ClassVar[bool] = False
    width: BlockWidth = "m"
    bias: bool = False

    def size(self, width: int) -> int:
        """Neurons or channels at width m."""
        if isinstance(self.width, int):
            return self.width
        return max(1, round(float(self.width.removesuffix("m") or 1) * width))

    @property
    def grows(self) -> bool:
        """Whether it becomes wider with m."""
        return isinstance(self.width, str)


class _AsBelow(_Block):
    """Abstract: a trained map that keeps the shape of its input."""

    bias: ClassVar[bool] = False
    grows: ClassVar[bool] = True
    frozen: ClassVar[bool] = False

    def size(self, width: int) -> None:
        """Return None: its width is that of its input."""


class DenseBlock(_Weights):
    """A dense layer, z = W a / √fan_in + b.

    Values at several positions are flattened first, channel by channel.
    """

    kind: Literal["dense"] = "dense"


class FrozenDense(DenseBlock):
    """A frozen dense layer; not available in JSON."""

    role: ClassVar[str] = "frozen weights"
    frozen: ClassVar[bool] = True


class AdapterDown(DenseBlock):
    """A a / √fan_in, the r inner numbers of an update."""

    role: ClassVar[str] = "adapter A"


class AdapterUp(DenseBlock):
    """B a / r^s, zero at w₀.

    Attributes:
        exponent: s.
    """

    role: ClassVar[str] = "adapter B"
    rank: BlockWidth = 1
    exponent: float = 0.5


class CopiesBlock(DenseBlock):
    """m copies of a small model, each with its own weights; not available in JSON.

    Attributes:
        model: one of ``SUB_MODELS``.
    """

    role: ClassVar[str] = "copies"
    model: str = "neurons"

    def num_params(self, num_inputs: int) -> int:
        """Parameters of one copy."""
        model = SUB_MODELS[self.model]
        return model.per_input * num_inputs + model.others


class ConvolutionBlock(_Weights):
    """A convolution of images (height, width, channels).

    ``stride`` is the step between kept positions.
    """

    kind: Literal["convolution"] = "convolution"
    kernel_size: int = Field(default=3, ge=1, le=32)
    padding: Literal["circular", "zero"] = "circular"
    stride: int = Field(default=1, ge=1, le=8)


class TokenDenseBlock(_Weights):
    """zᵢ = W aᵢ / √fan_in + b at every position i of a sequence, with the same weights."""

    kind: Literal["token-dense"] = "token-dense"


class Queries(TokenDenseBlock):
    """The q of all heads."""

    role: ClassVar[str] = "queries"


class Keys(TokenDenseBlock):
    """The k of all heads."""

    role: ClassVar[str] = "keys"


class Values(TokenDenseBlock):
    """The v of all heads."""

    role: ClassVar[str] = "values"


class GainBlock(_AsBelow):
    """g ∘ a: one trained factor for each feature, 1 at w₀ and the same at all positions."""

    role: ClassVar[str] = "gains"
    kind: Literal["gain"] = "gain"


class PositionsBlock(_AsBelow):
    """aᵢ + pᵢ with one trained vector pᵢ ~ N(0, I) for each position i of a sequence."""

    role: ClassVar[str] = "positions"
    kind: Literal["positions"] = "positions"


class ActivationBlock(_Block):
    """σ, elementwise."""

    kind: Literal["activation"] = "activation"
    function: FunctionName


class AveragePoolBlock(_Block):
    """Means over windows of size × size positions, without overlap."""

    kind: Literal["average-pool"] = "average-pool"
    size: int = Field(default=2, ge=2, le=32)


class GlobalAverageBlock(_Block):
    """The mean over all positions, channel by channel."""

    kind: Literal["global-average"] = "global-average"


class FlattenBlock(_Block):
    """All positions concatenated, channel by channel."""

    kind: Literal["flatten"] = "flatten"


class FlattenInputBlock(FlattenBlock):
    """All numbers of an input concatenated in stored order; not available in JSON."""


class ScaleBlock(_Block):
    """A fixed factor."""

    kind: Literal["scale"] = "scale"
    factor: float = Field(ge=-1000, le=1000, allow_inf_nan=False)


class FixedPositionsBlock(_Block):
    """aᵢ + pᵢ with pᵢ = √2 (sin ω₁i, cos ω₁i, sin ω₂i, …).

    They have mean square 1 (Vaswani et al. 2017, §3.5).
    """

    kind: Literal["fixed-positions"] = "fixed-positions"


class NormalizeBlock(_Block):
    """(a − mean) / √(variance + 10⁻⁵), both taken over the features of each position."""

    kind: Literal["normalize"] = "normalize"


class FirstTokenBlock(_Block):
    """The first position of a sequence alone."""

    kind: Literal["first-token"] = "first-token"


class AttentionBlock(_Block):
    """Concatenated heads: position i returns Σⱼ Aᵢⱼ vⱼ.

    A = softmaxⱼ(qᵢ·kⱼ / d^τ), and q, k, v = W a / √fan_in.

    Queries, keys and values are three layers of H d neurons at each position; each
    head returns d numbers.

    Attributes:
        num_heads, head_dim: H and d; at most one of them grows with m, in whole multiples.
        score_exponent: τ; ½ is usual.
        causal: whether position i sees only positions j ≤ i.
    """

    kind: Literal["attention"] = "attention"
    num_heads: BlockWidth = 1
    head_dim: BlockWidth = "m"
    score_exponent: float = Field(default=0.5, ge=0, le=1)
    causal: bool = False

    @model_validator(mode="after")
    def _whole(self) -> Self:
        for width in (self.num_heads, self.head_dim):
            if isinstance(width, str) and "." in width:
                raise InvalidInput("", width, "a number, m or a whole multiple of it")
        if isinstance(self.num_heads, str) and isinstance(self.head_dim, str):
            raise InvalidInput("", "num_heads and head_dim in m", "at most one of them in m")
        return self

    @property
    def layers(self) -> tuple[TokenDenseBlock, ...]:
        """Queries, keys and values."""
        width = self.width
        return tuple(made.model_construct(width=width) for made in (Queries, Keys, Values))

    @property
    def width(self) -> int | str:
        """H d, a number or in m."""
        if isinstance(self.head_dim, str):
            return multiple(self.head_dim, int(self.num_heads))
        return multiple(self.num_heads, self.head_dim)

    def heads(self, width: int) -> int:
        """H at width m."""
        return TokenDenseBlock.model_construct(width=self.num_heads).size(width)


class ResidualBlock(_Block):
    """a + layers(a), both of one shape."""

    kind: Literal["residual"] = "residual"
    layers: tuple[Block, ...] = Field(min_length=1, strict=False)

    def join(self, around: "Array", inner: "Array") -> "Array":
        """Add arrays of one shape."""
        return around + inner


class AdapterBlock(ResidualBlock):
    """W a + B A a: a frozen layer with A and B as its ``layers``; not available in JSON."""


class ConcatBlock(_Block):
    """(a, layers(a)) concatenated along features or channels, as in a DenseNet."""

    kind: Literal["concat"] = "concat"
    layers: tuple[Block, ...] = Field(min_length=1, strict=False)


Block = Annotated[
    DenseBlock
    | ConvolutionBlock
    | ActivationBlock
    | AveragePoolBlock
    | GlobalAverageBlock
    | FlattenBlock
    | ScaleBlock
    | ResidualBlock
    | ConcatBlock
    | TokenDenseBlock
    | AttentionBlock
    | NormalizeBlock
    | GainBlock
    | PositionsBlock
    | FixedPositionsBlock
    | FirstTokenBlock,
    Field(discriminator="kind"),
]
ResidualBlock.model_rebuild()
AdapterBlock.model_rebuild()
ConcatBlock.model_rebuild()
Trained = DenseBlock | ConvolutionBlock | TokenDenseBlock | GainBlock | PositionsBlock
Nested = ResidualBlock | ConcatBlock | AttentionBlock
BLOCKS: dict[str, type[_Block]] = {
    each.model_fields["kind"].default: each for each in get_args(get_args(Block)[0])
}
