"""Hessian norms of model outputs against width, beside the kernel change of the same networks."""

import functools
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from linearity_lab.data import DatasetShapes, dataset_shapes
from linearity_lab.data.spec import DatasetSpec
from linearity_lab.experiments.hessian.network import ComparedNetwork, named, templates
from linearity_lab.networks.sizes import LayerSize, layer_sizes, num_copies
from linearity_lab.networks.spec import GROWN_TITLES, SizeNames, grown_size
from linearity_lab.runs import Counted, Counts, SpecOf, SweepSpec, typical_steps
from linearity_lab.settings.part import Ascending, Width
from linearity_lab.settings.training import DescentSettings, DescentSpec
from ntk_core.errors import InvalidInput
from ntk_core.networks.counts import small_space_pays

if TYPE_CHECKING:
    from linearity_lab.experiments.hessian.point import (
        HessianResult,  # noqa: F401 - SpecOf names it
    )

Radius = Annotated[float, Field(gt=0, le=1000)]


class HessianSpec(SweepSpec, SpecOf["HessianResult"]):
    """Hessian norms of several networks against width.

    ‖∂²f_a/∂w²‖ of one output, for a few inputs.

    The first ``num_trained`` seeds of each network are also trained, to compare ΔK with ‖H‖
    of the same weights.

    Source: Liu, Zhu & Belkin 2020, Table 1; docs/math/hessian_against_width.md.

    >>> networks = (ComparedNetwork(), ComparedNetwork(output="softmax"))
    >>> HessianSpec(networks=networks, widths=(100, 200)).point_keys()[:2]
    ('width=100 network=fully-connected', 'width=100 network=fully-connected-softmax')
    """

    selector: ClassVar[str] = "swept"
    relevant: ClassVar[dict[str, tuple[str, ...]]] = {"fixed_width": ("num_tokens",)}
    key_parts: ClassVar = {"width": int, "network": str}  # the width m or the swept value; the line
    point_words: ClassVar[tuple[str, str]] = ("point", "points")

    experiment: Literal["hessian"] = "hessian"
    dataset: DatasetSpec = DatasetSpec(
        name="digits", num_samples=20, classes=(0, 1, 2), standardize="standard"
    )
    widths: tuple[Width, ...] = Field(
        default=(100, 200, 500, 1000), min_length=1, max_length=24, title="Widths m"
    )
    """Widths m of the wide hidden layers; or the other swept values."""
    swept: Annotated[Literal["width", "num_tokens"], SizeNames] = Field(
        default="width", title="Swept"
    )
    """Swept quantity: widths of the networks,
    or the number T of tokens of every sequence at one width.
    """
    fixed_width: Width = Field(default=16, title="Width m at every length")
    """Width m of the networks if the number of tokens is swept."""
    num_seeds: int = Field(default=10, ge=1, le=500, title="Seeds")
    """Independent initializations w₀ per width."""

    networks: tuple[ComparedNetwork, ...] = Field(
        default=templates(
            "fully-connected",
            "fully-connected-swish",
            "bottleneck",
            "convnet",
            "resnet",
            "densenet",
        ),
        min_length=1,
        max_length=12,
        title="Networks",
        json_schema_extra={"each": "Network"},
    )
    """Networks to compare."""
    num_inputs: int = Field(default=2, ge=1, le=32, title="Inputs")
    """Training inputs whose Hessian is measured; ‖H‖ is their mean."""
    output_index: int = Field(default=0, ge=0, le=19, title="Output a")
    """Output a whose Hessian is measured, counted from 0."""

    num_trained: int = Field(default=3, ge=0, le=100, title="Seeds trained")
    """Number of seeds that are also trained, for ΔK of the same networks; 0 for none."""
    bounds: bool = Field(
        default=True,
        title="Bounds",
        description="Layer quantities of Theorem 3.1 and bounds of all blocks (fully connected, "
        "linear output). With a nonlinear output, the lower bound.",
    )
    vector: bool = Field(
        default=False,
        title="All outputs together",
        description="Also measure the norm of the Hessian of all outputs together, a tensor "
        "(Zhu, Liu & Belkin 2022, App. C).",
    )
    blocks: bool = Field(default=True, title="Blocks")
    """Norms of the layer × layer blocks of the Hessian of the first seed."""
    shares: bool = Field(default=False, title="Shares of the kernel")
    """Measure the share of each trained layer in K(x, x)."""
    radii: Annotated[tuple[Radius, ...], Ascending] = Field(
        default=(), max_length=12, title="Radii R"
    )
    """Radii R of balls around w₀ in which ‖H‖ and the kernel change are maximized;
    empty for none.
    """
    num_starts: int = Field(default=2, ge=1, le=20, title="Starts")
    """Ascents, and random directions, in each ball."""
    num_ball_seeds: int = Field(default=3, ge=1, le=100, title="Seeds with balls")
    """Number of seeds with a search in their balls."""
    training: DescentSettings = DescentSpec(loss_threshold=0.1, max_steps=1000, num_records=10)

    @model_validator(mode="after")
    def _takes_lengths(self) -> Self:
        if self.swept == "num_tokens" and not self.dataset.uses("num_tokens"):
            raise InvalidInput(
                "swept", self.swept, "width, unless the data are generated sequences", "width"
            )
        for value in self.widths if self.swept == "num_tokens" else ():
            try:
                self.dataset_at(value).known_shapes()
            except InvalidInput as error:
                raise InvalidInput("widths", value, error.allowed) from None
        return self

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for index, network in enumerate(self.networks):
            if network in self.networks[:index]:
                raise InvalidInput(
                    f"networks.{index}.kind",
                    network.kind,
                    "a network that differs from all earlier ones",
                )
            wide = network.at(self.width_at(self.widths[0]))[1]
            if network.bottleneck and network.bottleneck[1] > wide:
                name, narrow = network.bottleneck
                raise InvalidInput(
                    f"networks.{index}.{name}", narrow, f"1 to {wide}, the width of the wide layers"
                )
        shapes = self.dataset_at(self.widths[0]).known_shapes()
        if shapes is None:
            return self
        for index, network in enumerate(self.networks):
            seen = shapes.input_shape if network.input == "data" else (1,)
            network.check_inputs(
                seen, f"networks.{index}", widths=tuple(map(self.width_at, self.widths))
            )
        if self.output_index >= shapes.num_outputs:
            highest = shapes.num_outputs - 1
            raise InvalidInput(
                "output_index", self.output_index, f"0 to {highest}, one of the outputs", highest
            )
        if self.num_inputs > shapes.num_samples:
            most = shapes.num_samples
            raise InvalidInput(
                "num_inputs", self.num_inputs, f"1 to {most}, the training points", most
            )
        for index, network in enumerate(self.networks):
            if network.output == "softmax" and not shapes.class_names:
                allowed = "another output, for data without classes"
                raise InvalidInput(f"networks.{index}.output", network.output, allowed, "linear")
        return self

    def _of_seed(self, index: int) -> Self:
        left = {
            name: max(0, min(1, getattr(self, name) - index))
            for name in ("num_trained", "num_ball_seeds")
        }
        return (
            super()._of_seed(index).model_copy(update={**left, "blocks": self.blocks and not index})
        )

    @property
    def swept_title(self) -> str:
        """Title of the swept values; widths if networks differ in them."""
        if self.swept == "num_tokens":
            return "Tokens T"
        return GROWN_TITLES.get(grown_size(self.networks), super().swept_title)

    def dataset_at(self, value: int) -> DatasetSpec:
        """The data at one swept value."""
        return (
            self.dataset.model_copy(update={"num_tokens": value})
            if self.swept == "num_tokens"
            else self.dataset
        )

    def width_at(self, value: int) -> int:
        """Width m at one swept value."""
        return self.fixed_width if self.swept == "num_tokens" else value

    def lines(self) -> dict[str, ComparedNetwork]:
        """Networks by name, one line of the figures each."""
        return named(self.networks)

    def num_records(self, key: str) -> Mapping[str, int]:
        """One run per seed."""
        return {"runs": self.num_seeds}

    def point_keys(self) -> tuple[str, ...]:
        """One point for each width and line, narrow ones first."""
        return tuple(hessian_key(width, line) for width in self.widths for line in self.lines())


