"""Results of early time made by hand."""

from __future__ import annotations

from ntk_core.experiments.early_time import (
    Constants,
    EarlyPoint,
    EarlyRun,
    EarlyTimeResult,
    KernelComparison,
    ModelCurve,
)
from ntk_core.experiments.early_time.spec import EarlyTimeSpec
from tests.dashboard.made_results import filled, make_points, make_result

STEPS = (0, 1, 10, 100, 1000)


def make_curve(*losses: float, outputs: bool) -> ModelCurve:
    singles = tuple((0.1 * i, -0.2 * i) for i in range(len(losses))) if outputs else ()
    parts = tuple(loss / 2 for loss in losses)
    return ModelCurve(train_loss=losses, test_loss=losses, span_loss=parts, complement_loss=parts, outputs=singles)


def make_early_run(activation: str = "erf", seed: int = 0, distance: float = 0.02, departs: bool = True) -> EarlyRun:
    """A run whose network, if it departs, is better than its linear model at step 1000."""
    outputs = seed == 0
    return EarlyRun(
        activation=activation,
        seed=seed,
        learning_rate=0.5,
        outcome="completed",
        steps=STEPS,
        network=make_curve(0.5, 0.4, 0.2, 0.11, 0.05 if departs else 0.1, outputs=outputs),
        linear=make_curve(0.5, 0.4, 0.2, 0.11, 0.1, outputs=outputs),
        naive=make_curve(0.5, 0.45, 0.3, 0.25, 0.25, outputs=outputs),
        distance=(0, distance / 4, distance / 2, distance, 4 * distance),
        naive_distance=(0, distance, distance, distance, distance),
        linear_power=(0, 0.1, 0.5, 0.8, 0.9),
        target_power=1.0,
        optimal_train_loss=0.1,
        optimal_test_loss=0.1,
        targets=(1.0, -1.0) if outputs else (),
    )


def make_early_point(value: int = 50, swept: str = "input_dim", trained: bool = True, **settings) -> EarlyPoint:
    """A point whose discrepancy decreases as 1/value, spectral distance faster and Frobenius distance slower."""
    runs = [make_early_run(seed=seed, distance=(1 + 0.1 * seed) / value, **settings) for seed in (0, 1)]
    norms = filled(
        KernelComparison,
        activation="erf",
        seed=0,
        difference=value**-1.5,
        naive_difference=value**-1.0,
        frobenius_difference=value**-0.5,
    )
    constants = Constants(zeta=0.65, nu=0.0, theta=(0, 0, 0), inputs=0.92, constant=0.0, norm=(0, 0, 0))
    return EarlyPoint(
        swept=swept,
        width=value if swept == "width" else 256,
        input_dim=value if swept == "input_dim" else 50,
        covariance_ratio=1.0,
        span_dimension=50,
        constants={"erf": constants},
        runs=tuple(runs) if trained else (),
        kernels=() if trained else (norms,),
    )


def make_early_result(spec: EarlyTimeSpec, **settings) -> EarlyTimeResult:
    """A result for every point of a spec."""
    points = tuple(make_early_point(value, spec.swept, **settings) for value in spec.values)
    return EarlyTimeResult(
        spec=spec, points=points, provenance=make_result(make_points()).provenance, status="completed", runtime_s=1.0
    )
