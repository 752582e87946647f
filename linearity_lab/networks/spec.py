"""Settings of a network, apart from its width, its outputs and φ."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, InstanceOf, PlainSerializer, model_validator

from linearity_lab.settings.part import SpecPart, Vocabulary, Width, one_of
from ntk_core.errors import InvalidInput
from ntk_core.networks.choices import (
    ACTIVATIONS,
    OUTPUTS,
    PARAMETERIZATIONS,
    SAME,
    SIZES,
    SUB_MODELS,
)
from ntk_core.networks.graphs import (
    Composition,
    composition_examples,
    lay_out,
    named_inside,
    parse_composition,
)
from ntk_core.networks.kinds import ARCHITECTURES, Kind

# Type checkers want the names written out; at run time they come from the vocabulary.
if TYPE_CHECKING:
    ArchitectureName = str
    ActivationName = str
    BottleneckActivationName = str
    ParameterizationName = str
    OutputName = str
    SubModelName = str
else:
    ArchitectureName = one_of(ARCHITECTURES)
    ActivationName = one_of(ACTIVATIONS)
    BottleneckActivationName = one_of({"same": SAME, **ACTIVATIONS})
    ParameterizationName = one_of(PARAMETERIZATIONS)
    OutputName = one_of(OUTPUTS)
    SubModelName = one_of(SUB_MODELS)


MAX_DEPTH = 16  # hidden layers
SizeNames = Vocabulary(SIZES)
# Of swept sizes.
GROWN_TITLES = {
    "num_heads": "Heads H",
    "head_dim": "Head dimensions d",
    "rank": "Ranks r",
}
COMPOSED = "composed"  # the architecture of custom layers


CompositionField = Annotated[
    InstanceOf[Composition],
    BeforeValidator(named_inside(parse_composition)),
    PlainSerializer(Composition.data),
]
SEQUENCES = "sequences (T, d), such as random-sequences, or images cut into patches"
IMAGES = "images that are not cut into patches, such as mnist"


def _kinds_by_setting() -> dict[str, tuple[str, ...]]:
    """Map each setting to the architectures that use it."""
    kinds: dict[str, tuple[str, ...]] = {}
    for kind in ARCHITECTURES.values():
        for name in kind.settings:
            kinds[name] = (*kinds.get(name, ()), kind.name)
    return kinds


class ArchitectureSpec(SpecPart):
    """Settings of a network except its width.

    Settings → layers of f(w; x), apart from its width, its outputs and φ.

    Source: Liu, Zhu & Belkin 2020, Eq. 7, §4, App. A and G; Zhu, Liu & Belkin 2022, App. A;
    Vaswani et al. 2017.

    >>> ArchitectureSpec(depth=3).widths(8)
    (8, 8, 8)
    """

    selector: ClassVar[str] = "kind"
    relevant: ClassVar[dict[str, tuple[str, ...]]] = _kinds_by_setting()

    kind: ArchitectureName = Field(default="fully-connected", title="Architecture")
    """How neurons are connected."""
    depth: int = Field(default=1, ge=1, le=MAX_DEPTH, title="Hidden layers L")
    """Number L of hidden layers."""
    activation: ActivationName = Field(default="relu", title="Activation σ")
    """Nonlinearity σ of the hidden layers."""
    use_bias: bool = Field(default=True, title="Biases b")
    """Biases b in the hidden layers; the output layer never has one."""
    bias_layers: tuple[Annotated[int, Field(ge=1, le=16)], ...] | None = Field(
        default=None,
        min_length=1,
        max_length=16,
        title="Layers with biases",
        json_schema_extra={"when_empty": "all"},
    )
    """Hidden layers with biases, counted from 1; all when empty."""
    relative_widths: tuple[Annotated[float, Field(gt=0, le=100)], ...] | None = Field(
        default=None,
        min_length=1,
        max_length=16,
        title="Widths of the layers, in m",
        json_schema_extra={"when_empty": "m for all"},
    )
    """One multiple of m for each hidden layer, such as 1, 0.5, 2; m for all when empty."""
    composition: CompositionField = Field(
        default=composition_examples()["residual"],
        title="Your layers",
        json_schema_extra={"entry": "composition"},
    )
    """Registered layers as JSON, starting at the input; the output layer is added automatically."""
    parameterization: ParameterizationName = Field(default="ntk", title="Parameterization")
    """How weights are drawn and scaled with the width."""
    trained: Literal["all", "first", "hidden", "last"] = Field(
        default="all", title="Trained layers"
    )
    """Layers that are trained and so contribute to the kernel K."""
    output_weights: Literal["normal", "signs"] = Field(default="normal", title="Output weights v")
    """Output weights v: normal, or random ±1,
    which stay constant if only hidden layers are trained.
    """
    initial_output: Literal["random", "symmetric", "subtracted"] = Field(
        default="random", title="Output at w₀"
    )
    """random f(w₀); 0 by two mirrored copies, (f − f')/√2; or 0 by subtraction, f − f(w₀)."""
    bottleneck_width: Width = Field(default=3, title="Bottleneck width m_b")
    """Neurons m_b of the narrow layer."""
    bottleneck_layer: int = Field(default=2, ge=1, le=16, title="Bottleneck layer")
    """Which hidden layer is narrow, counted from 1."""
    bottleneck_activation: BottleneckActivationName = Field(
        default="same", title="Activation of the narrow layer"
    )
    """Same as the other layers, or its own."""
    skip_every: int = Field(default=1, ge=1, le=2, title="Skip every")
    """Number of layers that a skip connection spans."""
    drop_probability: float = Field(default=0.0, ge=0, le=0.99, title="Drop probability")
    """Probability that an edge is removed before training, permanently."""
    kernel_size: int = Field(default=3, ge=1, le=32, title="Filter size")
    """Pixels along each side of a convolution's filter."""
    padding: Literal["circular", "zero"] = Field(default="circular", title="Padding")
    """Padding of a filter beyond the border of the image."""
    readout: Literal["flatten", "global-average"] = Field(default="flatten", title="Readout")
    """From the last convolution to the next dense layer."""

    pool_size: int = Field(default=1, ge=1, le=8, title="Pooling")
    """Side of the windows averaged after each convolution; 1: no pooling."""

    width_is: Annotated[Literal["head_dim", "num_heads", "mlp_width"], SizeNames] = Field(
        default="head_dim", title="The width m is"
    )
    """Size that grows with m: the dimension d of a head, the number H of heads, or the MLPs."""
    num_heads: int = Field(default=4, ge=1, le=64, title="Heads H")
    """Number H of heads, unless it is m."""
    head_dim: int = Field(default=16, ge=1, le=4096, title="Head dimension d")
    """Dimension d of queries, keys and values of a head, unless it is m;
    a transformer has H d features.
    """
    score_exponent: float = Field(default=0.5, ge=0, le=1, title="Score exponent τ")
    """Scores are q·k / d^τ: ½ is usual, 1 lets attention fade as d grows."""
    causal: bool = Field(default=False, title="Causal")
    """Each position attends only to itself and earlier positions."""
    num_blocks: int = Field(default=2, ge=1, le=12, title="Blocks L")
    """Number L of blocks: attention and an MLP, each with a skip connection."""
    mlp_factor: float = Field(default=4.0, gt=0, le=16, title="Width of the MLPs, in H d")
    """Neurons of the MLPs as a multiple of the H d features, unless they are m."""
    normalization: Literal["none", "plain", "gains"] = Field(default="gains", title="Normalization")
    """Before attention, MLP and readout:
    none, each position to mean 0 and variance 1, or that with trained gains.
    """
    positions: Literal["none", "fixed", "learned"] = Field(default="learned", title="Positions")
    """How positions are encoded: not at all, as sines and cosines, or as trained vectors."""
    token_readout: Literal["mean", "first"] = Field(default="mean", title="Readout of the sequence")
    """Input of the output layer: the mean over positions, or the first position."""

    base: Annotated[
        Literal["fully-connected", "bottleneck", "resnet", "densenet"], Vocabulary(ARCHITECTURES)
    ] = Field(default="fully-connected", title="Adapted architecture")
    """The dense architecture whose weights are frozen."""
    adapted_layers: tuple[Annotated[int, Field(ge=1, le=16)], ...] | None = Field(
        default=None,
        min_length=1,
        max_length=16,
        title="Adapted layers",
        json_schema_extra={"when_empty": "all"},
    )
    """Hidden layers with an update B A, counted from 1; all when empty."""
    adapter_rank: int = Field(default=4, ge=1, le=4096, title="Rank r")
    """Rank r of the updates, unless it is m."""
    rank_exponent: float = Field(default=0.5, ge=0, le=1, title="Scale exponent s")
    """Updates are B A / r^s: ½ keeps their kernel constant as r grows, 1 is usual."""
    grows: Literal["neurons", "rank"] = Field(default="neurons", title="What m is")
    """Size that grows with m: the neurons of the hidden layers or the rank r;
    the other stays constant.
    """
    layer_width: Width = Field(default=256, title="Neurons of the layers")
    """Neurons of each hidden layer if the rank is m."""

    sub_model: SubModelName = Field(default="neurons", title="Sub-model g")
    """The small model g that is copied m times."""

    @model_validator(mode="after")
    def _fits_layers(self) -> Self:
        counted = f"one number for each of the {self.depth} hidden layers"
        if self.relative_widths is not None and len(self.relative_widths) != self.depth:
            raise InvalidInput("relative_widths", self.relative_widths, counted)
        if self.bias_layers is not None and not self.use_bias:
            raise InvalidInput("bias_layers", self.bias_layers, "no layers without biases")
        if self.bias_layers is not None and max(self.bias_layers) > self.depth:
            raise InvalidInput(
                "bias_layers",
                self.bias_layers,
                f"numbers from 1 to {self.depth}, the hidden layers",
            )
        self.record.check(self)
        return self

    @property
    def record(self) -> Kind:
        """Properties that its architecture declares."""
        return ARCHITECTURES[self.kind]

    @property
    def grown(self) -> str:
        """Size that is m, such as ``rank``; empty if it is the width of all hidden layers."""
        name = next(filter(self.uses, ("width_is", "grows")), "")
        return getattr(self, name).replace("neurons", "") if name else ""

    @property
    def has_relative_widths(self) -> bool:
        """Whether its hidden layers have their own widths, in m."""
        return self.relative_widths is not None and self.uses("relative_widths")

    @property
    def hidden(self) -> tuple[tuple[int | str, bool], ...]:
        """Width, a number or in m, and biases of each numbered hidden layer."""
        multiples = self.relative_widths if self.has_relative_widths else None
        widths = [f"{multiple!r}m" for multiple in multiples] if multiples else ["m"] * self.depth
        chosen = range(1, self.depth + 1) if self.bias_layers is None else self.bias_layers
        biases = (self.use_bias and layer in chosen for layer in range(1, self.depth + 1))
        return tuple(zip(widths, biases, strict=True))

    @property
    def written_out(self) -> Composition:
        """The network as a composition of registered layers, whose widths are numbers or in m."""
        return self.record.write_out(self, self.hidden)

    def widths(self, width: int) -> tuple[int, ...]:
        """Width of each hidden layer at width m, except gains and positions."""
        sizes = (block.size(width) for block in self.written_out.trained())
        return tuple(size for size in sizes if size is not None)

    def biases(self) -> tuple[bool, ...]:
        """Whether each hidden layer has biases."""
        return tuple(block.bias for block in self.written_out.trained())

    @property
    def activations(self) -> tuple[str, ...]:
        """Every nonlinearity of the hidden layers."""
        return tuple(map(str, self.written_out.functions()))

    @property
    def has_infinite_width(self) -> bool:
        """Whether the kernel of infinite width is known."""
        grows = not self.uses("width_is") or self.width_is == "num_heads"
        return self.record.has_infinite_width and self.parameterization == "ntk" and grows

    def check_infinite_width(self) -> None:
        """Refuse the infinite-width kernel where it is unknown."""
        if not self.has_infinite_width:
            known = ", ".join(
                kind.name for kind in ARCHITECTURES.values() if kind.has_infinite_width
            )
            heads = "; of attention as the number of heads grows" if self.uses("width_is") else ""
            raise InvalidInput(
                "infinite_width",
                True,
                f"false, except for NTK parameterization and {known}{heads}",
                False,
            )

    def check_inputs(
        self,
        input_shape: tuple[int, ...],
        field: str = "architecture",
        *,
        widths: tuple[int, ...] = (1,),
    ) -> None:
        """Refuse inputs that do not fit the layers.

        All given widths are tried; the refusal names the setting inside ``field``.
        """
        try:
            for width in widths if self.uses("composition") else widths[:1]:
                lay_out(self.written_out.steps, width, input_shape)
        except InvalidInput as error:
            place = error.field.rpartition(".")[2]
            given = error.given
            allowed = error.allowed
            if self.uses("composition"):
                place = "composition"
                given = f"{error.field}: {given}"
            elif place == "kind":
                given = self.kind
                inputs = SEQUENCES if "num_heads" in self.record.settings else IMAGES
                allowed = f"this architecture only with {inputs}"
            name = {"size": "pool_size"}.get(place, place)
            raise InvalidInput(f"{field}.{name}" if field else name, given, allowed) from None


def grown_size(architectures: Iterable[ArchitectureSpec]) -> str:
    """Return the size that is m in all of these networks; empty if it is the width or differs."""
    found = {each.grown for each in architectures}
    return found.pop() if len(found) == 1 else ""
