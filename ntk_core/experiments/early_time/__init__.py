"""What networks learn first."""

from ntk_core.experiments.early_time.result import EarlyPoint, EarlyTimeResult, early_summary
from ntk_core.experiments.early_time.spec import EarlyTimeSpec, counts
from ntk_core.runs import Experiment

EXPERIMENT = Experiment(EarlyTimeSpec, EarlyPoint, EarlyTimeResult, counts, early_summary, ("hu",))
