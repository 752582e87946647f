"""Networks whose comparison shows what makes a kernel stop moving, and what keeps it moving."""

from __future__ import annotations

from ntk_core.experiments.architectures.spec import ArchitecturesSpec
from ntk_core.experiments.kernel_change.presets import KERNEL_CONVERGENCE
from ntk_core.networks.spec import ArchitectureSpec
from ntk_core.runs import Preset, Spec

_CHOICES = (
    "Data (MNIST averaged to 7 × 7, classes 0, 1 and 2), depths, widths, loss threshold and number of runs are our "
    "choice."
)
_BOTTLENECK = ArchitecturesSpec()
_INFINITE_WIDTH = ArchitecturesSpec(
    architectures=(ArchitectureSpec(depth=1), ArchitectureSpec(kind="resnet", depth=2)), widths=(30, 100, 300, 1000)
)
_CONVOLUTION = ArchitecturesSpec(
    architectures=(ArchitectureSpec(depth=2), ArchitectureSpec(kind="convnet", depth=2)),
    widths=(8, 16, 32),
    num_seeds=3,
)

PRESETS: tuple[Preset[Spec], ...] = (
    Preset(
        "bottleneck",
        "With and without a bottleneck",
        "One narrow layer keeps the kernel moving, however wide the other layers are.",
        "Liu, Zhu & Belkin 2020, §4",
        _CHOICES,
        _BOTTLENECK,
        _BOTTLENECK,
    ),
    Preset(
        "kernel-convergence-pair",
        "Kernel at w₀ against infinite width",
        KERNEL_CONVERGENCE.claim,
        KERNEL_CONVERGENCE.source,
        _CHOICES,
        _INFINITE_WIDTH,
        _INFINITE_WIDTH,
    ),
    Preset(
        "convolution",
        "Dense against shared weights",
        "With shared weights the number of channels is the width: the kernel stops moving as it grows.",
        "Liu, Zhu & Belkin 2020, App. G.1; Zhu, Liu & Belkin 2022, App. E",
        _CHOICES,
        _CONVOLUTION,
        _CONVOLUTION,
    ),
)
