"""The registered layers that a network of one's own is put together from; names and numbers, never code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ntk_core.errors import InvalidInput
from ntk_core.networks.choices import ACTIVATIONS

if TYPE_CHECKING:
    FunctionName = str
else:
    FunctionName = Literal[tuple(ACTIVATIONS)]

MAX_WIDTH, MAX_FACTOR = 10_000_000, 64.0
ALLOWED_WIDTH = f"m, a multiple of it such as 2m or 0.5m (at most {MAX_FACTOR:g}m), or an integer up to {MAX_WIDTH:,}"
_SYMBOL = re.compile(r"(\d{1,4}(?:\.\d{1,4})?)?\s*m\Z")


def _width(given: Any) -> Any:
    """``"m"``, ``"2m"``, ``"0.5m"``, or a number of neurons."""
    if isinstance(given, str) and (found := _SYMBOL.match(given.strip())):
        factor = float(found[1] or 1)
        if 0 < factor <= MAX_FACTOR:
            return "m" if factor == 1 else f"{factor:g}m"
    elif isinstance(given, int) and not isinstance(given, bool) and 1 <= given <= MAX_WIDTH:
        return given
    raise InvalidInput("", given, ALLOWED_WIDTH)


BlockWidth = Annotated[int | str, BeforeValidator(_width)]


class _Block(BaseModel):
    """Abstract: one step from the values below to the values above."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _Weights(_Block):
    """Abstract: a trained map, linear in its weights.

    Attributes:
        width: neurons, or channels; ``"m"`` and multiples grow with the width of the sweep, a number stays.
    """

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


class DenseBlock(_Weights):
    """z = W a / √fan_in + b; values at several positions are flattened first, channel by channel."""

    kind: Literal["dense"] = "dense"


class ConvolutionBlock(_Weights):
    """A convolution of images (height, width, channels); ``stride`` keeps every so many positions."""

    kind: Literal["convolution"] = "convolution"
    kernel_size: int = Field(3, ge=1, le=32)
    padding: Literal["circular", "zero"] = "circular"
    stride: int = Field(1, ge=1, le=8)


class ActivationBlock(_Block):
    """σ, number by number."""

    kind: Literal["activation"] = "activation"
    function: FunctionName


class AveragePoolBlock(_Block):
    """Means over windows of size × size positions, without overlap."""

    kind: Literal["average-pool"] = "average-pool"
    size: int = Field(2, ge=2, le=32)


class GlobalAverageBlock(_Block):
    """The mean over all positions, channel by channel."""

    kind: Literal["global-average"] = "global-average"


class FlattenBlock(_Block):
    """All positions side by side, channel by channel."""

    kind: Literal["flatten"] = "flatten"


class FlattenInputBlock(FlattenBlock):
    """All numbers of an input side by side, in the order in which they are stored; of no composition in JSON."""


class ScaleBlock(_Block):
    """A fixed factor."""

    kind: Literal["scale"] = "scale"
    factor: float = Field(ge=-1000, le=1000, allow_inf_nan=False)


class ResidualBlock(_Block):
    """a + layers(a): the way around is added, so both have one shape."""

    kind: Literal["residual"] = "residual"
    layers: tuple[Block, ...] = Field(min_length=1, strict=False)

    def join(self, around: Any, inner: Any) -> Any:
        """Both ways together, arrays of one shape."""
        return around + inner


class ConcatBlock(_Block):
    """(a, layers(a)) side by side, along features or channels, as in a DenseNet."""

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
    | ConcatBlock,
    Field(discriminator="kind"),
]
ResidualBlock.model_rebuild()
ConcatBlock.model_rebuild()
Trained = DenseBlock | ConvolutionBlock
Nested = ResidualBlock | ConcatBlock
BLOCKS: dict[str, type[_Block]] = {
    "dense": DenseBlock,
    "convolution": ConvolutionBlock,
    "activation": ActivationBlock,
    "average-pool": AveragePoolBlock,
    "global-average": GlobalAverageBlock,
    "flatten": FlattenBlock,
    "scale": ScaleBlock,
    "residual": ResidualBlock,
    "concat": ConcatBlock,
}
