"""Count a point's computations and arrays, and convert counts to work, bytes and seconds.
Without JAX.
"""

from __future__ import annotations

import collections
import functools
import math
import operator
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from linearity_lab.data import DatasetShapes, dataset_shapes
from linearity_lab.networks.sizes import LayerSize, layer_sizes
from linearity_lab.networks.spec import ArchitectureSpec
from linearity_lab.runs._spec import SweepSpec
from ntk_core.networks.counts import num_features

BYTES = 4
MATVECS = 40  # Hessian-vector products until the residual of the norm is small
HESSIAN_BASIS = 130  # vectors of a Lanczos basis


class Work(NamedTuple):
    """Operations, bytes, calls and programs.

    Attributes:
        operations: floating-point operations.
        traffic: bytes of weights, features and images that are read or written.
        calls: steps, products and records; each has a fixed cost.
        programs: seconds of compiling on the machine where :data:`COEFFICIENTS` were fitted.
    """

    operations: float = 0.0
    traffic: float = 0.0
    calls: float = 0.0
    programs: float = 0.0

    def __add__(self, other: Work) -> Work:  # type: ignore[override]
        return Work(*map(operator.add, self, other))

    def __rmul__(self, times: float) -> Work:  # type: ignore[override]
        return Work(*(times * count for count in self))

    def seconds(self, work: Work) -> float:
        """Return the wall time of ``work`` on a machine.

        These are its seconds per unit of each count.
        """
        return sum(map(operator.mul, self, work))


Machine = Work  # seconds per unit of each count


# Two cores of a cloud machine; `python -m benchmarks --only estimates` fits both tables to its
# records and prints them.
SHIPPED = Machine(operations=1e-11, traffic=6e-11, calls=3.4e-5, programs=0.9)
# Seconds to compile each kind of program for a network without layers, with SHIPPED.programs = 1.
COEFFICIENTS: dict[str, float] = {
    "training": 1.1,
    "many trainings": 0.4,
    "small network": 0.7,
    "linear model": 0.5,
    "spectra": 0.3,
    "regression": 0.3,
    "streaming": 1.5,
    "hessian": 1.1,
    "search": 1.0,
    "loop": 1.2,
    "early time": 0.6,
}
# Compile time, relative to a network without layers.
PER_LAYER = 0.33
PER_CONVOLUTION = 1.33
# Memory for compiling: the first program, each second of compiling, and second derivatives.
COMPILING_BYTES = 1.15e8
SECOND_BYTES = 2.1e7
DERIVATIVE_BYTES = 9.7e7
MAX_COMPILING_S = 6.0  # later programs replace earlier ones
DERIVATIVES = ("hessian", "search", "small network")


@dataclass(frozen=True)
class Counted:
    """Sizes of a network and its training data."""

    layers: Sequence[LayerSize]
    num_samples: int
    num_outputs: int
    num_test: int = 0

    @classmethod
    def of(
        cls, spec: SweepSpec, architecture: ArchitectureSpec, width: int, copies: int = 1
    ) -> Counted:
        """Return the sizes of copies of one network of this width on the data set of ``spec``."""
        return _counted(_shapes(spec), architecture, width, copies)

    @functools.cached_property
    def multiplications(self) -> int:
        """Multiplications in one forward pass of one sample."""
        return sum(layer.multiplications for layer in self.layers)

    @functools.cached_property
    def step(self) -> Work:
        """A training step: forward and backward pass of all samples, and new weights."""
        patches = sum(layer.positions * layer.fan_in for layer in self.layers if layer.convolution)
        seen = 6 * num_features(self.layers) + 4 * patches
        numbers = 3 * self.num_weights + self.num_samples * seen
        return Work(6 * self.num_samples * self.multiplications, BYTES * numbers, 1)

    @functools.cached_property
    def kernel(self) -> Work:
        """One tangent kernel."""
        operations = sum(
            layer.kernel_operations(self.num_samples, self.num_outputs) for layer in self.layers
        )
        return Work(2 * operations, BYTES * (self.num_views + 4 * self.kernel_rows**2), 1)

    @functools.cached_property
    def product(self) -> Work:
        """A Hessian-vector product of one output at one input: forward and backward tangents."""
        return Work(8 * self.multiplications, 3 * BYTES * self.num_weights, 1)

    @functools.cached_property
    def program(self) -> float:
        """Compile time of a program through the whole network, relative to one without layers."""
        convolutions = sum(layer.convolution for layer in self.layers)
        return 1 + PER_LAYER * len(self.layers) + PER_CONVOLUTION * convolutions

    @property
    def num_seen(self) -> int:
        """Count inputs, pre-activations, activations and gradients in a step.

        They are those of all layers and samples.
        """
        return self.num_samples * (self.num_inputs + 4 * num_features(self.layers))

    @property
    def num_inputs(self) -> int:
        """Inputs of all layers for one sample."""
        return sum(layer.positions * layer.fan_in for layer in self.layers)

    @property
    def kernel_rows(self) -> int:
        """Number of samples times number of outputs, n C."""
        return self.num_samples * self.num_outputs

    @functools.cached_property
    def num_weights(self) -> int:
        """Parameters of all layers."""
        return sum(layer.num_params for layer in self.layers)

    @functools.cached_property
    def num_views(self) -> int:
        """Count the numbers that the views of all layers hold.

        These are inputs, pre-activations and C cotangents of all samples, with one temporary copy
        each.
        """
        numbers = self.num_inputs + (2 * self.num_outputs + 1) * num_features(self.layers)
        return (self.num_samples + self.num_test) * numbers


