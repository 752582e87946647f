"""Settings of early training: networks beside their linear models."""

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from linearity_lab.data import DATASETS, OPTIONS, dataset_options
from linearity_lab.networks.sizes import LayerSize, layer_sizes
from linearity_lab.networks.spec import ActivationName, ArchitectureSpec, SizeNames
from linearity_lab.runs import BYTES, Counts, SeededSpec, SpecOf, SweepSpec, Work
from linearity_lab.settings.part import (
    Ascending,
    CountsNeurons,
    Once,
    SpecPart,
    Vocabulary,
    Width,
    one_of,
)
from ntk_core.errors import InvalidInput
from ntk_core.networks.counts import num_features
from ntk_core.networks.kinds import ARCHITECTURES
from ntk_core.terms import Term, table

if TYPE_CHECKING:
    from linearity_lab.experiments.early_time.point import (
        EarlyTimeResult,  # noqa: F401 - SpecOf names it
    )

_LAWS = table(
    Term("gaussian", "Gaussian inputs", "entries of z from N(0, 1)"),
    Term("rademacher", "signs", "entries of z are ±1 with equal probability"),
    Term("uniform", "uniform inputs", "entries of z uniform with variance 1"),
)
SYNTHETIC = tuple(_LAWS)
IMAGES = ("cifar2", "mnist", "fashion-mnist")
_INPUTS = {**_LAWS, **{name: DATASETS[name] for name in IMAGES}}
# Architectures of the lab, and one for vectors that only this experiment has.
_NETWORKS: dict[str, Term] = {
    "fully-connected": ARCHITECTURES["fully-connected"],
    "convnet": ARCHITECTURES["convnet"],
    **table(Term("convnet-1d", "1-D CNN", "one convolution of vectors")),
}


if TYPE_CHECKING:  # type checkers want names; at run time they come from the tables
    InputsName = str
else:
    InputsName = one_of(_INPUTS)
TargetName = Literal["teacher", "norm", "sign", "linear"]


class EarlyDataSpec(SpecPart):
    """Data of *Early time*.

    Random inputs have targets computed from them; two image classes have targets −1 and +1.
    """

    selector: ClassVar[str] = "name"
    relevant: ClassVar[dict[str, tuple[str, ...]]] = {
        **dict.fromkeys(("input_dim", "spectrum", "target", "teacher_width", "noise"), SYNTHETIC),
        # A pair is chosen from more than two classes.
        "classes": tuple(name for name in IMAGES if len(DATASETS[name].class_names) > 2),
        "resolution": tuple(name for name in IMAGES if "resolution" in DATASETS[name].uses),
        "source": IMAGES,
    }

    name: InputsName = Field(
        default="gaussian",
        title="Inputs",
        description="x = Σ^(1/2) z with independent entries of z: N(0, 1), ±1, or uniform; or a "
        "pair of image classes. Not your data: the theory needs a known law.",
    )
    num_samples: int = Field(default=5000, ge=2, le=200_000, title="Training points n")
    """Number n of training inputs."""
    num_test: int = Field(default=1000, ge=10, le=20_000, title="Test points")
    """Number of test inputs."""
    input_dim: int = Field(default=50, ge=2, le=10_000, title="Input dimension d")
    """Dimension d of the inputs, where d is not swept."""
    spectrum: tuple[Annotated[float, Field(gt=0, le=1e6)], ...] = Field(
        default=(1.0,), min_length=1, max_length=64, title="Spectrum of Σ"
    )
    """Relative eigenvalues of the covariance Σ, spread evenly over the d directions; Tr Σ = d."""
    target: TargetName = Field(default="teacher", title="Target y")
    """Target y: a small two-layer erf network; ‖x‖/√d; the sign of u·x; or u·x/√d plus noise."""
    teacher_width: Annotated[int, CountsNeurons()] = Field(
        default=5, ge=1, le=1000, title="Width of the teacher"
    )
    """Hidden neurons of the teacher network."""
    noise: float = Field(default=0.0, ge=0, le=100, title="Noise of the linear target")
    """Standard deviation of the noise added to u·x/√d."""
    classes: tuple[int, ...] = Field(
        default=(0, 1), min_length=2, max_length=2, title="Two classes"
    )
    """Numbers of the two classes."""
    resolution: Literal[8, 32] = OPTIONS["resolution"].field()
    source: Literal["shipped", "full"] = OPTIONS["source"].field()
    seed: int = OPTIONS["seed"].field(
        description="Seed of inputs, targets and subsets.", json_schema_extra={"is_label": True}
    )

    @model_validator(mode="after")
    def _available(self) -> Self:
        if self.name in IMAGES:
            dataset_options(self.name, **self.image_options(), targets="plus-minus")
        return self

    @property
    def is_synthetic(self) -> bool:
        """Whether the inputs are random."""
        return self.name in SYNTHETIC

    def image_options(self) -> dict[str, Any]:
        """Options of ``load_dataset`` for two image classes."""
        chosen = {
            name: getattr(self, name) for name in ("num_samples", "num_test", "seed", "source")
        }
        chosen |= (
            {"classes": list(self.classes)}
            if self.uses("classes")
            else {"resolution": self.resolution}
        )
        return chosen

    def input_shape(self, d: int) -> tuple[int, ...]:
        """Shape of one input; ``d`` applies to synthetic inputs only."""
        if self.is_synthetic:
            return (d,)
        return (self.resolution, self.resolution, 3) if self.uses("resolution") else (28, 28, 1)


