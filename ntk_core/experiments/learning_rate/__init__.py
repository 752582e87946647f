"""Where linearity ends: linear, quadratic and true models at learning rates below and above the stable one."""

from ntk_core.experiments.learning_rate.result import LearningRateResult, RatePoint, learning_rate_summary
from ntk_core.experiments.learning_rate.spec import LearningRateSpec, counts
from ntk_core.runs import Experiment

EXPERIMENT = Experiment(LearningRateSpec, RatePoint, LearningRateResult, counts, learning_rate_summary)
