"""Networks of a Hessian comparison, and templates to choose from; free of JAX."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from linearity_lab.networks.differences import differences
from linearity_lab.networks.spec import COMPOSED, ActivationName, ArchitectureSpec, OutputName
from linearity_lab.settings.part import CountsNeurons
from ntk_core.errors import InvalidInput
from ntk_core.networks.choices import PARAMETERIZATIONS, almost_everywhere
from ntk_core.networks.kinds import ARCHITECTURES, network_title

CONVOLUTIONAL = tuple(
    name for name, kind in ARCHITECTURES.items() if "kernel_size" in kind.settings
)


class ComparedNetwork(ArchitectureSpec):
    """Network of a Hessian comparison, whose width follows m.

    A network φ(f(w; x)): its layers, its output φ, and its inputs.

    Wide layers have r m neurons or channels, rounded, with r = ``relative_width``.

    Source: Liu, Zhu & Belkin 2020, §3, §4 and App. G; relative widths are our choice.

    >>> ComparedNetwork(output="softmax").activation, ArchitectureSpec().activation
    ('tanh', 'relu')
    """

    relevant: ClassVar[dict[str, tuple[str, ...]]] = {
        **ArchitectureSpec.relevant,
        "narrow_width": CONVOLUTIONAL,
    }

    # As in every architecture, except for these defaults: tanh, without biases, deep
    # enough for a bottleneck.
    depth: int = Field(default=2, ge=1, le=16, title="Hidden layers L")
    """Number L of hidden layers."""
    activation: ActivationName = Field(default="tanh", title="Activation σ")
    """Nonlinearity σ of the hidden layers;
    ReLU and leaky ReLU have their Hessian almost everywhere.
    """
    use_bias: bool = Field(default=False, title="Biases b")
    """Biases b in the hidden layers."""

    output: OutputName = Field(default="linear", title="Output φ")
    """Output nonlinearity φ."""
    relative_width: float = Field(
        default=1.0,
        gt=0,
        le=1,
        title="Width of its wide layers, in m",
        description="Neurons, or channels, of the wide layers as a share of m. A channel costs "
        "much more than a neuron: 1/12 of them take about as long.",
    )
    narrow_width: Annotated[int, CountsNeurons()] = Field(
        default=0, ge=0, le=10_000_000, title="Width of the second layer"
    )
    """Channels or neurons of the second hidden layer at every m: a bottleneck; 0:
    as wide as the rest.
    """
    input: Literal["data", "one"] = Field(default="data", title="Input")
    """The data; or the single scalar x = 1, on which some Hessians are known in closed form."""

    @model_validator(mode="after")
    def _fits_a_bottleneck(self) -> Self:
        if self.narrow_width and self.uses("narrow_width") and self.depth < 2:
            raise InvalidInput("narrow_width", self.narrow_width, "0 with a single hidden layer")
        return self

    def at(self, width: int) -> tuple[ArchitectureSpec, int]:
        """(architecture, neurons or channels of the wide layers) at width m."""
        wide = max(1, round(self.relative_width * width))
        if not (self.uses("narrow_width") and self.narrow_width):
            return self, wide
        first, _, *others = self.relative_widths or (1.0,) * self.depth
        return self.model_copy(
            update={"relative_widths": (first, self.narrow_width / wide, *others)}
        ), wide

    @property
    def bottleneck(self) -> tuple[str, int] | None:
        """(setting, width) of its narrow layer; None without one."""
        name = "bottleneck_width" if self.uses("bottleneck_width") else "narrow_width"
        return (name, getattr(self, name)) if self.uses(name) and getattr(self, name) else None

    @property
    def almost_everywhere(self) -> str:
        """Curvature that its Hessian misses at kinks of σ or φ; empty without kinks."""
        return almost_everywhere(self.activations, [self.output])

    @property
    def closed_form(self) -> str:
        """``shallow`` or ``quadratic-bottleneck``, with known Hessians on x = 1; else empty."""
        if self.input == "data":
            return ""
        plain = self.model_copy(update={"parameterization": "ntk"})
        if plain == _QUADRATIC:
            return "quadratic-bottleneck"
        return (
            "shallow"
            if plain == _SHALLOW.model_copy(update={"activation": self.activation})
            else ""
        )

    @property
    def has_bound(self) -> bool:
        """Whether Theorem 3.1 covers it: fully connected, random outputs at w₀, linear output."""
        covered = self.output == "linear" and self.initial_output == "random"
        return covered and self.kind in ("fully-connected", "bottleneck")

    @property
    def family(self) -> str:
        """Its kind, with its bottleneck; or the name of its closed form."""
        narrow = self.bottleneck is not None and self.kind != "bottleneck"
        return self.closed_form or (f"{self.kind}-bottleneck" if narrow else self.kind)

    @property
    def name(self) -> str:
        """Return a name such as ``resnet-swish-lecun``.

        It has the family, the output unless it is linear, and the parameterization unless it is
        NTK.
        """
        parts = (self.family, self.output, self.parameterization)
        return "-".join(each for each in parts if each not in ("linear", "ntk"))

    @property
    def title(self) -> str:
        """``CNN, bottleneck, swish output, LeCun``; defaults are omitted."""
        return self.titled()

    def titled(self, *, with_kind: bool = False, with_scale: bool = False) -> str:
        """Return the title of the network.

        On request it names the defaults, fully connected and the NTK parameterization.
        """
        if self.closed_form:
            title = "shallow, diagonal" if self.closed_form == "shallow" else "quadratic bottleneck"
        else:
            title = network_title(self.family, self.output)
            if with_kind and self.family == "fully-connected":
                output = "" if self.output == "linear" else f", {title}"
                title = f"{ARCHITECTURES[self.family].title}{output}"
            if self.input == "one":
                title = f"{title}, x = 1"
        if self.parameterization == "ntk" and not with_scale:
            return title
        return f"{title}, {PARAMETERIZATIONS[self.parameterization].title.partition(' (')[0]}"

    def with_shared(
        self,
        *,
        layers: int | None = None,
        bottleneck_width: int | None = None,
        output: str = "",
        **settings: object,
    ) -> ComparedNetwork:
        """Replace the shared settings that this network uses, without validation.

        Networks with a closed form are returned unchanged.

        Args:
            layers: number of wide layers.
            bottleneck_width: neurons or channels of the narrow layer.
            output: φ of networks with a nonlinear output; linear ones stay linear.
        """
        if self.closed_form:
            return self
        changed = {name: value for name, value in settings.items() if self.uses(name)}
        if layers is not None and self.uses("depth"):
            least = 2 if self.bottleneck or self.kind in ("resnet", "mixed") else 1
            changed["depth"] = max(layers, least) + (self.bottleneck is not None)
        if bottleneck_width is not None and self.bottleneck:
            changed[self.bottleneck[0]] = bottleneck_width
        if output and self.output != "linear":
            changed["output"] = output
        return self.model_copy(update=changed)


@functools.lru_cache(maxsize=64)
def named(networks: tuple[ComparedNetwork, ...]) -> dict[str, ComparedNetwork]:
    """Map names to networks; a repeated name becomes ``resnet-2``.
    The cached result must not be changed.
    """
    found: dict[str, ComparedNetwork] = {}
    seen: Counter[str] = Counter()
    for network in networks:
        name = network.name
        seen[name] += 1
        found[name if seen[name] == 1 else f"{name}-{seen[name]}"] = network
    return found


def titles(networks: Mapping[str, ComparedNetwork]) -> dict[str, str]:
    """Map names to titles; equal titles get the settings that differ.

    Defaults are named beside networks with other ones.
    """
    several_kinds = len({network.family for network in networks.values()}) > 1
    several_scales = len({network.parameterization for network in networks.values()}) > 1
    own = {
        name: network.titled(with_kind=several_kinds, with_scale=several_scales)
        for name, network in networks.items()
    }
    found = {}
    for name, network in networks.items():
        alike = [networks[other] for other, title in own.items() if title == own[name]]
        found[name] = ", ".join([own[name], *differences(network, alike)])
    return found


_SHALLOW = ComparedNetwork(depth=1, trained="first", output_weights="signs", input="one")
_QUADRATIC = ComparedNetwork(
    kind="bottleneck",
    depth=3,
    activation="quadratic",
    bottleneck_activation="identity",
    bottleneck_width=1,
    input="one",
)
# One channel per 12 neurons: a convolution then takes about as long as a dense layer.
_CHANNELS = {"relative_width": 1 / 12}
TEMPLATES = named(
    (
        ComparedNetwork(),
        ComparedNetwork(output="swish"),
        ComparedNetwork(kind="bottleneck", depth=3, bottleneck_width=1),
        ComparedNetwork(kind="resnet"),
        ComparedNetwork(kind="resnet", output="swish"),
        ComparedNetwork(kind="densenet"),
        ComparedNetwork(kind="convnet", **_CHANNELS),
        ComparedNetwork(kind="convnet", output="swish", **_CHANNELS),
        ComparedNetwork(kind="convnet", depth=3, narrow_width=1, **_CHANNELS),
        ComparedNetwork(kind="mixed", **_CHANNELS),
        ComparedNetwork(kind="mixed", output="swish", **_CHANNELS),
        ComparedNetwork(kind="mixed", depth=3, narrow_width=1, **_CHANNELS),
        _SHALLOW,
        _QUADRATIC,
        ComparedNetwork(kind="attention"),
        ComparedNetwork(kind="transformer", **_CHANNELS),
        ComparedNetwork(kind="adapted", activation="abs"),
        ComparedNetwork(kind="assembly"),
        ComparedNetwork(kind=COMPOSED),
        ComparedNetwork(kind=COMPOSED, output="swish"),
        ComparedNetwork(parameterization="standard"),
        ComparedNetwork(parameterization="lecun"),
    )
)
"""Networks to choose from, by name: two wide hidden layers, tanh, swish where φ is nonlinear."""


def templates(*names: str, **shared: Any) -> tuple[ComparedNetwork, ...]:
    """Return some of :data:`TEMPLATES` with shared settings."""
    changed = (TEMPLATES[name].with_shared(**shared) for name in names)
    return tuple(ComparedNetwork.model_validate(network.model_dump()) for network in changed)