class EarlyNetworkSpec(SpecPart):
    """Network apart from its width: no biases, one output."""

    selector: ClassVar[str] = "kind"
    relevant: ClassVar[dict[str, tuple[str, ...]]] = {
        "depth": ("fully-connected", "convnet"),
        "kernel_size": ("convnet",),
        "filter_exponent": ("convnet-1d",),
    }

    kind: Annotated[Literal["fully-connected", "convnet", "convnet-1d"], Vocabulary(_NETWORKS)] = (
        Field(default="fully-connected", title="Architecture")
    )
    """Convolutions have circular padding and a flat readout; the 1-D CNN has only one."""
    depth: int = Field(default=1, ge=1, le=8, title="Hidden layers L")
    """Number L of hidden layers."""
    activations: Annotated[tuple[ActivationName, ...], Once] = Field(
        default=("erf",), min_length=1, max_length=5, title="Activations φ"
    )
    """Nonlinearities φ to compare."""
    start: Literal["symmetric", "subtracted"] = Field(default="symmetric", title="Start at 0")
    """Two equal halves of opposite sign (more layers: two equal networks), or f − f(w₀)."""
    kernel_size: int = Field(default=3, ge=1, le=8, title="Filter size")
    """Pixels along each side of a filter."""
    filter_exponent: float = Field(default=0.75, ge=0, le=1, title="Filter exponent")
    """The filter has d to this power entries; Prop. 4.1 needs more than ½."""

    @property
    def num_hidden(self) -> int:
        """Number of hidden layers."""
        return self.depth if self.uses("depth") else 1

    @property
    def is_doubled(self) -> bool:
        """Whether two copies of the network are trained, to start at zero."""
        return self.start == "symmetric" and (self.num_hidden > 1 or self.kind != "fully-connected")

    @property
    def dimensions(self) -> int:
        """Number of spatial dimensions."""
        return 1 if self.kind == "convnet-1d" else 2

    def architecture(
        self, activation: str, d: int, trained: Literal["all", "hidden", "last"] = "all"
    ) -> ArchitectureSpec:
        """Return the architecture for inputs of dimension d.

        Filters may be longer than for images.
        """
        length = max(1, min(d, round(d**self.filter_exponent)))
        return ArchitectureSpec.model_construct(
            kind="fully-connected" if self.kind == "fully-connected" else "convnet",
            depth=self.num_hidden,
            activation=activation,
            use_bias=False,
            trained=trained,
            # v = ±1 with two dense layers (Eq. 3), N(0, 1) otherwise.
            output_weights="signs"
            if self.kind == "fully-connected" and self.depth == 1
            else "normal",
            initial_output="symmetric" if self.is_doubled else "random",
            kernel_size=length if self.kind == "convnet-1d" else self.kernel_size,
        )


