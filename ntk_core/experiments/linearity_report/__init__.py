"""Two checkpoints of a model of your own: reported by the command ``report`` alone, kept and shown like any run."""

from ntk_core.experiments.linearity_report.result import LinearityReportPoint, LinearityReportResult, report_summary
from ntk_core.experiments.linearity_report.spec import LinearityReportSpec, counts
from ntk_core.runs import Experiment

EXPERIMENT = Experiment(LinearityReportSpec, LinearityReportPoint, LinearityReportResult, counts, report_summary)
