"""Base class of experiment specs: a name, a version, and the requested points."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import Field, field_validator, model_validator

from linearity_lab.data import DatasetShapes
from linearity_lab.data.spec import DatasetSpec
from linearity_lab.settings.part import Constant, SpecPart, Width
from ntk_core.errors import InvalidInput

if TYPE_CHECKING:
    from linearity_lab.runs._result import ResultValue

SCHEMA_VERSION = 3  # of every experiment when versions began to differ
UPLOAD = "upload"  # name of uploaded data
MAX_POINTS = 120  # of one run, checked before the estimate; our choice


def _unchanged(document: dict[str, Any]) -> dict[str, Any]:
    return document


@dataclass(frozen=True)
class Migration:
    """Step from one version of an experiment to the next, on JSON objects.

    Attributes:
        settings: document of the settings → that of the next version.
        point: document of a point → that of the next version.
    """

    settings: Callable[[dict[str, Any]], dict[str, Any]] = _unchanged
    point: Callable[[dict[str, Any]], dict[str, Any]] = _unchanged


def point_key(**values: object) -> str:
    """Return the key of a point, such as ``width=100,scale=10.0``, without values that are None."""
    return ",".join(f"{name}={value}" for name, value in values.items() if value is not None)


Result_co = TypeVar("Result_co", bound="ResultValue", covariant=True)


class SpecOf(Generic[Result_co]):
    """Second base of a spec that names the type of its results, for type checkers only.

    ``class ToySpec(TrainedSweep, SpecOf["ToyResult"])`` makes ``compute(ToySpec())`` a
    ``ToyResult``. The name stays a string because results are defined after their specs. Without
    this base ``compute`` gives a ``ResultValue``.
    """


class ExperimentSpec(SpecPart):
    """Base class of experiment settings → points; subclasses define both.

    Each value of one setting, ``swept_field``, gives a point with a key such as ``width=100``.
    Points are stored by key, so a subclass with another kind of points overrides :meth:`point_keys`
    and keeps the keys unique.

    Attributes:
        schema_version: version of the experiment. A subclass raises it, with a migration, when it
            renames or removes a setting or changes a default or a meaning. A new setting with a
            default needs neither.
        migrations: earlier version → step to the next version, for stored settings and points.
        float_type: floating-point type of the computation; empty for JAX's default.
        key_parts: name of each part of a key → parser of its text.

    Source: our choice, docs/decisions/0001-specs-and-events.md.

    >>> from linearity_lab.experiments import KernelChangeSpec
    >>> spec = KernelChangeSpec(widths=(30, 100))
    >>> isinstance(spec, ExperimentSpec), spec.point_keys()
    (True, ('width=30', 'width=100'))
    """

    migrations: ClassVar[Mapping[int, Migration]] = {}
    float_type: ClassVar[str] = ""
    swept_field: ClassVar[str] = "widths"
    key_parts: ClassVar[Mapping[str, Callable[[str], Any]]] = {"width": int}
    point_words: ClassVar[tuple[str, str]] = ("width", "widths")

    experiment: str
    schema_version: Annotated[int, Constant()] = SCHEMA_VERSION

    @field_validator("schema_version")
    @classmethod
    def _is_current(cls, version: int) -> int:
        if version != version_of(cls):
            raise InvalidInput("schema_version", version, str(version_of(cls)))
        return version

    @model_validator(mode="after")
    def _has_few_points(self) -> Self:
        if (num_points := len(self.point_keys())) > MAX_POINTS:
            values = getattr(self, self.swept_field)
            fewer = max(1, len(values) * MAX_POINTS // num_points)
            allowed = (
                f"values that make at most {MAX_POINTS} {self.point_words[1]}, not {num_points:,}"
            )
            raise InvalidInput(self.swept_field, values, allowed, values[:fewer])
        return self

    @property
    def is_private(self) -> bool:
        """Whether it uses uploaded data; only their owner sees such runs."""
        return any(
            getattr(getattr(self, name), "name", None) == UPLOAD for name in type(self).model_fields
        )

    @property
    def swept_title(self) -> str:
        """Title of the swept values, with their symbol."""
        return type(self).model_fields[self.swept_field].title or self.swept_field

    def point_keys(self) -> tuple[str, ...]:
        """Return the keys of all points, in order of cost."""
        (name,) = self.key_parts
        return tuple(f"{name}={value}" for value in getattr(self, self.swept_field))

    def value_of(self, key: str) -> Any:
        """Return the parts of a key: a tuple, or the value itself if there is only one."""
        values = tuple(self.parts_of(key).values())
        return values if len(values) > 1 else values[0]

    def parts_of(self, key: str) -> dict[str, Any]:
        """Return the parts of a key by name; 0 for a missing part."""
        given = dict(part.split("=") for part in re.split("[ ,]", key))
        return {name: read(given.get(name, "0")) for name, read in self.key_parts.items()}

    def num_records(self, key: str) -> Mapping[str, int]:
        """Return the number of records in fields of a point, by field, such as ``{"runs": 15}``.

        Imports refuse points with other numbers. Fields that are not named may have any number.
        """
        return {}

    def command(self) -> tuple[str, ...]:
        """Return the command that computes a custom model.

        Empty for specs that ``run`` computes.
        """
        return ()


def version_of(kind: type[ExperimentSpec]) -> int:
    """Return the version of an experiment."""
    return int(kind.model_fields["schema_version"].default)


class SeededSpec(ExperimentSpec):
    """Runs with several seeds for networks, or networks and data.

    A subclass defines ``dataset``.
    """

    if TYPE_CHECKING:  # fields of the subclasses, which order them
        dataset: Any
        num_seeds: int
        seed: int
        draws: str

    @property
    def draws_data(self) -> bool:
        """Whether each seed also draws new data."""
        return self.draws == "network and data"

    @property
    def scope(self) -> str:
        """Population of the exponents' intervals."""
        return (
            "over random initializations "
            f"{'and data sets' if self.draws_data else '(one data set)'}"
        )

    @property
    def seeds(self) -> range:
        """The seeds of all initializations w₀."""
        return range(self.seed, self.seed + self.num_seeds)

    def each_seed(self) -> tuple[Self, ...]:
        """Return one spec per seed, with its data."""
        return tuple(self._of_seed(index) for index in range(self.num_seeds))

    def _of_seed(self, index: int) -> Self:
        seed = self.seeds[index]
        dataset = self.dataset.model_copy(update={"seed": self.dataset.seed + seed})
        return self.model_copy(
            update={"num_seeds": 1, "seed": seed, "draws": "network", "dataset": dataset}
        )


