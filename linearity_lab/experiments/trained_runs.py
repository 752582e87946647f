"""All runs of a point of a sweep of trained networks. Starts JAX."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TypeVar

from linearity_lab.data import Dataset
from linearity_lab.experiments.trained_sweep import TrainedSweep
from linearity_lab.networks.build import build_network
from ntk_core.progress import Progress

Run = TypeVar("Run")


def every_run(
    spec: TrainedSweep,
    run: Callable[..., Run],
    data: Dataset,
    key: str,
    progress: Progress,
    *lines: Sequence[object],
) -> dict[str, object]:
    """Return the fields of a :class:`TrainedPoint`.

    Calls ``run(spec, data, key, *line, seed, progress)`` for every line and seed.
    """
    named = spec.parts_of(key)
    plan = list(itertools.product(*lines, spec.seeds))
    runs = []
    for index, line_and_seed in enumerate(plan):
        runs.append(run(spec, data, key, *line_and_seed, progress.part(index, len(plan))))
    net = build_network(spec.architecture, named["width"], data.num_outputs, "linear")
    return {
        **named,
        "num_params": net.num_params(data.input_shape, only_trained=True),
        "runs": tuple(runs),
    }
