"""Depth and width: randomness of the tangent kernel at w₀, and its change in training."""

from ntk_core.experiments.depth_width.result import DepthWidthPoint, DepthWidthResult, depth_width_summary
from ntk_core.experiments.depth_width.spec import DepthWidthSpec, counts
from ntk_core.runs import Experiment

EXPERIMENT = Experiment(DepthWidthSpec, DepthWidthPoint, DepthWidthResult, counts, depth_width_summary)