class EarlyTrainingSpec(SpecPart):
    """Descent of network and linear model on (1/2n) Σ (f − y)², with the same rates."""

    learning_rate: Literal["auto"] | Annotated[float, Field(gt=0, le=1e6)] = Field(
        default="auto", title="Learning rate η"
    )
    """Step size η; auto: a tenth of the largest stable rate of the linear model."""
    rate_hidden: float = Field(default=1.0, ge=0, le=1e6, title="Factor of hidden layers")
    """Hidden layers train at η times this; 0 freezes them."""
    rate_output: float = Field(default=1.0, ge=0, le=1e6, title="Factor of the output layer")
    """The output layer trains at η times this; 0 freezes it."""
    batch_size: int = Field(default=0, ge=0, le=200_000, title="Batch size")
    """Samples per step, redrawn each epoch; 0: all samples."""
    max_steps: int = Field(default=300, ge=0, le=1_000_000, title="Steps")
    """Steps of descent; 0 to compare kernels only."""
    num_records: int = Field(default=40, ge=2, le=200, title="Records")
    """Number of recorded steps, logarithmically spaced."""

    @model_validator(mode="after")
    def _some_layer_trains(self) -> Self:
        if self.rate_hidden == self.rate_output == 0:
            raise InvalidInput("rate_output", 0, "above 0 if hidden layers are frozen")
        return self


