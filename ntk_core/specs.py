"""What to compute: frozen, validated, with canonical JSON and a digest; shared by pages, command line and notebooks.

A spec is plain data. Every setting carries its bounds and a one-line help, from which forms are derived; ``parse_spec``
turns anything from outside into a spec or says, setting by setting, what is wrong.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)

from ntk_core.datasets import dataset_options
from ntk_core.errors import InvalidInput
from ntk_core.validation import problems
from ntk_core.vocabulary import ACTIVATIONS, ARCHITECTURES, DATASETS, OUTPUTS, PARAMETERIZATIONS

SCHEMA_VERSION: Literal[1] = 1
MAX_JSON_BYTES = 1_000_000

if TYPE_CHECKING:  # type checkers want the names written out; at run time they come from the vocabulary
    DatasetName = str
    ArchitectureName = str
    ActivationName = str
    ParameterizationName = str
    OutputName = str
else:
    DatasetName = Literal[tuple(DATASETS)]
    ArchitectureName = Literal[tuple(ARCHITECTURES)]
    ActivationName = Literal[tuple(ACTIVATIONS)]
    ParameterizationName = Literal[tuple(PARAMETERIZATIONS)]
    OutputName = Literal[tuple(OUTPUTS)]


def _count(given: Any) -> Any:
    """Accept ``"1e4"`` for a number of neurons, as people write it; anything else is left to pydantic."""
    try:
        number = float(given) if isinstance(given, str) else None
    except ValueError:
        return given
    return int(number) if number is not None and number.is_integer() else given


Width = Annotated[int, BeforeValidator(_count), Field(ge=1, le=10_000_000)]


class SpecPart(BaseModel):
    """A frozen group of settings; unknown settings are refused.

    ``relevant`` names, for a setting that only some kinds use, those kinds; elsewhere the setting is refused when given
    and left out of the JSON, so that equal work has equal digests.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings", use_attribute_docstrings=False)
    selector: ClassVar[str] = ""
    relevant: ClassVar[dict[str, tuple[str, ...]]] = {}

    @model_validator(mode="after")
    def _only_relevant(self) -> Self:
        for name, kinds in self.relevant.items():
            if name in self.model_fields_set and not self.uses(name):
                raise InvalidInput(
                    name, getattr(self, name), f"this setting only with {self.selector} {' or '.join(kinds)}"
                )
        return self

    @model_serializer(mode="wrap")
    def _serialize(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if self.uses(name)}

    def uses(self, name: str) -> bool:
        """Whether this kind uses the setting of that name."""
        return name not in self.relevant or getattr(self, self.selector) in self.relevant[name]


class DatasetSpec(SpecPart):
    """The data, see ``ntk_core.load_dataset``."""

    selector: ClassVar[str] = "name"
    relevant: ClassVar[dict[str, tuple[str, ...]]] = {
        "num_classes": ("gaussian-mixture",),
        "input_dim": ("gaussian-mixture",),
        "noise": ("gaussian-mixture",),
        "classes": ("mnist", "fashion-mnist", "digits"),
        "resolution": ("cifar2",),
    }

    name: DatasetName = Field("gaussian-mixture", title="Dataset", description="Where the inputs x come from.")
    num_samples: int = Field(
        60,
        ge=2,
        le=10_000,
        title="Training points n",
        description="Number n of training inputs, balanced over the classes.",
    )
    num_classes: int = Field(3, ge=2, le=20, title="Classes C", description="Number C of classes of the mixture.")
    input_dim: int = Field(
        10, ge=1, le=10_000, title="Input dimension d", description="Dimension d of the mixture's inputs."
    )
    noise: float = Field(
        0.3,
        ge=0,
        le=100,
        allow_inf_nan=False,
        title="Noise s",
        description="Standard deviation s of x around its class center μ, with |μ| = 2.",
    )
    classes: tuple[int, ...] | None = Field(
        None,
        min_length=2,
        max_length=10,
        title="Classes",
        description="Which classes to keep, by their numbers; all when empty.",
    )
    resolution: Literal[8, 32] = Field(8, title="Resolution", description="Pixels along each side of an image.")
    seed: int = Field(
        0, ge=0, le=2**31 - 1, title="Data seed", description="Seed of the data's law and of the subset drawn."
    )

    @model_validator(mode="after")
    def _available(self) -> Self:
        dataset_options(self.name, **self.options())
        return self

    def options(self) -> dict[str, Any]:
        """The options of ``load_dataset`` for this choice; no test points are asked for."""
        chosen = {name: getattr(self, name) for name in type(self).model_fields if name != "name" and self.uses(name)}
        return {**chosen, "num_test": 0}


