"""What to compute: frozen, validated, with canonical JSON and a digest; shared by pages, command line and notebooks.

A spec is plain data. Every setting carries its bounds and a one-line help, from which forms are derived; ``parse_spec``
turns anything from outside into a spec or says, setting by setting, what is wrong.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, TypeVar

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from ntk_core.datasets import dataset_shapes
from ntk_core.errors import InvalidInput
from ntk_core.spec_parts import ArchitectureSpec, DatasetSpec, OutputName, SpecPart, TrainingSpec, Width
from ntk_core.validation import problems

__all__ = [
    "EXPERIMENTS",
    "ArchitectureSpec",
    "DatasetSpec",
    "InvalidSpec",
    "KernelDriftSpec",
    "Spec",
    "SpecPart",
    "TrainingGroup",
    "TrainingSpec",
    "canonical_json",
    "digest",
    "has_infinite_width",
    "parse_spec",
    "setting_names",
    "training_groups",
    "with_settings",
]

SCHEMA_VERSION: Literal[1] = 1
MAX_JSON_BYTES = 1_000_000
INFINITE_WIDTH_KINDS = ("fully-connected", "resnet", "convnet", "mixed")

Part = TypeVar("Part", bound=SpecPart)


class KernelDriftSpec(SpecPart):
    """Kernel change ΔK in training, against width, for several output nonlinearities (Liu, Zhu & Belkin 2020, Fig. 1).

    Outputs ``linear`` and ``softmax`` share one set of parameters, trained by cross-entropy on softmax(f); every other
    output φ is a network of its own, trained with ½‖φ(f) − y‖².
    """

    selector: ClassVar[str] = "swept"
    relevant: ClassVar[dict[str, tuple[str, ...]]] = {"hidden_width": ("bottleneck_width",)}

    experiment: Literal["kernel_drift"] = "kernel_drift"
    schema_version: Literal[1] = SCHEMA_VERSION
    dataset: DatasetSpec = DatasetSpec()
    architecture: ArchitectureSpec = ArchitectureSpec()
    swept: Literal["width", "bottleneck_width"] = Field(
        "width", title="Swept", description="What the widths are: of all hidden layers, or of the bottleneck alone."
    )
    hidden_width: Width = Field(
        1000, title="Width of the other layers", description="Width m of the layers around a swept bottleneck."
    )
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

    keep_kernels: bool = Field(
        False,
        title="Keep kernels",
        description="Keep the kernel of the first seed before and after training, to draw it.",
    )

    infinite_width: bool = Field(
        False,
        title="Kernel of infinite width",
        description="Measure the distance of K(w₀) to the kernel K_∞ of infinite width (linear output).",
    )

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        convolutional = self.architecture.kind in ("convnet", "mixed")
        if convolutional and len(dataset_shapes(self.dataset.name, **self.dataset.options()).input_shape) != 3:
            raise InvalidInput(
                "architecture.kind", self.architecture.kind, "with images only, for example dataset mnist"
            )
        if self.infinite_width and not has_infinite_width(self.architecture):
            raise InvalidInput(
                "infinite_width", True, "false, except for NTK parameterization and " + ", ".join(INFINITE_WIDTH_KINDS)
            )
        if self.swept == "bottleneck_width" and self.architecture.kind != "bottleneck":
            raise InvalidInput("swept", self.swept, "width, unless architecture.kind is bottleneck")
        return self

    def network_at(self, value: int) -> tuple[ArchitectureSpec, int]:
        """(architecture, width of its hidden layers) at one value of what is swept."""
        if self.swept == "width":
            return self.architecture, value
        return self.architecture.model_copy(update={"bottleneck_width": value}), self.hidden_width

    @field_validator("widths")
    @classmethod
    def _ascending(cls, widths: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(set(widths)))

    @field_validator("outputs")
    @classmethod
    def _once(cls, outputs: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(outputs))


def has_infinite_width(architecture: ArchitectureSpec) -> bool:
    """Whether the kernel of infinite width of this architecture is known."""
    return architecture.kind in INFINITE_WIDTH_KINDS and architecture.parameterization == "ntk"


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
    return _validated(model, data)


def with_settings(spec: Part, settings: dict[str, Any]) -> Part:
    """``spec`` with some settings replaced, given by dotted names: ``{"training.learning_rate": 0.5}``.

    Settings that a changed kind (dataset, architecture, what is swept) does not use are dropped unless they are given.

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
    _drop_unused(type(spec), data, settings, "")
    return _validated(type(spec), data)


def _validated(model: type[Part], data: dict[str, Any]) -> Part:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise InvalidSpec(problems(model, error)) from None


def _drop_unused(part_type: type[SpecPart], data: dict[str, Any], given: dict[str, Any], prefix: str) -> None:
    """Take out of ``data`` what the kind chosen there does not use, unless it is given by its dotted name."""
    for name, kinds in part_type.relevant.items():
        if data.get(part_type.selector) not in kinds and prefix + name not in given:
            data.pop(name, None)
    for name, info in part_type.model_fields.items():
        inner = info.annotation
        if isinstance(inner, type) and issubclass(inner, SpecPart) and isinstance(data.get(name), dict):
            _drop_unused(inner, data[name], given, f"{prefix}{name}.")


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
