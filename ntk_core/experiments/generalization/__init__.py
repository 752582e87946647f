"""What linearity costs: generalization of network and kernel."""

from ntk_core.experiments.generalization.result import GeneralizationPoint, GeneralizationResult, generalization_summary
from ntk_core.experiments.generalization.spec import GeneralizationSpec, counts
from ntk_core.runs import Experiment

EXPERIMENT = Experiment(GeneralizationSpec, GeneralizationPoint, GeneralizationResult, counts, generalization_summary)
