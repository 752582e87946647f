"""Description of a data set: name, options, sizes known before reading, and a loader."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linearity_lab.data._dataset import TEST, TRAIN, Dataset, encode_targets, standardize_inputs
from linearity_lab.data._options import OPTIONS, Option, Options
from ntk_core.errors import InvalidInput, TooLarge
from ntk_core.terms import Term

MAX_VALUES = 2**27  # 512 MiB of float32 in one array
# Inputs (n, …), and labels (n,), or targets (n, k) without classes.
Samples = tuple[ArrayLike, NDArray]


@dataclass(frozen=True)
class DatasetShapes:
    """Sizes of the data from ``load_dataset`` with the same options, without loading.

    ``available_train`` and ``available_test`` are the largest ``num_samples`` and
    ``num_test`` for this choice.

    >>> from linearity_lab.data import dataset_shapes
    >>> dataset_shapes("sine", num_samples=8).num_outputs
    1
    """

    num_samples: int
    num_test: int
    input_shape: tuple[int, ...]
    num_outputs: int
    class_names: tuple[str, ...]
    available_train: int
    available_test: int


@dataclass(frozen=True, kw_only=True)
class DatasetInfo(Term, ABC):
    """Description of a data set for forms, checks and ``load_dataset``.

    Attributes:
        name: its name in ``load_dataset``.
        title: its title.
        formula: one sentence about inputs and classes.
        uses: names of its options.
        defaults: defaults that differ from those of :data:`OPTIONS`.
        class_names: all classes; empty if an option sets their number.
        origin: distribution or source, and licence.

    >>> from linearity_lab.data import dataset_info
    >>> info = dataset_info("sine")
    >>> info.name, info.option("num_samples").kind
    ('sine', 'integer')
    """

    law: ClassVar[str] = "{origin}"  # template of the provenance

    uses: tuple[str, ...]
    defaults: Options = field(default_factory=dict)
    class_names: tuple[str, ...] = ()
    origin: str = ""

    @cached_property
    def options(self) -> tuple[Option, ...]:
        """Every option with kind, bounds, default and help."""
        found = (OPTIONS[name] for name in self.uses)
        return tuple(
            replace(
                option,
                default=self.defaults.get(option.name, option.default),
                choices=self.class_names if option.kind == "classes" else option.choices,
            )
            for option in found
        )

    def option(self, name: str) -> Option:
        """The option called ``name``."""
        for option in self.options:
            if option.name == name:
                return option
        raise InvalidInput("options", name, ", ".join(self.uses))

    @abstractmethod
    def shapes(self, options: Options) -> DatasetShapes:
        """Sizes for checked options."""

    @abstractmethod
    def samples(self, options: Options) -> tuple[Samples, Samples]:
        """Training and test points for checked options."""

    def provenance(self, options: Options) -> str:
        """Distribution or source, licence, and our choices."""
        return self.law.format(origin=self.origin, formula=self.formula, **options)

    def load(self, options: Options) -> Dataset:
        """Load the data for checked options: inputs standardized, labels encoded as targets."""
        names = self.shapes(options).class_names
        ((x, y), (x_test, y_test)) = self.samples(options)
        how = options.get("standardize", "raw")
        x, x_test = standardize_inputs(
            np.asarray(x, np.float32), np.asarray(x_test, np.float32), how
        )
        targets = [
            encode_targets(each, len(names), options["targets"])
            if names
            else each.astype(np.float32)
            for each in (y, y_test)
        ]
        labels, labels_test = (y, y_test) if names else np.zeros((2, 0), np.int64)
        origin = self.provenance(options)
        return Dataset(
            self.name, x, targets[0], labels, x_test, targets[1], labels_test, names, origin
        )

    def least_risk(self, options: Options) -> tuple[float, float]:
        """Lower bounds (share of wrong classes, square loss of one column) of all models.

        NaN if unknown.
        """
        del options
        return math.nan, math.nan

    def check(self, options: Options) -> None:
        """Refuse checked options that contradict each other.

        Raises:
            InvalidInput: for more samples than there are, or one column for more than two classes.
            TooLarge: for samples that would not fit into 512 MiB.
        """
        shapes = self.shapes(options)
        if options.get("targets") == "plus-minus" and len(shapes.class_names) != 2:
            raise InvalidInput(
                "targets", "plus-minus", f"one-hot, as there are {len(shapes.class_names)} classes"
            )
        for key, available in (
            ("num_samples", shapes.available_train),
            ("num_test", shapes.available_test),
        ):
            if options[key] > available:
                raise InvalidInput(
                    key,
                    options[key],
                    f"at most {available:,}, all available for the chosen options",
                    available,
                )
            per_sample = math.prod(shapes.input_shape)
            if options[key] * per_sample > MAX_VALUES:
                required = 4 * options[key] * per_sample
                limit = 4 * MAX_VALUES
                nearest = MAX_VALUES // per_sample
                raise TooLarge(
                    key, options[key], required=required, limit=limit, unit="bytes", nearest=nearest
                )


class Drawn(DatasetInfo):
    """Training and test points of one distribution; the first k of n samples do not depend on n."""

    @abstractmethod
    def draw(self, options: Options, num: int, split: int) -> Samples:
        """Draw ``num`` inputs and their labels or targets."""

    def samples(self, options: Options) -> tuple[Samples, Samples]:
        return self.draw(options, options["num_samples"], TRAIN), self.draw(
            options, options["num_test"], TEST
        )


def shapes_of(
    options: Options,
    input_shape: tuple[int, ...],
    class_names: tuple[str, ...],
    available: tuple[int, int] = (
        int(OPTIONS["num_samples"].maximum),
        int(OPTIONS["num_test"].maximum),
    ),
    num_targets: int = 1,
) -> DatasetShapes:
    """Return the sizes for these inputs and classes.

    Without classes y has ``num_targets`` columns.
    """
    columns = len(class_names) if options.get("targets") == "one-hot" else 1
    return DatasetShapes(
        num_samples=options["num_samples"],
        num_test=options["num_test"],
        input_shape=input_shape,
        num_outputs=columns if class_names else num_targets,
        class_names=class_names,
        available_train=available[0],
        available_test=available[1],
    )
