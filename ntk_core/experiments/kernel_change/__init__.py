"""Kernel change in training against width."""

from ntk_core.experiments.kernel_change.result import KernelChangePoint, KernelChangeResult, kernel_change_summary
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec, counts
from ntk_core.runs import Experiment

EXPERIMENT = Experiment(
    KernelChangeSpec, KernelChangePoint, KernelChangeResult, counts, kernel_change_summary, ("liu", "zhu")
)