NOTHING = Counted((), 0, 0)
NO_WORK = Work()


@dataclass(frozen=True)
class Counts:
    """Work of a point with one network, and its peak memory.

    Attributes:
        network: the network and its data.
        programs: kind of program, a key of :data:`COEFFICIENTS` → number of compiled programs.
        times: repetitions of all counts below: seeds, rates, outputs.
        steps: training steps, each with all inputs.
        kernels: tangent kernels of all training inputs.
        products: Hessian-vector products of one output at one input.
        cubes: operations of factorizations and eigenvalues, in units of (n C)³.
        squares: products of an (n C, n C) matrix and a vector.
        more: any other work.
        copies: copies of the weights in memory, including gradients and temporaries.
        views: copies of the views of all inputs in memory.
        matrices: matrices of (n C)² numbers.
        numbers: other numbers of four bytes.
        num_bytes: other bytes.
    """

    network: Counted = NOTHING
    programs: Mapping[str, float] = field(default_factory=dict)
    times: float = 1
    steps: float = 0
    kernels: float = 0
    products: float = 0
    cubes: float = 0
    squares: float = 0
    more: Work = NO_WORK
    copies: float = 0
    views: float = 0
    matrices: float = 0
    numbers: float = 0
    num_bytes: float = 0

    @property
    def work(self) -> Work:
        """The counts as operations, bytes, calls and seconds of compiling."""
        network = self.network
        rows = self.network.kernel_rows
        entries = 2.0 * self.squares * rows**2
        found = Work(self.cubes * rows**3 + entries, BYTES / 2 * entries) + self.more
        for count, name in (
            (self.steps, "step"),
            (self.kernels, "kernel"),
            (self.products, "product"),
        ):
            if count:
                found += count * getattr(network, name)
        return (self.times * found)._replace(programs=self.compiling)

    @property
    def compiling(self) -> float:
        """Seconds of compiling where :data:`COEFFICIENTS` were fitted."""
        return (
            sum(COEFFICIENTS[kind] * number for kind, number in self.programs.items())
            * self.network.program
        )

    @property
    def peak_bytes(self) -> float:
        """Peak memory in bytes."""
        network = self.network
        numbers = (
            self.copies * network.num_weights
            + self.matrices * network.kernel_rows**2
            + self.numbers
        )
        return (
            BYTES * (numbers + self.views * (network.num_views if self.views else 0))
            + self.num_bytes
        )


# (spec, key, most) → counts of every network of a point; with ``most``, of the maximum numbers of
# steps and products.
SpecType_contra = TypeVar("SpecType_contra", contravariant=True)


class CountsOf(Protocol[SpecType_contra]):
    """Function of a spec and a key → counts of the point.

    With ``most``, the maximum numbers of steps and products.
    """

    def __call__(
        self, spec: SpecType_contra, key: str, most: bool = False, /
    ) -> Sequence[Counts]: ...