class EarlyTimeSpec(SeededSpec, SpecOf["EarlyTimeResult"]):
    """Networks and their linear models early in training.

    How far a network follows its linear model f_lin(x) = ψ(x)·β, against width or dimension.

    Σ (f − f_lin)² / Σ f_lin² on test inputs along training, and ‖K − ψψᵀ‖ of the kernel at w₀.

    Source: Hu, Xiao, Adlam & Pennington 2020, §3.4, §4.2 and Prop. 3.4; docs/math/early-time.md.

    >>> EarlyTimeSpec(values=(64, 256)).point_keys()
    ('width=64', 'width=256')
    """

    swept_field: ClassVar[str] = "values"
    point_words: ClassVar[tuple[str, str]] = ("point", "points")
    selector: ClassVar[str] = "swept"
    relevant: ClassVar[dict[str, tuple[str, ...]]] = {
        "width": ("input_dim",),
        "width_exponent": ("input_dim",),
    }

    experiment: Literal["early_time"] = "early_time"
    dataset: EarlyDataSpec = EarlyDataSpec()
    network: EarlyNetworkSpec = EarlyNetworkSpec()
    training: EarlyTrainingSpec = EarlyTrainingSpec()
    swept: Annotated[Literal["width", "input_dim"], SizeNames] = Field(
        default="width", title="Swept"
    )
    """Swept quantity: widths m, or dimensions d of the inputs."""
    values: Annotated[tuple[Width, ...], Ascending] = Field(
        default=(256,), min_length=1, max_length=16, title="Swept m or d"
    )
    """Widths m (channels), or dimensions d."""
    width: Width = Field(default=256, title="Width m")
    """Width m at the smallest dimension."""
    width_exponent: float = Field(default=1.5, ge=0, le=4, title="Width exponent")
    """m grows as d to this power. At a fixed width the kernel's own noise, √(d/m), grows with d."""
    num_seeds: int = Field(default=1, ge=1, le=20, title="Seeds")
    """Independent initializations w₀ for each point."""
    seed: int = SweepSpec.field("seed", 0)
    draws: Literal["network", "network and data"] = SweepSpec.field("draws", "network")
    kernel_samples: int = Field(default=0, ge=0, le=20_000, title="Inputs of the kernel")
    """Inputs on which the kernel at w₀ is compared with that of the linear model; 0 skips it."""
    infinite_width: bool = Field(default=False, title="Infinite-width kernel")
    """Compare the infinite-width kernel instead of the one at w₀."""

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        kind = self.network.kind
        images = not self.dataset.is_synthetic
        if self.swept == "input_dim" and images:
            raise InvalidInput("swept", self.swept, "width, since the dimension of images is fixed")
        if (kind == "convnet" and not images) or (kind == "convnet-1d" and images):
            allowed = "fully-connected or " + (
                "convnet with images" if images else "convnet-1d with synthetic inputs"
            )
            raise InvalidInput("network.kind", kind, allowed)
        for key in self.point_keys():
            self._check_point(self.dim_at(key), self.width_at(key))
        if self.training.batch_size > self.dataset.num_samples:
            allowed = f"at most {self.dataset.num_samples:,}, the number of training points"
            raise InvalidInput("training.batch_size", self.training.batch_size, allowed)
        if self.training.max_steps == self.kernel_samples == 0:
            raise InvalidInput("training.max_steps", 0, "above 0 when no kernel is compared")
        if self.kernel_samples > self.dataset.num_samples:
            allowed = f"at most {self.dataset.num_samples:,}, the number of training points"
            raise InvalidInput("kernel_samples", self.kernel_samples, allowed)
        return self

    @property
    def swept_title(self) -> str:
        """Title of the swept widths or dimensions."""
        return {"width": "Widths m", "input_dim": "Dimensions d"}[self.swept]

    def point_keys(self) -> tuple[str, ...]:
        """``width=256`` or ``input_dim=50``, ascending."""
        return tuple(f"{self.swept}={value}" for value in self.values)

    def num_records(self, key: str) -> Mapping[str, int]:
        """Runs, and compared kernels, of every activation and seed; K_∞ has no seed."""
        num_activations = len(self.network.activations)
        num_kernels = num_activations if self.infinite_width else num_activations * self.num_seeds
        return {
            "runs": num_activations * self.num_seeds if self.training.max_steps else 0,
            "kernels": num_kernels if self.kernel_samples else 0,
        }

    @property
    def has_path(self) -> bool:
        """Whether distance and movement are recorded.

        Full batches, and the kernel on all training inputs.
        """
        n = self.dataset.num_samples
        is_whole = self.kernel_samples == n <= NUM_LOSS_INPUTS and not self.training.batch_size
        return is_whole and not self.infinite_width

    def value_of(self, key: str) -> int:
        """The width or dimension of a key."""
        return int(key.partition("=")[2])

    def seen_shape(self, d: int) -> tuple[int, ...]:
        """Shape of one network input; sequences have a channel axis."""
        shape = self.dataset.input_shape(d)
        return (*shape, 1) if self.network.kind == "convnet-1d" else shape

    def dim_at(self, key: str) -> int:
        """d at a point; the number of pixels and channels for images."""
        if self.swept == "input_dim":
            return self.value_of(key)
        shape = self.dataset.input_shape(self.dataset.input_dim)
        return shape[0] if len(shape) == 1 else shape[0] * shape[1] * shape[2]

    def width_at(self, key: str) -> int:
        """Width m at a point; even if it follows the dimension, so that neurons can be mirrored."""
        if self.swept == "width":
            return self.value_of(key)
        return max(
            2,
            round(self.width * (self.value_of(key) / self.values[0]) ** self.width_exponent / 2)
            * 2,
        )

    def _check_point(self, d: int, width: int) -> None:
        halves = self.network.start == "symmetric" and not self.network.is_doubled
        if halves and width % 2:
            raise InvalidInput(
                "values" if self.swept == "width" else "width",
                width,
                "even numbers with the symmetric start",
            )
        if self.dataset.is_synthetic and d < max(2, len(self.dataset.spectrum)):
            least = max(2, len(self.dataset.spectrum))
            raise InvalidInput(
                "values" if self.swept == "input_dim" else "dataset.input_dim",
                d,
                f"at least {least}",
            )
        if width > 10_000_000:
            raise InvalidInput(
                "width_exponent", self.width_exponent, "an exponent with widths below 10,000,000"
            )


