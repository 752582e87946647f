"""Runs of a model loaded from a user's file; importing this starts JAX."""

from pathlib import Path

import jax.numpy as jnp
from jax import Array
from jaxtyping import PyTree

from linearity_lab.data import Dataset
from linearity_lab.experiments.own_model.point import (
    OwnLayer,
    OwnModelPoint,
    OwnModelRun,
    OwnModelSpec,
)
from linearity_lab.model_files import their_errors
from linearity_lab.runs import Computation, load_data
from linearity_lab.settings.training import check_targets
from ntk_core.dynamics.choices import LOSSES
from ntk_core.errors import InvalidInput, RowsMix
from ntk_core.linearity import OwnModel, checked_own_model, runs_at
from ntk_core.networks.keys import initial_key
from ntk_core.progress import Progress
from ntk_core.traced import Apply, layers_of


def computed_by(model: OwnModel, path: Path) -> Computation:
    """Computation of an :class:`OwnModelSpec`'s points, which needs the loaded model."""

    def compute(spec: OwnModelSpec, data: Dataset, key: str, progress: Progress) -> OwnModelPoint:
        width = spec.value_of(key)
        progress.report(0.0, f"width {width:,}: layers")
        if not data.class_names:
            check_targets(spec.loss, has_classes=False)
        targets = LOSSES[spec.loss].targets_of(data.y)
        with their_errors(path):
            made = made_at(model, spec, data, width)
            found = None
            try:  # only some programs can be traced
                found = layers_of(*made)
            except RowsMix:
                raise
            except InvalidInput:
                pass
            training = {
                "loss": spec.loss,
                "num_inputs": spec.num_inputs,
                **spec.training.model_dump(),
            }
            of_runs = progress.named(f"width {width:,}")
            runs = runs_at(
                model, width, data.x, targets, seeds=spec.seeds, progress=of_runs, **training
            )
        return OwnModelPoint.read_off(
            found,
            width=width,
            num_params=runs[0].num_params,
            layers=tuple(OwnLayer.read_off(layer) for layer in found.layers) if found else (),
            difference=found.check.kernel if found and found.check else None,
            runs=tuple(OwnModelRun.read_off(run) for run in runs),
        )

    return Computation(compute, load_data)


def made_at(
    model: OwnModel, spec: OwnModelSpec, data: Dataset, width: int
) -> tuple[Apply, PyTree, Array]:
    """Return (apply, params, inputs) of the first seed; only shapes of apply are computed."""
    x = jnp.asarray(data.x)
    return *checked_own_model(model, width, initial_key(spec.seed, width), x, data.num_outputs), x
