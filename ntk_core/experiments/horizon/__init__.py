"""How long linearity lasts."""

from ntk_core.experiments.horizon.result import HorizonPoint, HorizonResult, horizon_summary
from ntk_core.experiments.horizon.spec import HorizonSpec, counts
from ntk_core.runs import Experiment

EXPERIMENT = Experiment(HorizonSpec, HorizonPoint, HorizonResult, counts, horizon_summary)
