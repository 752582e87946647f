"""What networks learn first."""

from ntk_core.experiments.early_time.costs import counts
from ntk_core.experiments.early_time.result import EarlyPoint, EarlyTimeResult
from ntk_core.experiments.early_time.spec import EarlyTimeSpec
from ntk_core.experiments.early_time.summary import early_summary
from ntk_core.runs import Experiment

EXPERIMENT = Experiment(EarlyTimeSpec, EarlyPoint, EarlyTimeResult, counts, early_summary, ("hu",))
