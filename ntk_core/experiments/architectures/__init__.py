"""Kernel change of several networks that differ in nothing but the architecture."""

from ntk_core.experiments.architectures.result import ArchitecturesPoint, ArchitecturesResult, architectures_summary
from ntk_core.experiments.architectures.spec import ArchitecturesSpec, counts
from ntk_core.runs import Experiment

EXPERIMENT = Experiment(
    ArchitecturesSpec, ArchitecturesPoint, ArchitecturesResult, counts, architectures_summary, ("liu", "zhu")
)
