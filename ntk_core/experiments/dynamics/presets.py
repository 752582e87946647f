"""Networks beside their linear models: figures of our own on claims of the papers."""

from __future__ import annotations

from ntk_core.data.spec import DatasetSpec
from ntk_core.dynamics.spec import TrainingSpec
from ntk_core.experiments.dynamics.spec import DynamicsSpec
from ntk_core.networks.spec import ArchitectureSpec
from ntk_core.runs import Preset, Spec

_CHOICES = "Name, data, widths, rates, threshold, steps and number of runs are our choice."
_TANH = ArchitectureSpec(activation="tanh")
_CURVE = {
    "dataset": DatasetSpec(name="sine", num_samples=10, noise=0),
    "architecture": _TANH,
    "outputs": ("linear",),
    "num_test": 31,
    "training": TrainingSpec(max_steps=20_000, loss_threshold=0.001, num_records=16),
}
_METHODS = (
    "gradient-descent",
    "large-rate",
    "beyond-stable",
    "sgd",
    "momentum",
    "adam",
)

PRESETS: tuple[Preset[Spec], ...] = (
    Preset(
        "liu-true-and-linearized",
        "True and linearized outputs",
        "With a linear output the wide network and its linear model move as one; with a swish output they drift apart "
        "at every width.",
        "Liu, Zhu & Belkin 2020, §2 and §4",
        _CHOICES,
        DynamicsSpec(widths=(30, 300, 3000)),
        DynamicsSpec(widths=(30, 300, 3000, 30_000), num_seeds=5),
    ),
    Preset(
        "curves-in-one-dimension",
        "Curves in one dimension",
        "A wide network bends like its linear model, point for point, to the end of training; a narrow one finds "
        "another curve.",
        "After Lee et al. 2019, Fig. 1",
        _CHOICES,
        DynamicsSpec(widths=(30, 300, 3000), num_seeds=1, **_CURVE),
        DynamicsSpec(widths=(30, 300, 3000, 30_000), num_seeds=5, **_CURVE),
    ),
    Preset(
        "beyond-gradient-descent",
        "SGD, momentum, Adam, large rates",
        "Whatever the method, the wide network follows its linear model under the same method, as long as that model "
        "is stable. Adam moves farther than gradient descent, yet its kernel hardly moves; beyond the stable rate the "
        "network survives, but its weights leave the ball and its kernel moves.",
        "Liu, Zhu & Belkin 2020, §2: the ball B(w₀, R)",
        _CHOICES
        + " Adam's rate is the one whose first step moves no output by more than 0.05; that of the others is a quarter "
        "of the stable rate unless their name says so.",
        DynamicsSpec(
            widths=(30, 300, 3000),
            outputs=("linear",),
            methods=_METHODS,
            num_seeds=1,
            num_followed=2,
            infinite_width=False,
            training=TrainingSpec(max_steps=2000, loss_threshold=0.005, num_records=20),
        ),
        DynamicsSpec(
            widths=(30, 300, 3000, 30_000),
            outputs=("linear",),
            methods=_METHODS,
            num_seeds=5,
            num_followed=2,
            infinite_width=False,
            training=TrainingSpec(max_steps=10_000, loss_threshold=0.003),
        ),
    ),
)
