"""What every data set has: a name, options, sizes that are known before anything is read, and a way to load it."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ntk_core.data._dataset import TEST, TRAIN, Dataset
from ntk_core.data._options import OPTIONS, Option, Options
from ntk_core.data._transforms import encode_targets, standardize_inputs
from ntk_core.errors import InvalidInput, TooLarge
from ntk_core.settings.part import Term

MAX_VALUES = 2**27  # 512 MiB of float32 in one array
Samples = tuple[NDArray, NDArray, NDArray, NDArray]  # x (n, …), labels (n,), the same two for the test set


@dataclass(frozen=True)
class DatasetShapes:
    """Sizes that ``load_dataset`` with the same options will give, known beforehand.

    ``available_train`` and ``available_test`` are the largest ``num_samples`` and ``num_test`` for this choice.

    >>> from ntk_core.data import dataset_shapes
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
    """One data set: all that a form, a check and ``load_dataset`` know of it.

    Attributes:
        name: the name that ``load_dataset`` takes.
        title: the name for people.
        formula: one sentence on what the inputs and classes are.
        uses: names of its options.
        defaults: of those options whose default is another one here.
        class_names: all classes; empty where an option sets their number.
        origin: law or maker, and licence.

    >>> from ntk_core.data import dataset_info
    >>> info = dataset_info("sine")
    >>> info.name, info.option("num_samples").kind
    ('sine', 'integer')
    """

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
    def load(self, options: Options) -> Dataset:
        """The data for checked options."""

    def least_risk(self, options: Options) -> tuple[float, float]:
        """(share of wrong classes, square loss of one column) that nothing is below; NaN where it is not known."""
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
            raise InvalidInput("targets", "plus-minus", f"one-hot, as there are {len(shapes.class_names)} classes")
        for key, available in (("num_samples", shapes.available_train), ("num_test", shapes.available_test)):
            if options[key] > available:
                raise InvalidInput(
                    key, options[key], f"at most {available:,}, all that there are for the chosen options", available
                )
            per_sample = math.prod(shapes.input_shape)
            if options[key] * per_sample > MAX_VALUES:
                required, limit, nearest = 4 * options[key] * per_sample, 4 * MAX_VALUES, MAX_VALUES // per_sample
                raise TooLarge(key, options[key], required=required, limit=limit, unit="bytes", nearest=nearest)


class Drawn(DatasetInfo):
    """Training and test points drawn in the same way; the first k of n samples do not depend on n."""

    law: ClassVar[str] = "{origin}"  # what is stated of the origin

    @abstractmethod
    def draw(self, options: Options, num: int, split: int) -> tuple[NDArray, NDArray]:
        """That many inputs, and their labels (n,), or targets (n, k) without classes."""

    def load(self, options: Options) -> Dataset:
        """Both sets; inputs with classes standardized."""
        names, origin = self.shapes(options).class_names, self.law.format(origin=self.origin, formula=self.formula)
        train, test = self.draw(options, options["num_samples"], TRAIN), self.draw(options, options["num_test"], TEST)
        if names:
            return labeled(self.name, options, names, (*train, *test), origin)
        return without_classes(self.name, *train, *test, origin)


def shapes_of(
    options: Options,
    input_shape: tuple[int, ...],
    class_names: tuple[str, ...],
    available: tuple[int, int] = (int(OPTIONS["num_samples"].maximum), int(OPTIONS["num_test"].maximum)),
    num_targets: int = 1,
) -> DatasetShapes:
    """Sizes of a data set with these inputs and classes; without classes y has ``num_targets`` columns."""
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


def labeled(name: str, options: Options, class_names: tuple[str, ...], samples: Samples, provenance: str) -> Dataset:
    """Samples with their classes as a data set: inputs standardized, labels coded as targets."""
    x, labels, x_test, labels_test = samples
    x, x_test = standardize_inputs(x, x_test, options["standardize"])
    y, y_test = (encode_targets(each, len(class_names), options["targets"]) for each in (labels, labels_test))
    return Dataset(name, x, y, labels, x_test, y_test, labels_test, class_names, provenance)


def without_classes(
    name: str, x: ArrayLike, y: ArrayLike, x_test: ArrayLike, y_test: ArrayLike, provenance: str
) -> Dataset:
    """Samples with numbers as targets, as float32."""
    none = np.zeros(0, np.int64)
    x, y, x_test, y_test = (np.asarray(each, np.float32) for each in (x, y, x_test, y_test))
    return Dataset(name, x, y, none, x_test, y_test, none, (), provenance)
