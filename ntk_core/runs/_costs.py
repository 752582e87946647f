"""Counts of a point's computations and arrays; counts become work and bytes, work becomes seconds. Free of JAX."""

from __future__ import annotations

import collections
import functools
import math
import operator
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ntk_core.data import DatasetShapes, dataset_shapes
from ntk_core.networks.sizes import LayerSize, layer_sizes, num_features
from ntk_core.networks.spec import ArchitectureSpec
from ntk_core.runs._spec import SweepSpec

BYTES = 4
MATVECS = 40  # products with a Hessian until the residual of its norm is small
HESSIAN_BASIS = 130  # vectors of a Lanczos basis


class Work(NamedTuple):
    """Operations, bytes, calls and programs.

    Attributes:
        operations: floating-point operations.
        traffic: bytes of weights, features and images that are read or written.
        calls: steps, products and records, each of which costs something however small it is.
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
        """Wall time of ``work`` on the machine that takes these seconds for one unit of each count."""
        return sum(map(operator.mul, self, work))


Machine = Work  # seconds of one unit of each count


# Two cores of a cloud machine; `python -m benchmarks --only estimates` fits both tables to its records and prints them.
SHIPPED = Machine(operations=1e-11, traffic=6e-11, calls=3.4e-5, programs=0.9)
# Seconds to compile what a point needs of each kind, for a network without layers and with SHIPPED.programs = 1.
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
PER_LAYER, PER_CONVOLUTION = 0.33, 1.33  # compile time of a further layer or convolution, in that of a network without
# Bytes that a process takes to compile anything, a second of compiling, and second derivatives.
COMPILING_BYTES, SECOND_BYTES, DERIVATIVE_BYTES = 1.15e8, 2.1e7, 9.7e7
MAX_COMPILING_S = 6.0  # later programs take the place of earlier ones
DERIVATIVES = ("hessian", "search", "small network")


@dataclass(frozen=True)
class Counted:
    """A network and the data that it is trained on, counted."""

    layers: Sequence[LayerSize]
    num_samples: int
    num_outputs: int
    num_test: int = 0

    @classmethod
    def of(cls, spec: SweepSpec, architecture: ArchitectureSpec, width: int, copies: int = 1) -> Counted:
        """Copies of one network of this width on the data set of ``spec``."""
        return _counted(_shapes(spec), architecture, width, copies)

    @functools.cached_property
    def multiplications(self) -> int:
        """Multiplications in one forward pass of one sample."""
        return sum(layer.multiplications for layer in self.layers)

    @functools.cached_property
    def step(self) -> Work:
        """One step of training: a forward and a backward pass of all samples, and new weights."""
        patches = sum(layer.positions * layer.fan_in for layer in self.layers if layer.convolution)
        seen = 6 * num_features(self.layers) + 4 * patches
        numbers = 3 * self.num_weights + self.num_samples * seen
        return Work(6 * self.num_samples * self.multiplications, BYTES * numbers, 1)

    @functools.cached_property
    def kernel(self) -> Work:
        """One tangent kernel."""
        operations = sum(layer.kernel_operations(self.num_samples, self.num_outputs) for layer in self.layers)
        return Work(2 * operations, BYTES * (self.num_views + 4 * self.kernel_rows**2), 1)

    @functools.cached_property
    def product(self) -> Work:
        """One product with the Hessian of one output at one input: tangents forward and backward."""
        return Work(8 * self.multiplications, 3 * BYTES * self.num_weights, 1)

    @functools.cached_property
    def program(self) -> float:
        """Compile time of a program through the whole network, in units of one without layers."""
        convolutions = sum(layer.convolution for layer in self.layers)
        return 1 + PER_LAYER * len(self.layers) + PER_CONVOLUTION * convolutions

    @property
    def num_seen(self) -> int:
        """Inputs, pre-activations, activations and their gradients of every layer for every sample, in a step."""
        return self.num_samples * (self.num_inputs + 4 * num_features(self.layers))

    @property
    def num_inputs(self) -> int:
        """Inputs of all layers for one sample."""
        return sum(layer.positions * layer.fan_in for layer in self.layers)

    @property
    def kernel_rows(self) -> int:
        """n C."""
        return self.num_samples * self.num_outputs

    @functools.cached_property
    def num_weights(self) -> int:
        """Parameters of all layers."""
        return sum(layer.num_params for layer in self.layers)

    @functools.cached_property
    def num_views(self) -> int:
        """Inputs, pre-activations and C cotangents of every layer for every sample, each once more as a temporary."""
        numbers = self.num_inputs + (2 * self.num_outputs + 1) * num_features(self.layers)
        return (self.num_samples + self.num_test) * numbers


NOTHING = Counted((), 0, 0)
NO_WORK = Work()


@dataclass(frozen=True)
class Counts:
    """Work of a point with one network, and its peak memory.

    Attributes:
        network: the network and its data.
        programs: kind of program, a key of :data:`COEFFICIENTS` → how many are compiled.
        times: how often everything below is computed: seeds, rates, outputs.
        steps: of training, each with all inputs.
        kernels: tangent kernels of all training inputs.
        products: with the Hessian of one output at one input.
        cubes: operations in (n C)³, of factorizations and eigenvalues.
        squares: products of an (n C, n C) matrix and a vector.
        more: any other work.
        copies: of the weights that are held, gradients and temporaries among them.
        views: times that the views of all inputs are held.
        matrices: of (n C)² numbers.
        numbers: further numbers of four bytes.
        num_bytes: further bytes.
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
        """The counts in operations, bytes, calls and seconds of compiling."""
        network, rows = self.network, self.network.kernel_rows
        entries = 2.0 * self.squares * rows**2
        found = Work(self.cubes * rows**3 + entries, BYTES / 2 * entries) + self.more
        for count, name in ((self.steps, "step"), (self.kernels, "kernel"), (self.products, "product")):
            if count:
                found += count * getattr(network, name)
        compiling = sum(COEFFICIENTS[kind] * number for kind, number in self.programs.items())
        return (self.times * found)._replace(programs=compiling * network.program)

    @property
    def peak_bytes(self) -> float:
        """Peak memory in bytes."""
        network = self.network
        numbers = self.copies * network.num_weights + self.matrices * network.kernel_rows**2 + self.numbers
        return BYTES * (numbers + self.views * (network.num_views if self.views else 0)) + self.num_bytes


