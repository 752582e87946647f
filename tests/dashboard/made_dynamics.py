"""Results of networks beside their linear models, made by hand."""

from __future__ import annotations

import math

from ntk_core.data.spec import DatasetSpec
from ntk_core.experiments.dynamics import DynamicsPoint, DynamicsResult, DynamicsRun, DynamicsSpec, ModelPath
from tests.dashboard.made_results import make_points, make_result

STEPS = (0, 1, 10, 100)


def make_path(outputs, outcome="converged", last_finite_step=100, keep=True) -> ModelPath:
    """Outputs are one block of rows a record."""
    return ModelPath(
        outcome=outcome,
        last_finite_step=last_finite_step,
        loss=(1.0, 0.5, 0.1, 0.01),
        test_loss=(1.0, 0.6, 0.2, 0.1),
        distance=(0.0, 0.5, 2.0, 5.0),
        outputs=outputs if keep else (),
        test_outputs=outputs if keep else (),
    )


def make_dynamics_run(output, method, seed, gap, *, num_outputs=3, diverged=False, infinite=True) -> DynamicsRun:
    """The network stays ``gap`` · step / 100 away from its linear model."""

    def blocks(shift):
        return tuple(
            tuple(
                tuple(row + component / 10 + shift * step / 100 for component in range(num_outputs)) for row in (0, 1)
            )
            for step in STEPS
        )

    difference = tuple(gap**2 * step / 100 for step in STEPS)
    return DynamicsRun(
        output=output,
        method=method,
        seed=seed,
        learning_rate=3.0 if diverged else 0.5,
        stable_rate=None if method == "adam" else 2.0,
        steps=STEPS,
        network=make_path(blocks(gap), keep=seed == 0),
        linearized=make_path(blocks(0), "diverged" if diverged else "converged", 37 if diverged else 100, seed == 0),
        infinite=make_path(blocks(gap / 2), keep=seed == 0) if infinite and output == "linear" else None,
        largest_distance=(0.0, 0.01, 0.02, 0.05),
        change=tuple(gap * step / 100 for step in STEPS),
        smallest=(0.1, 0.1, 0.0, 0.2),
        largest=(10.0, 10.0, 10.0, 20.0),
        layer_change={"hidden1": (0.0, 0.1, 0.2, 0.3), "output": (0.0, 0.0, 0.0, 0.1)},
        difference=(*difference[:3], math.nan) if diverged else difference,
        test_difference=difference,
    )


def make_dynamics_points(widths=(30, 300), methods=("gradient-descent",), curve=False, seeds=2):
    outputs, num_outputs = (("linear",), 1) if curve else (("linear", "swish"), 3)
    column = ((-1.0,), (1.0,)) if curve else ()
    targets = ((0.0,), (1.0,)) if curve else ((0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
    return tuple(
        DynamicsPoint(
            width=width,
            num_params=14 * width,
            x=column,
            y=targets,
            x_test=column,
            y_test=targets,
            runs=tuple(
                make_dynamics_run(
                    output,
                    method,
                    seed,
                    (2 / width**0.5 if output == "linear" else 0.8) * (1 + seed / 10),
                    num_outputs=num_outputs,
                    diverged=method == "beyond-stable",
                )
                for output in outputs
                for method in methods
                for seed in range(seeds)
            ),
        )
        for width in widths
    )


def make_dynamics_result(**settings) -> DynamicsResult:
    points = make_dynamics_points(**settings)
    curve = settings.get("curve", False)
    spec = DynamicsSpec(
        widths=tuple(point.width for point in points),
        outputs=("linear",) if curve else ("linear", "swish"),
        methods=settings.get("methods", ("gradient-descent",)),
        dataset=DatasetSpec(name="sine" if curve else "gaussian-mixture"),
    )
    provenance = make_result(make_points()).provenance
    return DynamicsResult(spec=spec, points=points, provenance=provenance, status="completed", runtime_s=12.0)
