"""Settings of the data."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from linearity_lab.data import DATASETS, OPTIONS, DatasetShapes, dataset_options, dataset_shapes
from linearity_lab.data._options import MAX_POINTS
from linearity_lab.data.uploads import DIGEST, HOW_TO_BRING, MissingUpload
from linearity_lab.settings.part import SpecPart, one_of
from ntk_core.errors import InvalidInput

if TYPE_CHECKING:  # type checkers want the names written out; at run time they come from the table
    DatasetName = str
else:
    DatasetName = one_of(DATASETS)


def _digest(given: object) -> str:
    if isinstance(given, str) and DIGEST.match(given):
        return given
    raise InvalidInput("", given or "nothing", HOW_TO_BRING)


UploadDigest = Annotated[str, BeforeValidator(_digest)]
Coordinate = Annotated[float, Field(ge=OPTIONS["xs"].minimum, le=OPTIONS["xs"].maximum)]


def _datasets_by_option() -> dict[str, tuple[str, ...]]:
    """Map each option that only some data sets have to their names."""
    found = {}
    for option in OPTIONS:
        if option not in ("num_test", "targets", "source", "flatten"):
            found[option] = tuple(name for name, info in DATASETS.items() if option in info.uses)
    return found


class DatasetSpec(SpecPart):
    """The data: name, options → (x, y), see ``linearity_lab.load_dataset``.

    By default the label c is uniform on C classes, and x given c is N(μ_c, s²I) with |μ_c| = 2.

    Source: our choice, docs/decisions/0008-defaults-of-the-first-figure.md; other
    laws: ``load_dataset``.

    >>> import linearity_lab
    >>> spec = DatasetSpec(name="sine", num_samples=8)
    >>> linearity_lab.load_dataset(spec.name, **spec.options()).x.shape
    (8, 1)
    """

    selector: ClassVar[str] = "name"
    relevant: ClassVar[dict[str, tuple[str, ...]]] = _datasets_by_option()

    name: DatasetName = Field(default="gaussian-mixture", title="Dataset")
    """Source of the inputs x."""
    num_samples: int = OPTIONS["num_samples"].field()
    num_classes: int = OPTIONS["num_classes"].field()
    num_symbols: int = OPTIONS["num_symbols"].field()
    num_tokens: int = OPTIONS["num_tokens"].field()
    input_dim: int = OPTIONS["input_dim"].field()
    noise: float = OPTIONS["noise"].field()
    num_relevant: int = OPTIONS["num_relevant"].field()
    degree: int = OPTIONS["degree"].field()
    xs: tuple[Coordinate, ...] = OPTIONS["xs"].field(min_length=1, max_length=MAX_POINTS)
    ys: tuple[Coordinate, ...] = OPTIONS["ys"].field(min_length=1, max_length=MAX_POINTS)
    classes: tuple[int, ...] | None = OPTIONS["classes"].field(
        min_length=2, max_length=10, json_schema_extra={"when_empty": "all"}
    )
    standardize: Literal["raw", "unit-norm", "standard", "centered"] = OPTIONS[
        "standardize"
    ].field()
    resolution: Literal[8, 32] = OPTIONS["resolution"].field()
    patch_size: int = OPTIONS["patch_size"].field()
    digest: UploadDigest | None = OPTIONS["digest"].field(json_schema_extra={"entry": "upload"})
    seed: int = OPTIONS["seed"].field(json_schema_extra={"is_label": True})

    @model_validator(mode="after")
    def _available(self) -> Self:
        # Results can be read without their upload; ``check_size`` refuses to compute without it.
        with contextlib.suppress(MissingUpload):
            dataset_options(self.name, **self.options())
        return self

    def known_shapes(self, **more: object) -> DatasetShapes | None:
        """Return the shapes with further options of ``load_dataset``; None for a missing upload."""
        try:
            return dataset_shapes(self.name, **{**self.options(), **more})
        except MissingUpload:
            return None

    @property
    def num_points(self) -> int:
        """Number n of training inputs."""
        return self.num_samples if self.uses("num_samples") else len(self.xs)

    def options(self) -> dict[str, Any]:
        """Return the options of ``load_dataset``, without test points."""
        chosen = {
            name: getattr(self, name)
            for name in type(self).model_fields
            if name != "name" and self.uses(name)
        }
        return {**chosen, "num_test": 0}
