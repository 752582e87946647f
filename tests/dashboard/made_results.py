"""Synthetic results."""

from linearity_lab.experiments.kernel_change.point import (
    KernelChangePoint,
    KernelChangeResult,
    KernelChangeRun,
)
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.runs import Provenance


def make_run(
    output: str, seed: int, change: float, outcome: str = "converged", learning_rate: float = 0.5
) -> KernelChangeRun:
    """A run that ends at step 100 with this kernel change."""
    return KernelChangeRun(
        output=output,
        seed=seed,
        learning_rate=learning_rate,
        outcome=outcome,
        steps=(0, 1, 10, 100),
        change=(0.0, change / 4, change / 2, change),
        loss=(1.0, 0.5, 0.1, 0.01),
        followed=((0.0, 0.2), (0.1, -0.1), (0.6, -0.5), (1.0, -0.9)),
    )


def make_points(
    widths=(30, 100, 1000), seeds=3, exponents=None, spread=0.1, first_seed=0
) -> tuple[KernelChangePoint, ...]:
    """Points that follow a power law for each output, with seeds around it."""
    exponents = exponents or {"linear": -1.0, "softmax": 0.0}
    return tuple(
        KernelChangePoint(
            width=width,
            num_params=13 * width,
            runs=tuple(
                make_run(
                    output,
                    first_seed + seed,
                    width**exponent * (1 + spread * (seed - (seeds - 1) / 2)),
                )
                for output, exponent in exponents.items()
                for seed in range(seeds)
            ),
        )
        for width in widths
    )


def make_result(points: tuple[KernelChangePoint, ...], **settings) -> KernelChangeResult:
    spec = KernelChangeSpec(
        widths=tuple(point.width for point in points), outputs=("linear", "softmax"), **settings
    )
    provenance = Provenance(
        versions={"linearity-lab": "0.1.0", "jax": "0.10.2"},
        platform="Python 3.11 on Linux",
        device="cpu: cpu",
        dtype="float32",
        started_at="2026-01-02T03:04:05+00:00",
        data_sha256="ab" * 32,
    )
    return KernelChangeResult(
        spec=spec, points=points, provenance=provenance, status="completed", runtime_s=12.0
    )
