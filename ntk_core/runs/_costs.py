"""What training costs, by counting: orders of magnitude on two cores, whose rates were measured once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ntk_core.data import dataset_shapes
from ntk_core.networks.sizes import LayerSize, layer_sizes, num_features
from ntk_core.networks.spec import ArchitectureSpec

# Products of the sizes that occur here run at about this rate, compiling one width takes about this long.
FLOPS_PER_SECOND = 6e10
COMPILE_SECONDS = 1.2
STEP_OVERHEAD_SECONDS = 2e-5
TYPICAL_STEPS = 1000
BYTES = 4


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
    def step_seconds(self) -> float:
        """One step of training: a forward and a backward pass of all samples."""
        return 6 * self.num_samples * self.multiplications / FLOPS_PER_SECOND + STEP_OVERHEAD_SECONDS

    @property
    def kernel_seconds(self) -> float:
        """One tangent kernel."""
        operations = sum(layer.kernel_operations(self.num_samples, self.num_outputs) for layer in self.layers)
        return 2 * operations / FLOPS_PER_SECOND

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
