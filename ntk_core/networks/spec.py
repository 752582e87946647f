"""The settings of a network, apart from its width, its outputs and φ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, InstanceOf, PlainSerializer, model_validator

from ntk_core.errors import InvalidInput
from ntk_core.networks.choices import ACTIVATIONS, OUTPUTS, PARAMETERIZATIONS
from ntk_core.networks.compositions import (
    Composition,
    composition_data,
    composition_examples,
    lay_out,
    parse_composition,
)
from ntk_core.settings.part import SpecPart, Width
from ntk_core.settings.vocabulary import ARCHITECTURES

if TYPE_CHECKING:  # type checkers want the names written out; at run time they come from the vocabulary
    ArchitectureName = str
    ActivationName = str
    BottleneckActivationName = str
    ParameterizationName = str
    OutputName = str
else:
    ArchitectureName = Literal[tuple(ARCHITECTURES)]
    ActivationName = Literal[tuple(ACTIVATIONS)]
    BottleneckActivationName = Literal[("same", *ACTIVATIONS)]
    ParameterizationName = Literal[tuple(PARAMETERIZATIONS)]
    OutputName = Literal[tuple(OUTPUTS)]


COMPOSED = "composed"  # the architecture that a person puts together
_LAYERED = tuple(name for name in ARCHITECTURES if name != COMPOSED)


def _composition(data: Any) -> Any:
    """A composition from JSON; what is wrong inside it is named after the name of the setting."""
    try:
        return parse_composition(data)
    except InvalidInput as error:
        raise InvalidInput("", f"{error.field}: {error.given}", error.allowed) from None


CompositionField = Annotated[InstanceOf[Composition], BeforeValidator(_composition), PlainSerializer(composition_data)]


class ArchitectureSpec(SpecPart):
    """The network, apart from its width, its outputs and φ."""

    selector: ClassVar[str] = "kind"
    relevant: ClassVar[dict[str, tuple[str, ...]]] = {
        **dict.fromkeys(("depth", "activation", "use_bias", "bias_layers"), _LAYERED),
        "composition": (COMPOSED,),
        "bottleneck_width": ("bottleneck",),
        "bottleneck_layer": ("bottleneck",),
        "bottleneck_activation": ("bottleneck",),
        "relative_widths": ("fully-connected", "densenet", "convnet", "mixed"),
        "skip_every": ("resnet",),
        "drop_probability": ("densenet",),
        "kernel_size": ("convnet", "mixed"),
        "padding": ("convnet", "mixed"),
        "readout": ("convnet", "mixed"),
        "pool_size": ("convnet", "mixed"),
    }

    kind: ArchitectureName = Field("fully-connected", title="Architecture", description="How neurons are connected.")
    depth: int = Field(1, ge=1, le=16, title="Hidden layers L", description="Number L of hidden layers.")
    activation: ActivationName = Field("relu", title="Activation σ", description="Nonlinearity σ of the hidden layers.")
    use_bias: bool = Field(
        True, title="Biases b", description="Biases b in the hidden layers; the output layer never has one."
    )
    bias_layers: tuple[Annotated[int, Field(ge=1, le=16)], ...] | None = Field(
        None,
        min_length=1,
        max_length=16,
        title="Layers with biases",
        description="Which hidden layers have biases, counted from 1; all when empty.",
    )
    relative_widths: tuple[Annotated[float, Field(gt=0, le=100)], ...] | None = Field(
        None,
        min_length=1,
        max_length=16,
        title="Widths of the layers, in m",
        description="One multiple of m for each hidden layer, such as 1, 0.5, 2; m for all when empty.",
    )
    composition: CompositionField = Field(
        composition_examples()["residual"],
        title="Your layers",
        description="Registered layers as JSON, from the input on; an output layer follows by itself.",
        json_schema_extra={"entry": "composition"},
    )
    parameterization: ParameterizationName = Field(
        "ntk", title="Parameterization", description="How weights are drawn and scaled with the width."
    )
    trained: Literal["all", "first", "hidden", "last"] = Field(
        "all", title="Trained layers", description="Which layers are trained, and so contribute to the kernel K."
    )
    output_weights: Literal["normal", "signs"] = Field(
        "normal",
        title="Output weights v",
        description="Output weights v: normal, or ±1 at random; ±1 with hidden layers trained stay as they are.",
    )
    initial_output: Literal["random", "symmetric", "subtracted"] = Field(
        "random",
        title="Output at w₀",
        description="random f(w₀); 0 by two mirrored copies, (f − f')/√2; or 0 by subtraction, f − f(w₀).",
    )
    bottleneck_width: Width = Field(3, title="Bottleneck width m_b", description="Neurons m_b of the narrow layer.")
    bottleneck_layer: int = Field(
        2, ge=1, le=16, title="Bottleneck layer", description="Which hidden layer is narrow, counted from 1."
    )
    bottleneck_activation: BottleneckActivationName = Field(
        "same", title="Activation of the narrow layer", description="Same as the other layers, or one of its own."
    )
    skip_every: int = Field(
        1, ge=1, le=2, title="Skip every", description="Number of layers that a skip connection spans."
    )
    drop_probability: float = Field(
        0.0,
        ge=0,
        le=0.99,
        title="Drop probability",
        description="Probability that an edge is removed before training; it stays removed.",
    )
    kernel_size: int = Field(
        3, ge=1, le=32, title="Filter size", description="Pixels along each side of a convolution's filter."
    )
    padding: Literal["circular", "zero"] = Field(
        "circular", title="Padding", description="What a filter sees beyond the border of the image."
    )
    readout: Literal["flatten", "global-average"] = Field(
        "flatten", title="Readout", description="From the last convolution to the next dense layer."
    )

    pool_size: int = Field(
        1,
        ge=1,
        le=8,
        title="Pooling",
        description="Side of the windows averaged after each convolution; 1: no pooling.",
    )

    @model_validator(mode="after")
    def _fits_layers(self) -> Self:
        counted = f"one number for each of the {self.depth} hidden layers"
        if self.relative_widths is not None and len(self.relative_widths) != self.depth:
            raise InvalidInput("relative_widths", self.relative_widths, counted)
        if self.bias_layers is not None and not self.use_bias:
            raise InvalidInput("bias_layers", self.bias_layers, "no layers without biases")
        if self.bias_layers is not None and max(self.bias_layers) > self.depth:
            raise InvalidInput("bias_layers", self.bias_layers, f"numbers from 1 to {self.depth}, the hidden layers")
        if self.output_weights == "signs" and self.uses("drop_probability") and self.drop_probability:
            raise InvalidInput("output_weights", self.output_weights, "normal where edges are dropped")
        return self

    def widths(self, width: int) -> tuple[int, ...]:
        """The width of each hidden layer at width m."""
        if self.kind == COMPOSED:
            return tuple(block.size(width) for block in self.composition.trained())
        widths = [width] * self.depth
        if self.uses("relative_widths") and self.relative_widths is not None:
            widths = [max(1, round(multiple * width)) for multiple in self.relative_widths]
        if self.kind == "bottleneck":
            widths[self.bottleneck_layer - 1] = self.bottleneck_width
        return tuple(widths)

    def biases(self) -> tuple[bool, ...]:
        """Whether each hidden layer has biases."""
        if self.kind == COMPOSED:
            return tuple(block.bias for block in self.composition.trained())
        chosen = range(1, self.depth + 1) if self.bias_layers is None else self.bias_layers
        return tuple(self.use_bias and layer in chosen for layer in range(1, self.depth + 1))

    @property
    def activations(self) -> tuple[str, ...]:
        """Every nonlinearity of the hidden layers."""
        if self.kind == COMPOSED:
            return self.composition.functions()
        other = self.bottleneck_activation if self.kind == "bottleneck" else "same"
        return (self.activation,) if other == "same" else (self.activation, other)

    @property
    def num_convolutions(self) -> int:
        """How many of the hidden layers are convolutions."""
        return {"convnet": self.depth, "mixed": 1}.get(self.kind, 0)

    def check_inputs(
        self, input_shape: tuple[int, ...], field: str = "architecture", *, widths: tuple[int, ...] = (1,)
    ) -> None:
        """Refuse inputs that the layers cannot take at one of the widths, naming the setting inside ``field``.

        Raises:
            InvalidInput: for a convolution on anything but images, a filter larger than its image, or a
                pooling that does not divide its sides, or layers of one's own that do not fit together.
        """
        if self.kind == COMPOSED:
            try:
                for width in widths:
                    lay_out(self.composition, width, input_shape)
            except InvalidInput as error:
                name = f"{field}.composition" if field else "composition"
                raise InvalidInput(name, f"{error.field}: {error.given}", error.allowed) from None
        if not self.num_convolutions:
            return
        if len(input_shape) != 3:
            raise InvalidInput(f"{field}.kind", self.kind, "this kind only with images, for example dataset mnist")
        sides: tuple[int, ...] = input_shape[:2]
        image = " × ".join(str(side) for side in sides)
        for layer in range(1, self.num_convolutions + 1):
            if self.kernel_size > min(sides):
                allowed = f"at most {min(sides)}, the sides that reach convolution {layer} from {image} images"
                raise InvalidInput(f"{field}.kernel_size", self.kernel_size, allowed)
            if any(side % self.pool_size for side in sides):
                allowed = f"1, or a divisor of the sides that reach each pooling ({layer} from {image} images: {sides})"
                raise InvalidInput(f"{field}.pool_size", self.pool_size, allowed)
            sides = tuple(side // self.pool_size for side in sides)

    @model_validator(mode="after")
    def _fits_depth(self) -> Self:
        if self.kind == "bottleneck" and self.depth < 2:
            raise InvalidInput("depth", self.depth, "2 to 16 with a bottleneck")
        if self.kind == "bottleneck" and self.bottleneck_layer > self.depth:
            raise InvalidInput(
                "bottleneck_layer", self.bottleneck_layer, f"1 to {self.depth}, the number of hidden layers"
            )
        if self.kind == "mixed" and self.depth < 2:
            raise InvalidInput("depth", self.depth, "2 to 16, a convolution and at least one dense layer")
        return self