class ArchitectureSpec(SpecPart):
    """The network, apart from its width, its outputs and φ."""

    selector: ClassVar[str] = "kind"
    relevant: ClassVar[dict[str, tuple[str, ...]]] = {}

    kind: ArchitectureName = Field("fully-connected", title="Architecture", description="How neurons are connected.")
    depth: int = Field(1, ge=1, le=16, title="Hidden layers L", description="Number L of hidden layers.")
    activation: ActivationName = Field("relu", title="Activation σ", description="Nonlinearity σ of the hidden layers.")
    use_bias: bool = Field(
        True, title="Biases b", description="Biases b in the hidden layers; the output layer never has one."
    )
    parameterization: ParameterizationName = Field(
        "ntk", title="Parameterization", description="How weights are drawn and scaled with the width."
    )


class TrainingSpec(SpecPart):
    """Gradient descent to a loss threshold."""

    learning_rate: Literal["auto"] | Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] = Field(
        "auto",
        title="Learning rate η",
        description="Step size η; auto: from the largest eigenvalue of the kernel at w₀, shown with the result.",
    )
    loss_threshold: float = Field(
        0.01,
        gt=0,
        le=10,
        allow_inf_nan=False,
        title="Loss threshold",
        description="Training stops when the mean loss falls below it.",
    )
    max_steps: int = Field(
        5_000, ge=1, le=10_000_000, title="Most steps", description="Runs that need more steps are stopped and marked."
    )
    num_records: int = Field(
        24,
        ge=2,
        le=200,
        title="Records",
        description="Times, on a logarithmic grid of steps, at which ΔK is measured.",
    )


class KernelDriftSpec(SpecPart):
    """Kernel change ΔK in training, against width, for several output nonlinearities (Liu, Zhu & Belkin 2020, Fig. 1).

    Outputs ``linear`` and ``softmax`` share one set of parameters, trained by cross-entropy on softmax(f); every other
    output φ is a network of its own, trained with ½‖φ(f) − y‖².
    """

    experiment: Literal["kernel_drift"] = "kernel_drift"
    schema_version: Literal[1] = SCHEMA_VERSION
    dataset: DatasetSpec = DatasetSpec()
    architecture: ArchitectureSpec = ArchitectureSpec()
    widths: tuple[Width, ...] = Field(
        (30, 100, 300, 1000, 3000, 10_000),
        min_length=1,
        max_length=24,
        title="Widths m",
        description="Widths m of the hidden layers, one network each.",
    )
    outputs: tuple[OutputName, ...] = Field(
        ("linear", "softmax", "swish"),
        min_length=1,
        max_length=4,
        title="Outputs φ",
        description="Output nonlinearities φ to compare.",
    )
    num_seeds: int = Field(5, ge=1, le=100, title="Seeds", description="Independent initializations w₀ for each width.")
    seed: int = Field(
        0, ge=0, le=2**31 - 1, title="First seed", description="The runs use this seed and the following ones."
    )
    training: TrainingSpec = TrainingSpec()

    @field_validator("widths")
    @classmethod
    def _ascending(cls, widths: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(set(widths)))

    @field_validator("outputs")
    @classmethod
    def _once(cls, outputs: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(outputs))


@dataclass(frozen=True)
class TrainingGroup:
    """Outputs that share one training.

    Attributes:
        trained_output: output of the network that is built.
        loss_output: the output whose loss is minimized.
        observed: outputs whose kernels are followed on these parameters.
    """

    trained_output: str
    loss_output: str
    observed: tuple[str, ...]


