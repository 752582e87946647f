"""Preset names by experiment, for type checkers; other names give the result's base class."""

from typing import Literal

KernelChangePreset = Literal[
    "liu-fig1-left",
    "liu-fig1-right",
    "liu-fig1-wide",
    "liu-fig2",
    "liu-resnet",
    "liu-cnn",
    "liu-mixed",
    "kernel-velocity",
    "why-one-over-m",
    "kernel-convergence",
]
ArchitecturesPreset = Literal[
    "bottleneck",
    "kernel-convergence-pair",
    "convolution",
    "transformer-width",
    "adapter-rank-change",
    "adapter-width-change",
]
HessianPreset = Literal[
    "liu-table1",
    "liu-shallow",
    "liu-theorem31",
    "liu-theorem41",
    "liu-ball",
    "liu-nonlinear-output",
    "zhu-vector-output",
    "relu-and-tanh",
    "liu-parameterization",
    "attention-heads",
    "attention-head-dim",
    "attention-length",
    "adapter-rank",
    "adapter-width",
    "assembly",
]
DynamicsPreset = Literal[
    "liu-true-and-linearized",
    "curves-in-one-dimension",
    "beyond-gradient-descent",
]
OptimizationPreset = Literal["liu-section5",]
LazyPreset = Literal[
    "richness-dial",
    "richness-deep",
    "richness-anew",
    "liu-lazy",
    "liu-distance",
]
DepthWidthPreset = Literal["depth-width",]
DAGPreset = Literal[
    "zhu-fig2",
    "zhu-preactivations",
    "zhu-bottleneck-neurons",
    "zhu-skip",
    "zhu-shared",
    "zhu-unequal",
    "zhu-nonlinear-output",
    "zhu-pl",
]
EarlyTimePreset = Literal[
    "hu-fig1",
    "hu-fig2",
    "hu-fig3",
    "hu-fig3-cnn",
    "hu-fig4",
    "hu-fig4-fashion",
    "hu-fig4-cifar",
    "hu-fig4-cnn",
    "hu-fig4-cifar-cnn",
    "hu-fig5",
    "hu-theorem32",
    "hu-theorem35",
    "hu-prop41",
    "hu-departure",
]
LearningRatePreset = Literal[
    "catapult-map",
    "catapult-anew",
    "catapult-run",
    "catapult-one-sample",
]
HorizonPreset = Literal[
    "horizon",
    "horizon-cross-entropy",
    "horizon-rate",
    "horizon-weight-decay",
]
GeneralizationPreset = Literal[
    "price-of-linearity",
    "no-price-on-digits",
    "learning-curves",
    "after-kernel",
]
