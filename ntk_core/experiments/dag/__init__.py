"""Directed acyclic graphs against their in-degrees."""

from ntk_core.experiments.dag.result import DAGPoint, DAGResult, dag_summary
from ntk_core.experiments.dag.spec import DAGSpec, counts
from ntk_core.runs import Experiment

EXPERIMENT = Experiment(DAGSpec, DAGPoint, DAGResult, counts, dag_summary, ("liu", "zhu"))