def hessian_key(width: int, line: str) -> str:
    """Return the key of the point at this width and line."""
    return f"width={width} network={line}"


# Typical counts; only the largest number of stored Lanczos vectors is exact.
TYPICAL_MATVECS = 20
MAX_LANCZOS_VECTORS = 129
MAX_OF_DIAGONAL = 257
BALL_STEPS = 8
TYPICAL_FURTHER_STEPS = 60  # of the best ascent
TYPICAL_STEPS = 200
TYPICAL_ROUNDS = 5  # of the search for the best combination of outputs
# Copies of the weights: the network alone; a step of training (gradient and new weights);
# an ascent in a ball.
COPIES_AT_REST = 1
COPIES_IN_TRAINING = 3
COPIES_IN_BALLS = 6


def counts(spec: HessianSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """Count one width and network with all seeds.

    ``most`` assumes all allowed steps and products.
    """
    width, line = spec.value_of(key)
    network = spec.lines()[line]
    counted = _counted(spec, network, width)
    lanczos = MAX_OF_DIAGONAL if network.closed_form == "shallow" else MAX_LANCZOS_VECTORS
    bounded = spec.bounds and (network.has_bound or network.output != "linear")
    # Every output alone, then the rounds from each of them and from a random direction.
    num_outputs = counted.num_outputs
    norms = 1 + bounded + spec.vector * (num_outputs + TYPICAL_ROUNDS * (num_outputs + 1))
    directions = spec.num_seeds * norms * min(spec.num_inputs, counted.num_samples)
    blocks = spec.blocks and width == spec.widths[-1]
    directions += 2 * blocks * math.comb(len(counted.layers) + 1, 2)
    places = len(spec.radii) * (spec.num_starts * (BALL_STEPS + 1) + TYPICAL_FURTHER_STEPS)
    directions += 2 * min(spec.num_ball_seeds, spec.num_seeds) * places
    trained = min(spec.num_trained, spec.num_seeds) if network.input == "data" else 0
    copies = COPIES_AT_REST
    if spec.radii:
        copies = COPIES_IN_BALLS
    elif trained:
        copies = COPIES_IN_TRAINING
    programs = {
        "hessian": 1 + (bounded + blocks + spec.shares) / 2 + spec.vector,
        "training": bool(trained),
        "search": bool(places),
    }
    return (
        Counts(
            counted,
            programs,
            steps=trained * typical_steps(spec.training.max_steps, most, TYPICAL_STEPS),
            kernels=trained * spec.training.num_records + spec.shares * spec.num_seeds,
            products=directions * (lanczos if most else TYPICAL_MATVECS),
            copies=copies,
            views=1,
            matrices=4,
            numbers=lanczos * sum(map(restricted_size, counted.layers)),
        ),
    )


@functools.lru_cache(maxsize=128)
def _counted(spec: HessianSpec, network: ComparedNetwork, value: int) -> Counted:
    """Count one network on its inputs at one swept value."""
    shapes = _shapes(spec, network, value)
    layers = hidden_and_output(spec, network, value) * num_copies(network)
    return Counted(layers, shapes.num_samples, shapes.num_outputs)


def hidden_and_output(
    spec: HessianSpec, network: ComparedNetwork, value: int
) -> tuple[LayerSize, ...]:
    """Layers of one network at one swept value."""
    shapes = _shapes(spec, network, value)
    return layer_sizes(*network.at(spec.width_at(value)), shapes.input_shape, shapes.num_outputs)


def restricted_size(layer: LayerSize) -> int:
    """Entries of one direction of the small space in this layer, for one input."""
    if layer.masked or not small_space_pays(layer.positions, layer.fan_in, layer.features):
        return layer.num_params
    return layer.positions * (layer.fan_in + layer.features) + layer.num_biases


def _shapes(spec: HessianSpec, network: ComparedNetwork, value: int) -> DatasetShapes:
    """Shapes of the network's data."""
    dataset = spec.dataset_at(value)
    known = dataset_shapes(dataset.name, **dataset.options())
    return (
        known
        if network.input == "data"
        else replace(known, num_samples=1, input_shape=(1,), num_outputs=1)
    )
