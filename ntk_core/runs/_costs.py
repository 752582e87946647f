"""What training costs, by counting; how long a machine takes for it is said by its :class:`Machine`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ntk_core.data import dataset_shapes
from ntk_core.networks.sizes import LayerSize, layer_sizes, num_features
from ntk_core.networks.spec import ArchitectureSpec

TYPICAL_STEPS = 1000
BYTES = 4
HESSIAN_BYTES = 1.5e8  # taken while products of a Hessian are compiled, derivatives twice over; measured
# Compiling, in programs of a network with one hidden layer: for any, for each layer, and for each convolution besides.
PROGRAM, PROGRAM_PER_LAYER, PROGRAM_PER_CONVOLUTION = 0.6, 0.2, 0.8


@dataclass(frozen=True)
class Work:
    """What is to be done, counted.

    Attributes:
        operations: floating-point operations.
        traffic: bytes of weights, features and images that are read or written.
        calls: steps, products and records, each of which costs something however small it is.
        programs: programs to compile, in those of one step of training of a small network.
    """

    operations: float = 0.0
    traffic: float = 0.0
    calls: float = 0.0
    programs: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.operations + other.operations,
            self.traffic + other.traffic,
            self.calls + other.calls,
            self.programs + other.programs,
        )

    def __rmul__(self, times: float) -> Work:
        return Work(times * self.operations, times * self.traffic, times * self.calls, times * self.programs)


@dataclass(frozen=True)
class Machine:
    """Seconds that one of each takes, named as in :class:`Work`."""

    operations: float
    traffic: float
    calls: float
    programs: float

    def seconds(self, work: Work) -> float:
        """What is foreseen for ``work``."""
        return math.fsum((
            self.operations * work.operations,
            self.traffic * work.traffic,
            self.calls * work.calls,
            self.programs * work.programs,
        ))  # fmt: skip


# Two cores of a cloud machine (python -m benchmarks --only estimates). A program takes 1.7 s on a quiet one (the cold
# sweep of benchmarks/results/sweep.json less the warm one) and up to 3 s of processor time where others keep it busy.
SHIPPED = Machine(operations=1.5e-11, traffic=5e-11, calls=2.5e-5, programs=1.4)


@dataclass(frozen=True)
class Counted:
    """A network and the data that it is trained on, counted."""

    layers: Sequence[LayerSize]
    num_samples: int
    num_outputs: int
    num_test: int = 0

    @classmethod
    def of(cls, spec: Any, architecture: ArchitectureSpec, width: int, copies: int = 1) -> Counted:
        """Copies of one network of this width on the data set of ``spec``."""
        shapes = dataset_shapes(spec.dataset.name, **spec.data_options())
        layers = layer_sizes(architecture, width, shapes.input_shape, shapes.num_outputs)
        return cls(layers * copies, shapes.num_samples, shapes.num_outputs, shapes.num_test)

    @property
    def multiplications(self) -> int:
        """Of one forward pass of one sample."""
        return sum(layer.multiplications for layer in self.layers)

    @property
    def step(self) -> Work:
        """One step of training: a forward and a backward pass of all samples, and new weights."""
        patches = sum(layer.positions * layer.fan_in for layer in self.layers if layer.convolution)
        seen = 6 * num_features(self.layers) + 4 * patches
        numbers = 3 * self.num_weights + self.num_samples * seen
        return Work(6 * self.num_samples * self.multiplications, BYTES * numbers, 1)

    @property
    def num_seen(self) -> int:
        """Inputs, pre-activations, activations and their gradients of every layer for every sample, in a step."""
        inputs = sum(layer.positions * layer.fan_in for layer in self.layers)
        return self.num_samples * (inputs + 4 * num_features(self.layers))

    @property
    def program(self) -> Work:
        """One program that goes through the whole network, to be compiled."""
        convolutions = sum(layer.convolution for layer in self.layers)
        return Work(programs=PROGRAM + PROGRAM_PER_LAYER * len(self.layers) + PROGRAM_PER_CONVOLUTION * convolutions)

    @property
    def kernel(self) -> Work:
        """One tangent kernel."""
        operations = sum(layer.kernel_operations(self.num_samples, self.num_outputs) for layer in self.layers)
        return Work(2 * operations, BYTES * (self.num_views + 4 * self.kernel_rows**2), 1)

    @property
    def kernel_rows(self) -> int:
        """n C."""
        return self.num_samples * self.num_outputs

    @property
    def num_weights(self) -> int:
        """Parameters of all layers."""
        return sum(layer.num_params for layer in self.layers)

    @property
    def num_views(self) -> int:
        """Inputs, pre-activations and C cotangents of every layer for every sample, each once more as a temporary."""
        inputs = sum(layer.positions * layer.fan_in for layer in self.layers)
        return (self.num_samples + self.num_test) * (inputs + (2 * self.num_outputs + 1) * num_features(self.layers))