NUM_LOSS_INPUTS = 5000  # training inputs for the loss
# An activation and its derivative take about as long as this many multiplications.
_ACTIVATION_OPERATIONS = 60
# Infinite-width kernels: bytes per pair of inputs and position; pairs per block.
_LIMIT_BYTES = 260.0
_LIMIT_PAIRS = 2.0**24
_KERNEL_BYTES = 4 * 2**30  # for blocks of a network's kernel


def counts(spec: EarlyTimeSpec, key: str, most: bool = False) -> tuple[Counts, ...]:
    """Count one point, all activations and seeds; always all steps.

    Memory: data and their features in float64; weights, gradient and a copy; inputs,
    pre-activations and cotangents of a batch (patches, for convolutions), each once more as a
    temporary; the order of the batches; kernels in float64.
    """
    layers = _layers(spec, key)
    n = spec.dataset.num_samples
    n_test = spec.dataset.num_test
    d = spec.dim_at(key)
    batch = spec.training.batch_size or n
    steps = spec.training.max_steps
    copies = 2 if spec.network.is_doubled else 1
    once = sum(
        layer.multiplications for layer in layers
    ) * 2 + _ACTIVATION_OPERATIONS * num_features(layers)
    patches = sum(layer.positions * layer.fan_in for layer in layers if layer.positions > 1)
    seen = 6 * num_features(layers) + 4 * patches  # of an input, read or written
    num_params = sum(layer.num_params for layer in layers)
    recorded = (min(n, NUM_LOSS_INPUTS) + n_test) * min(spec.training.num_records, steps)
    numbers = (3 * num_params + batch * seen) * steps + recorded * seen
    kernel_operations, kernel_bytes = _of_kernels(spec, layers)
    operations = (3 * batch * steps + recorded) * once + kernel_operations
    rows = max(batch, 1000) if steps else 0
    weights = 0 if spec.infinite_width and not rows else 4 * num_params
    held = copies * (weights + 4 * rows * num_features(layers) + 2 * min(rows, batch) * patches)
    data = 2 * (n + n_test) * d + 6 * n * (d + 2) + 2 * spec.training.batch_size * steps
    activations = len(spec.network.activations)
    return (
        Counts(
            programs={"early time": 1 + activations},
            times=activations * spec.num_seeds,
            more=Work(copies * operations, copies * BYTES * float(numbers), steps),
            numbers=data + held,
            num_bytes=kernel_bytes,
        ),
    )


@functools.lru_cache(maxsize=64)
def _layers(spec: EarlyTimeSpec, key: str) -> tuple[LayerSize, ...]:
    d = spec.dim_at(key)
    network = spec.network
    architecture = network.architecture(network.activations[0], d)
    return layer_sizes(architecture, spec.width_at(key), spec.seen_shape(d), 1, network.dimensions)


def _of_kernels(spec: EarlyTimeSpec, layers: tuple[LayerSize, ...]) -> tuple[float, float]:
    """Operations and bytes of the compared kernels."""
    k = float(spec.kernel_samples)
    # Pairs of inputs and positions, some hundred operations each for every layer.
    if spec.infinite_width:
        operations = 200.0 * k**2 * sum(layer.positions for layer in layers)
        making = _LIMIT_BYTES * min(k * k * max(layer.positions for layer in layers), _LIMIT_PAIRS)
    else:
        operations = (
            float(sum(layer.kernel_operations(spec.kernel_samples, 1) for layer in layers))
            if k
            else 0.0
        )
        making = min(2 * BYTES * k * num_features(layers), _KERNEL_BYTES)
    return operations, 4 * 8 * k * k + making