def training_groups(outputs: tuple[str, ...]) -> tuple[TrainingGroup, ...]:
    """Linear and softmax output share one set of parameters (Liu, Zhu & Belkin 2020, Eq. 46); any other has its own."""
    shared = tuple(output for output in outputs if output in ("linear", "softmax"))
    own = tuple(TrainingGroup(output, output, (output,)) for output in outputs if output not in shared)
    return ((TrainingGroup("linear", "softmax", shared),) if shared else ()) + own


Spec = KernelDriftSpec
EXPERIMENTS: dict[str, type[KernelDriftSpec]] = {"kernel_drift": KernelDriftSpec}


class InvalidSpec(ValueError):
    """A spec from outside that cannot be used; ``problems`` holds one :class:`InvalidInput` a setting."""

    def __init__(self, problems: tuple[InvalidInput, ...]):
        self.problems = problems
        super().__init__("\n".join(str(problem) for problem in problems))


def parse_spec(data: Any) -> Spec:
    """A spec from JSON text or from a mapping as JSON gives it.

    Raises:
        InvalidSpec: with one sentence a setting: its dotted name, what was given, what is allowed.
    """
    if isinstance(data, str | bytes):
        if len(data) > MAX_JSON_BYTES:
            raise InvalidSpec((InvalidInput("spec", f"{len(data):,} bytes", f"at most {MAX_JSON_BYTES:,} bytes"),))
        try:
            data = json.loads(data)
        except (ValueError, RecursionError):
            raise InvalidSpec(
                (InvalidInput("spec", _excerpt(data), "a JSON object with the settings of an experiment"),)
            ) from None
    if not isinstance(data, dict):
        raise InvalidSpec((InvalidInput("spec", data, "a JSON object with the settings of an experiment"),))
    experiment = data.get("experiment", "kernel_drift")
    model = EXPERIMENTS.get(experiment) if isinstance(experiment, str) else None
    if model is None:
        raise InvalidSpec((InvalidInput("experiment", experiment, "one of " + ", ".join(EXPERIMENTS)),))
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise InvalidSpec(problems(model, error)) from None


def with_settings(spec: Spec, settings: dict[str, Any]) -> Spec:
    """``spec`` with some settings replaced, given by dotted names: ``{"training.learning_rate": 0.5}``.

    Settings that a changed kind (dataset, architecture) does not use are dropped unless they are given.

    Raises:
        InvalidSpec: for an unknown setting or a value that is not allowed.
    """
    data = spec.model_dump(mode="json")
    for name, value in settings.items():
        *path, last = name.split(".")
        part: Any = data
        for step in path:
            part = part.get(step) if isinstance(part, dict) else None
        if not isinstance(part, dict):
            raise InvalidSpec((InvalidInput(name, value, "only the settings " + ", ".join(setting_names(type(spec)))),))
        part[last] = value
    for name, info in type(spec).model_fields.items():
        part_type = info.annotation
        if isinstance(part_type, type) and issubclass(part_type, SpecPart) and isinstance(data.get(name), dict):
            kind = data[name].get(part_type.selector)
            for setting, kinds in part_type.relevant.items():
                if kind not in kinds and f"{name}.{setting}" not in settings:
                    data[name].pop(setting, None)
    return parse_spec(data)


def setting_names(model: type[BaseModel], prefix: str = "") -> list[str]:
    """Dotted names of all settings of a spec type, in order."""
    names: list[str] = []
    for name, info in model.model_fields.items():
        nested = info.annotation
        if isinstance(nested, type) and issubclass(nested, BaseModel):
            names += setting_names(nested, f"{prefix}{name}.")
        else:
            names.append(prefix + name)
    return names


def canonical_json(spec: Spec) -> str:
    """The one JSON text of a spec: sorted names, no spaces, nothing that its kind does not use."""
    return json.dumps(spec.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))


def digest(spec: Spec) -> str:
    """SHA-256 of the canonical JSON, as 64 hexadecimal digits: the identity of a job and of its result."""
    return hashlib.sha256(canonical_json(spec).encode()).hexdigest()


def _excerpt(text: str | bytes) -> str:
    shown = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return shown if len(shown) <= 40 else shown[:40] + "…"