def typical_steps(max_steps: int, most: bool, typical: int = 1000) -> int:
    """Return the typical number of steps until convergence, or with ``most`` the maximum number."""
    return max_steps if most else min(max_steps, typical)


@functools.lru_cache(maxsize=256)
def _shapes(spec: SweepSpec) -> DatasetShapes:
    return dataset_shapes(spec.dataset.name, **spec.data_options())


@functools.lru_cache(maxsize=256)
def _counted(
    shapes: DatasetShapes, architecture: ArchitectureSpec, width: int, copies: int
) -> Counted:
    layers = layer_sizes(architecture, width, shapes.input_shape, shapes.num_outputs)
    return Counted(layers * copies, shapes.num_samples, shapes.num_outputs, shapes.num_test)


def total_work(counts: Sequence[Counts]) -> Work:
    """Return the work of all networks of a point."""
    return sum((each.work for each in counts), Work())


def peak_bytes(counts: Sequence[Counts]) -> float:
    """Return the peak memory of the largest network of a point, in bytes."""
    return max((each.peak_bytes for each in counts), default=math.nan)


def bytes_of_points(points: Collection[Sequence[Counts]]) -> list[float]:
    """Return the peak memory of each point.

    It includes the compiling of all and the second derivatives of this one.
    """
    seconds = min(sum(each.compiling for counts in points for each in counts), MAX_COMPILING_S)
    derivatives = (
        sum(each.programs.get(kind, 0) for each in counts for kind in DERIVATIVES)
        for counts in points
    )
    extra = (
        COMPILING_BYTES + SECOND_BYTES * seconds + DERIVATIVE_BYTES * (count > 0)
        for count in derivatives
    )
    return [peak_bytes(counts) + num_bytes for counts, num_bytes in zip(points, extra, strict=True)]


MAX_KEPT = 400  # most recent points
PRIOR = 1.0  # weight of the shipped constants, in points
SMALLEST_S = 0.2  # shorter points measure the clock rather than the machine
_lock = threading.Lock()
_finished: collections.deque[tuple[Work, float]] = collections.deque(maxlen=MAX_KEPT)
_here = SHIPPED


def machine() -> Machine:
    """Return the speeds of this machine.

    Shipped values until :func:`learn` receives finished points.
    """
    return _here


def learn(points: Iterable[tuple[Work, float]]) -> None:
    """Update the speeds of this machine from the work and the seconds of finished points."""
    global _here
    with _lock:
        _finished.extend((work, seconds) for work, seconds in points if seconds >= SMALLEST_S)
        _here = fitted(list(_finished))


def fitted(
    points: list[tuple[Work, float]], prior: Machine = SHIPPED, weight: float = PRIOR
) -> Machine:
    """Fit machine speeds to pairs of work and seconds.

    ``prior`` weighs as much as ``weight`` points.
    """
    if not points:
        return prior
    start = np.array(prior)
    counts = np.array([work for work, _ in points]) * start
    return Machine(
        *(
            start * nonnegative_fit(counts, np.array([seconds for _, seconds in points]), weight)
        ).tolist()
    )


def nonnegative_fit(counts: np.ndarray, seconds: np.ndarray, weight: float) -> np.ndarray:
    """Fit constants c ≥ 0 near 1 with counts·c ≈ seconds, by least squares in relative errors.

    A point of t seconds with expected time ŝ has weight 1/√(t ŝ), so half and twice the
    expected time count equally. Finally all constants are scaled to bring the median of t /
    counts·c closer to 1.

    Args:
        counts: (points, constants), in units in which the expected constants are 1.
        seconds: (points,).
        weight: weight of the expected constants, in points.
    """
    from scipy.optimize import nnls  # slow to import and not needed before the first finished point

    each = 1 / np.sqrt(seconds * np.maximum(counts.sum(axis=1), 1e-9))
    pull = np.sqrt(weight) * np.eye(counts.shape[1])
    scale = nnls(
        np.vstack([counts * each[:, None], pull]),
        np.concatenate([seconds * each, pull.sum(axis=1)]),
    )[0]
    median = float(np.median(np.log(seconds / np.maximum(counts @ scale, 1e-9))))
    return np.asarray(scale * math.exp(median * len(seconds) / (len(seconds) + weight)))
