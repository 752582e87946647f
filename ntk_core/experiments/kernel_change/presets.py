"""Figures of Liu, Zhu & Belkin 2020, in the order of the paper."""

from __future__ import annotations

from typing import Any

from ntk_core.data.spec import DatasetSpec
from ntk_core.dynamics.spec import TrainingSpec
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.networks.spec import ArchitectureSpec
from ntk_core.runs import Preset, Spec

_LIU_CHOICES = (
    "The data's law (mixture of Gaussians with centers of norm 2, d, s, n = 60, C = 3), the learning rate, the loss "
    "threshold and the number of runs are our choice; widths and networks are the paper's."
)


_IMAGES: dict[str, Any] = {
    "dataset": DatasetSpec(name="digits", classes=(0, 1, 2), standardize="standard"),
    "outputs": ("linear", "softmax"),
    "training": TrainingSpec(loss_threshold=0.03),
}
_BOTTLENECK = ArchitectureSpec(kind="bottleneck", depth=3, use_bias=False)
_BOTTLENECK_WIDTHS = (3, 5, 10, 50, 100, 500, 1000)
_FIG2: dict[str, Any] = {"swept": "bottleneck_width", "outputs": ("linear",)}

KERNEL_CONVERGENCE: Preset[Spec] = Preset(
    "kernel-convergence",
    "Kernel at initialization against infinite width",
    "The kernel at initialization approaches the deterministic infinite-width kernel, its distance "
    "falling as m^(-1/2).",
    "Jacot, Gabriel & Hongler 2018, Theorem 1",
    _LIU_CHOICES,
    KernelChangeSpec(outputs=("linear",), infinite_width=True, widths=(30, 100, 300, 1000, 3000, 10_000)),
    KernelChangeSpec(outputs=("linear",), infinite_width=True, widths=(30, 100, 1000, 10_000, 100_000)),
)

PRESETS: tuple[Preset[Spec], ...] = (
    Preset(
        "liu-fig1-left",
        "Kernel change against width",
        "With a linear output the tangent kernel stops moving as the width grows; with a softmax or swish output "
        "it keeps moving at every width.",
        "Liu, Zhu & Belkin 2020, Fig. 1 left",
        _LIU_CHOICES,
        KernelChangeSpec(widths=(30, 100, 300, 1000, 3000, 10_000)),
        KernelChangeSpec(widths=(30, 100, 1000, 10_000, 100_000, 1_000_000)),
    ),
    Preset(
        "liu-fig1-right",
        "Kernel change during training",
        "At width 10⁴ the kernel of the linear-output network stays where it was during the whole training, those "
        "of the softmax and swish networks leave at once.",
        "Liu, Zhu & Belkin 2020, Fig. 1 right",
        _LIU_CHOICES,
        KernelChangeSpec(widths=(10_000,)),
        KernelChangeSpec(widths=(10_000,), num_seeds=10),
    ),
    Preset(
        "liu-fig2",
        "Kernel change against bottleneck width",
        "A narrow layer inside a wide network keeps the kernel moving; widening it alone makes ΔK fall, about as "
        "m_b^(-1/2).",
        "Liu, Zhu & Belkin 2020, Fig. 2",
        _LIU_CHOICES
        + " The width of the other layers is 10⁴ in the paper, 1,000 here unless the paper's size is chosen.",
        KernelChangeSpec(architecture=_BOTTLENECK, widths=_BOTTLENECK_WIDTHS, hidden_width=1000, **_FIG2),
        KernelChangeSpec(architecture=_BOTTLENECK, widths=_BOTTLENECK_WIDTHS, hidden_width=10_000, **_FIG2),
    ),
    *(
        Preset(
            name,
            title,
            claim,
            source,
            "Data (MNIST averaged to 7 × 7, standardized, classes 0, 1 and 2, n = 60), depth, rate, threshold, "
            "widths and number of runs are our choice.",
            KernelChangeSpec(architecture=architecture, widths=widths, num_seeds=3, **_IMAGES),
            KernelChangeSpec(architecture=architecture, widths=paper_widths, **_IMAGES),
        )
        for name, title, claim, source, architecture, widths, paper_widths in (
            (
                "liu-resnet",
                "Residual network",
                "Skip connections change nothing: with a linear output the kernel stops moving with the width.",
                "Liu, Zhu & Belkin 2020, App. G.2",
                ArchitectureSpec(kind="resnet", depth=3),
                (30, 100, 300),
                (30, 100, 300, 1000, 3000, 10_000),
            ),
            (
                "liu-cnn",
                "Convolutional network",
                "With shared weights the number of channels is the width: the kernel stops moving as it grows.",
                "Liu, Zhu & Belkin 2020, App. G.1",
                ArchitectureSpec(kind="convnet", depth=2),
                (8, 16, 32, 64),
                (8, 16, 32, 64, 128, 256, 512, 1024),
            ),
            (
                "liu-mixed",
                "Convolution, then dense layers",
                "Layers of different types can be mixed: the kernel stops moving as all of them widen.",
                "Liu, Zhu & Belkin 2020, App. G.3",
                ArchitectureSpec(kind="mixed", depth=2),
                (8, 16, 32, 64),
                (8, 16, 32, 64, 128, 256, 512, 1024),
            ),
        )
    ),
    KERNEL_CONVERGENCE,
)