class SweepSpec(SeededSpec):
    """Networks of several widths on one data set, each with several seeds.

    Regression data are trained with the square loss, so a softmax output is refused.
    """

    one_output: ClassVar[bool] = False
    """Whether two classes are one output with targets −1 and +1, as in the theory,
    for linear outputs.
    """
    needs_classes: ClassVar[Mapping[str, tuple[str, str]]] = {"outputs": ("softmax", "linear")}
    """Setting → (choice that needs data with classes, replacement for other data)."""

    dataset: DatasetSpec = DatasetSpec()
    widths: tuple[Width, ...] = Field(
        default=(30, 100, 300, 1000, 3000, 10_000), min_length=1, max_length=24, title="Widths m"
    )
    """Widths m of the hidden layers, one network each."""
    num_seeds: int = Field(default=5, ge=1, le=100, title="Seeds")
    """Independent initializations w₀ for each width."""
    seed: int = Field(
        default=0, ge=0, le=2**31 - 1, title="First seed", json_schema_extra={"is_label": True}
    )
    """The runs use this seed and the following ones."""
    draws: Literal["network", "network and data"] = Field(default="network", title="Seeds draw")
    """Each seed draws a network for one data set,
    or a network and data (from the sum of both seeds).
    """

    @property
    def all_outputs(self) -> tuple[str, ...]:
        """The outputs φ of its networks."""
        return getattr(self, "outputs", (getattr(self, "output", "linear"),))

    def shapes(self) -> DatasetShapes | None:
        """Return the sizes of the data, including test points; None if not yet known."""
        return self.dataset.known_shapes(**self._more_options())

    def data_options(self) -> dict[str, Any]:
        """Return the options of ``load_dataset``, with at most ``num_test`` test points."""
        return {**self.dataset.options(), **self._more_options()}

    def _more_options(self) -> dict[str, Any]:
        num_test = getattr(self, "num_test", 0)
        shapes = self.dataset.known_shapes() if num_test or self.one_output else None
        is_one = (
            shapes is not None
            and len(shapes.class_names) == 2
            and set(self.all_outputs) == {"linear"}
        )
        targets = {"targets": "plus-minus"} if is_one and self.one_output else {}
        return {"num_test": min(num_test, shapes.available_test) if shapes else num_test, **targets}

    @model_validator(mode="after")
    def _suits_data(self) -> Self:
        if self.draws_data and not self.dataset.uses("seed"):
            raise InvalidInput(
                "draws", self.draws, "network: given points are not drawn", "network"
            )
        shapes = self.dataset.known_shapes()
        if shapes is None or shapes.class_names:
            return self
        for name, (choice, other) in self.needs_classes.items():
            if choice == (chosen := getattr(self, name, ())):
                raise InvalidInput(name, choice, f"another {name}, for data without classes", other)
            if choice in chosen:
                others = tuple(each for each in chosen if each != choice)
                raise InvalidInput(
                    name, choice, f"other {name}, for data without classes", others or (other,)
                )
        return self

    @field_validator("widths")
    @classmethod
    def _ascending(cls, widths: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(set(widths)))


Spec = ExperimentSpec