# (spec, key, most) → the counts of every network of a point; with ``most`` all steps and products that are allowed.
CountsOf = Callable[..., Sequence[Counts]]


def typical_steps(max_steps: int, most: bool, typical: int = 1000) -> int:
    """Steps until a training converges, or with ``most`` all that are allowed."""
    return max_steps if most else min(max_steps, typical)


@functools.lru_cache(maxsize=256)
def _shapes(spec: SweepSpec) -> DatasetShapes:
    return dataset_shapes(spec.dataset.name, **spec.data_options())


@functools.lru_cache(maxsize=2048)
def _counted(shapes: DatasetShapes, architecture: ArchitectureSpec, width: int, copies: int) -> Counted:
    layers = layer_sizes(architecture, width, shapes.input_shape, shapes.num_outputs)
    return Counted(layers * copies, shapes.num_samples, shapes.num_outputs, shapes.num_test)


def total_work(counts: Sequence[Counts]) -> Work:
    """The work of all networks of a point."""
    return sum((each.work for each in counts), Work())


def peak_bytes(counts: Sequence[Counts]) -> float:
    """Return the peak memory of the largest network of a point, in bytes."""
    return max((each.peak_bytes for each in counts), default=math.nan)


def compiling_bytes(seconds: float, counts: Sequence[Counts]) -> float:
    """Bytes that compiling takes, from its seconds for all points and the second derivatives of this one."""
    derives = any(each.programs.get(kind) for each in counts for kind in DERIVATIVES)
    return COMPILING_BYTES + SECOND_BYTES * min(seconds, MAX_COMPILING_S) + DERIVATIVE_BYTES * derives


MAX_KEPT = 400  # most recent points
PRIOR = 1.0  # weight of the shipped constants, in points
SMALLEST_S = 0.2  # shorter points measure the clock rather than the machine
_lock = threading.Lock()
_finished: collections.deque[tuple[Work, float]] = collections.deque(maxlen=MAX_KEPT)
_here = SHIPPED


def machine() -> Machine:
    """Speeds of this machine: the shipped ones until :func:`learn` receives finished points."""
    return _here


def learn(points: Iterable[tuple[Work, float]]) -> None:
    """Learn from finished points: their work and their seconds."""
    global _here
    with _lock:
        _finished.extend((work, seconds) for work, seconds in points if seconds >= SMALLEST_S)
        _here = fitted(list(_finished))


def fitted(points: list[tuple[Work, float]], prior: Machine = SHIPPED, weight: float = PRIOR) -> Machine:
    """The machine on which works w took t seconds, near ``prior``, which counts as much as ``weight`` points."""
    if not points:
        return prior
    start = np.array(prior)
    counts = np.array([work for work, _ in points]) * start
    return Machine(*(start * nonnegative_fit(counts, np.array([seconds for _, seconds in points]), weight)).tolist())


def nonnegative_fit(counts: np.ndarray, seconds: np.ndarray, weight: float) -> np.ndarray:
    """The constants c ≥ 0, near 1, by which counts·c are the seconds, by one least-squares problem in relative errors.

    A point of t seconds that takes ŝ by the expected constants weighs 1/√(t ŝ), so that half and twice the time count
    alike. At last all constants are scaled so that the median of t / counts·c comes nearer to 1.

    Args:
        counts: (points, constants), in units in which the expected constants are 1.
        seconds: (points,).
        weight: of the expected constants, in points.
    """
    from scipy.optimize import nnls  # slow to import, and needed after the first finished point only

    each, pull = 1 / np.sqrt(seconds * np.maximum(counts.sum(axis=1), 1e-9)), np.sqrt(weight) * np.eye(counts.shape[1])
    scale = nnls(np.vstack([counts * each[:, None], pull]), np.concatenate([seconds * each, pull.sum(axis=1)]))[0]
    median = float(np.median(np.log(seconds / np.maximum(counts @ scale, 1e-9))))
    return np.asarray(scale * math.exp(median * len(seconds) / (len(seconds) + weight)))
