"""Linear by width or lazy by scale."""

from ntk_core.experiments.lazy.result import LazyPoint, LazyResult, lazy_summary
from ntk_core.experiments.lazy.spec import LazySpec, counts
from ntk_core.runs import Experiment

EXPERIMENT = Experiment(LazySpec, LazyPoint, LazyResult, counts, lazy_summary)
