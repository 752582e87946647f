"""A custom model against its width: computed by the command ``own`` only, stored and shown like any run."""

from ntk_core.experiments.own_model.result import OwnModelPoint, OwnModelResult, own_model_summary
from ntk_core.experiments.own_model.spec import OwnModelSpec, counts
from ntk_core.runs import Experiment

EXPERIMENT = Experiment(OwnModelSpec, OwnModelPoint, OwnModelResult, counts, own_model_summary)
