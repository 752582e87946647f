"""Hessian norms of model outputs against width, beside the kernel change of the same networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import Field, field_validator, model_validator

from ntk_core.data.spec import DatasetSpec
from ntk_core.dynamics.spec import TrainingSpec
from ntk_core.errors import InvalidInput
from ntk_core.networks.choices import ACTIVATIONS, OUTPUTS, check_second_derivative
from ntk_core.networks.spec import (
    COMPOSED,
    ActivationName,
    ArchitectureSpec,
    CompositionField,
    OutputName,
    ParameterizationName,
)
from ntk_core.runs import SweepSpec
from ntk_core.settings.part import Width
from ntk_core.settings.vocabulary import HESSIAN_NETWORKS

if TYPE_CHECKING:
    NetworkName = str
else:
    NetworkName = Literal[tuple(HESSIAN_NETWORKS)]

MAX_SERIES = 12
Radius = Annotated[float, Field(gt=0, le=1000)]


@dataclass(frozen=True)
class HessianNetwork:
    """What one of the compared networks is.

    Attributes:
        kind: of its architecture.
        nonlinear: whether φ of the spec is applied to its output.
        narrow: whether a narrow layer follows its first layer.
        scalar: whether it is one of the two networks on the scalar x = 1 whose Hessian is known in closed form.
    """

    kind: str = "fully-connected"
    nonlinear: bool = False
    narrow: bool = False
    scalar: bool = False

    @property
    def is_convolutional(self) -> bool:
        """Whether it needs images, and its width counts channels."""
        return self.kind in ("convnet", "mixed")


HESSIAN_NETWORK_PARTS = {
    "linear": HessianNetwork(),
    "nonlinear-output": HessianNetwork(nonlinear=True),
    "bottleneck": HessianNetwork("bottleneck", narrow=True),
    "resnet": HessianNetwork("resnet"),
    "resnet-nonlinear-output": HessianNetwork("resnet", nonlinear=True),
    "densenet": HessianNetwork("densenet"),
    "convnet": HessianNetwork("convnet"),
    "convnet-nonlinear-output": HessianNetwork("convnet", nonlinear=True),
    "convnet-bottleneck": HessianNetwork("convnet", narrow=True),
    "mixed": HessianNetwork("mixed"),
    "mixed-nonlinear-output": HessianNetwork("mixed", nonlinear=True),
    "mixed-bottleneck": HessianNetwork("mixed", narrow=True),
    "shallow": HessianNetwork(scalar=True),
    "quadratic-bottleneck": HessianNetwork("bottleneck", narrow=True, scalar=True),
    COMPOSED: HessianNetwork(COMPOSED),
    f"{COMPOSED}-nonlinear-output": HessianNetwork(COMPOSED, nonlinear=True),
}


class Series(NamedTuple):
    """One line of the figures: a network, drawn and scaled in one way."""

    network: str
    parameterization: str


class HessianSpec(SweepSpec):
    """‖∂²f_a/∂w²‖ of one output for a few inputs against width, for several networks (Liu, Zhu & Belkin 2020, Table 1).

    The first ``num_trained`` seeds of each network are trained too, so that ΔK stands beside ‖H‖ of the same weights.
    """

    point_words: ClassVar[tuple[str, str]] = ("point", "points")
    selector: ClassVar[str] = "networks"
    relevant: ClassVar[dict[str, tuple[str, ...]]] = {"composition": (COMPOSED, f"{COMPOSED}-nonlinear-output")}

    experiment: Literal["hessian"] = "hessian"
    dataset: DatasetSpec = DatasetSpec(name="digits", num_samples=20, classes=(0, 1, 2), standardize="standard")
    widths: tuple[Width, ...] = Field(
        (100, 300, 1000),
        min_length=1,
        max_length=24,
        title="Widths m",
        description="Widths m of the wide hidden layers.",
    )
    num_seeds: int = Field(10, ge=1, le=500, title="Seeds", description="Independent initializations w₀ per width.")

    networks: tuple[NetworkName, ...] = Field(
        ("linear", "nonlinear-output", "bottleneck", "convnet", "resnet", "densenet"),
        min_length=1,
        max_length=MAX_SERIES,
        title="Networks",
        description="Networks to compare.",
    )
    composition: CompositionField = ArchitectureSpec.model_fields["composition"]  # type: ignore[assignment]
    depth: int = Field(
        2, ge=1, le=8, title="Wide layers L", description="Number L of wide hidden layers; a bottleneck is one more."
    )
    activation: ActivationName = Field(
        "tanh", title="Activation σ", description="Nonlinearity σ of the hidden layers; it needs a second derivative."
    )
    output: OutputName = Field(
        "swish", title="Nonlinear output φ", description="φ of the networks with a nonlinear output."
    )
    parameterizations: tuple[ParameterizationName, ...] = Field(
        ("ntk",), min_length=1, max_length=3, title="Parameterizations", description="How weights are drawn and scaled."
    )
    use_bias: bool = Field(False, title="Biases b", description="Biases b in the hidden layers.")
    bottleneck_width: Width = Field(1, title="Bottleneck width m_b", description="Neurons m_b of the narrow layer.")
    neurons_per_channel: int = Field(
        12,
        ge=1,
        le=10_000,
        title="Neurons per channel",
        description="Convolutional networks have m divided by this many channels, since a channel costs much more.",
    )
    num_inputs: int = Field(
        2, ge=1, le=32, title="Inputs", description="Training inputs whose Hessian is measured; ‖H‖ is their mean."
    )
    output_index: int = Field(
        0, ge=0, le=19, title="Output a", description="Output a whose Hessian is measured, counted from 0."
    )

    num_trained: int = Field(
        3,
        ge=0,
        le=100,
        title="Seeds trained",
        description="How many of the seeds are trained too, for ΔK of the same networks; 0 for none.",
    )
    bounds: bool = Field(
        True,
        title="Bounds",
        description="Layer quantities and the bound of Theorem 3.1 (fully connected, linear output), and the lower "
        "bound with a nonlinear output.",
    )
    blocks: bool = Field(
        True, title="Blocks", description="Norms of the layer × layer blocks of the Hessian of the first seed."
    )
    radii: tuple[Radius, ...] = Field(
        (),
        max_length=12,
        title="Radii R",
        description="Radii R of balls around w₀ in which ‖H‖ and the kernel change are maximized; empty for none.",
    )
    num_starts: int = Field(2, ge=1, le=20, title="Starts", description="Ascents, and random directions, in each ball.")
    num_ball_seeds: int = Field(
        3, ge=1, le=100, title="Seeds with balls", description="How many of the seeds are searched in their balls."
    )
    training: TrainingSpec = TrainingSpec(loss_threshold=0.1, max_steps=1000, num_records=10)

    @field_validator("networks", "parameterizations")
    @classmethod
    def _once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(names))

    @field_validator("radii")
    @classmethod
    def _rising(cls, radii: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(sorted(set(radii)))

    @model_validator(mode="after")
    def _has_a_hessian(self) -> Self:
        for name in self.composition.functions() if self.uses("composition") else ():
            check_second_derivative("composition", name, ACTIVATIONS)
        check_second_derivative("activation", self.activation, ACTIVATIONS)
        check_second_derivative("output", self.output, OUTPUTS)
        if self.output == "linear" and any(HESSIAN_NETWORK_PARTS[name].nonlinear for name in self.networks):
            raise InvalidInput("output", "linear", "a nonlinear one, or no network with a nonlinear output")
        return self

    @model_validator(mode="after")
    def _fits(self) -> Self:
        shapes = self.dataset.known_shapes()
        if len(self.series()) > MAX_SERIES:
            given = f"{len(self.networks)} networks with {len(self.parameterizations)} parameterizations"
            raise InvalidInput("networks", given, f"at most {MAX_SERIES} lines in all")
        narrow = [name for name in self.networks if HESSIAN_NETWORK_PARTS[name].narrow]
        narrowest = min((self.wide_width(name, self.widths[0]) for name in narrow), default=self.bottleneck_width)
        if self.bottleneck_width > narrowest:
            raise InvalidInput("bottleneck_width", self.bottleneck_width, f"1 to {narrowest}, as the wide layers have")
        if shapes is None:
            return self
        convolutional = [name for name in self.networks if HESSIAN_NETWORK_PARTS[name].is_convolutional]
        if convolutional and len(shapes.input_shape) != 3:
            raise InvalidInput("networks", convolutional[0], "this kind only with images, for example dataset mnist")
        if self.uses("composition"):
            own = ArchitectureSpec(kind=COMPOSED, composition=self.composition)
            own.check_inputs(shapes.input_shape, "", widths=self.widths)
        if self.output_index >= shapes.num_outputs:
            raise InvalidInput("output_index", self.output_index, f"0 to {shapes.num_outputs - 1}, one of the outputs")
        if self.num_inputs > shapes.num_samples:
            raise InvalidInput("num_inputs", self.num_inputs, f"1 to {shapes.num_samples}, the training points")
        return self

    def series(self) -> tuple[Series, ...]:
        """Every line of the figures."""
        return tuple(Series(name, scaling) for name in self.networks for scaling in self.parameterizations)

    def point_keys(self) -> tuple[str, ...]:
        """One point per width and line, the narrow ones first."""
        return tuple(hessian_key(width, series) for width in self.widths for series in self.series())

    def at_key(self, key: str) -> tuple[int, Series]:
        """(width m, line) of the point of this key."""
        values = dict(part.split("=") for part in key.split(" "))
        return int(values["width"]), Series(values["network"], values["parameterization"])

    def architecture(self, series: Series, width: int) -> ArchitectureSpec:
        """The layers of one line at width m, which gives its wide layers :meth:`wide_width` neurons or channels."""
        parts = HESSIAN_NETWORK_PARTS[series.network]
        settings: dict[str, Any] = {"kind": parts.kind, "parameterization": series.parameterization}
        if parts.scalar:  # f = Σ v_i σ(w_i x)/√m with v = ±1 fixed, or Eq. 31
            settings |= {"use_bias": False, "activation": self.activation}
            if not parts.narrow:
                return ArchitectureSpec(trained="first", output_weights="signs", **settings)
            settings |= {"activation": "quadratic", "bottleneck_activation": "identity", "bottleneck_width": 1}
            return ArchitectureSpec(depth=3, **settings)
        if parts.kind == COMPOSED:
            return ArchitectureSpec(composition=self.composition, **settings)
        depth = (max(self.depth, 2) if parts.narrow or parts.kind in ("resnet", "mixed") else self.depth) + parts.narrow
        if parts.kind == "bottleneck":
            settings["bottleneck_width"] = self.bottleneck_width
        elif parts.narrow:
            share = self.bottleneck_width / self.wide_width(series.network, width)
            settings["relative_widths"] = (1.0, share, *[1.0] * (depth - 2))
        return ArchitectureSpec(depth=depth, activation=self.activation, use_bias=self.use_bias, **settings)

    def wide_width(self, network: str, width: int) -> int:
        """Neurons, or channels, of the wide layers at width m."""
        if not HESSIAN_NETWORK_PARTS[network].is_convolutional:
            return width
        return max(1, round(width / self.neurons_per_channel))

    def output_of(self, network: str) -> str:
        """φ of one of the networks."""
        return self.output if HESSIAN_NETWORK_PARTS[network].nonlinear else "linear"


def hessian_key(width: int, series: Series) -> str:
    """The key of the point of this width and line."""
    return f"width={width} network={series.network} parameterization={series.parameterization}"


def has_bound(network: str) -> bool:
    """Whether Theorem 3.1 is stated for this network: fully connected, linear output."""
    parts = HESSIAN_NETWORK_PARTS[network]
    return parts.kind in ("fully-connected", "bottleneck") and not parts.nonlinear
