"""The settings of the data."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from ntk_core.data import DatasetShapes, dataset_options, dataset_shapes
from ntk_core.data.uploads import DIGEST, HOW_TO_BRING, MissingUpload
from ntk_core.errors import InvalidInput
from ntk_core.settings.part import SpecPart
from ntk_core.settings.vocabulary import DATASETS

if TYPE_CHECKING:  # type checkers want the names written out; at run time they come from the vocabulary
    DatasetName = str
else:
    DatasetName = Literal[tuple(DATASETS)]


def _digest(given: Any) -> Any:
    if isinstance(given, str) and DIGEST.match(given):
        return given
    raise InvalidInput("", given or "nothing", HOW_TO_BRING)


UploadDigest = Annotated[str, BeforeValidator(_digest)]


class DatasetSpec(SpecPart):
    """The data, see ``ntk_core.load_dataset``."""

    selector: ClassVar[str] = "name"
    relevant: ClassVar[dict[str, tuple[str, ...]]] = {
        "num_classes": ("gaussian-mixture",),
        "input_dim": ("gaussian-mixture",),
        "noise": ("gaussian-mixture", "sine"),
        "classes": ("mnist", "fashion-mnist", "digits"),
        "resolution": ("cifar2",),
        "standardize": ("mnist", "fashion-mnist", "cifar2", "digits", "upload"),
        "digest": ("upload",),
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
        description="Standard deviation s of x around its class center μ, with |μ| = 2; of y around the sine.",
    )
    classes: tuple[int, ...] | None = Field(
        None,
        min_length=2,
        max_length=10,
        title="Classes",
        description="Which classes to keep, by their numbers; all when empty.",
    )
    standardize: Literal["raw", "unit-norm", "standard"] = Field(
        "raw",
        title="Standardize",
        description="Inputs as they are (pixels from 0 to 1); each scaled to norm √d; or every entry to mean 0, "
        "variance 1.",
    )
    resolution: Literal[8, 32] = Field(8, title="Resolution", description="Pixels along each side of an image.")
    digest: UploadDigest | None = Field(
        None,
        title="Your data",
        description="Data that you uploaded on the page Your data, identified by their SHA-256.",
        json_schema_extra={"entry": "upload"},
    )
    seed: int = Field(
        0, ge=0, le=2**31 - 1, title="Data seed", description="Seed of the data's law and of the subset drawn."
    )

    @model_validator(mode="after")
    def _available(self) -> Self:
        # Results are read where an upload is not kept; ``check_size`` refuses to compute without it.
        with contextlib.suppress(MissingUpload):
            dataset_options(self.name, **self.options())
        return self

    def known_shapes(self, **more: Any) -> DatasetShapes | None:
        """Shapes with these further options of ``load_dataset``; None for an upload that is not kept here."""
        try:
            return dataset_shapes(self.name, **{**self.options(), **more})
        except MissingUpload:
            return None

    def options(self) -> dict[str, Any]:
        """The options of ``load_dataset`` for this choice; no test points are asked for."""
        chosen = {name: getattr(self, name) for name in type(self).model_fields if name != "name" and self.uses(name)}
        return {**chosen, "num_test": 0}
