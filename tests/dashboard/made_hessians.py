"""Hessian results made by hand."""

from __future__ import annotations

from ntk_core.experiments.hessian import (
    BallBound,
    HessianBlocks,
    HessianPoint,
    HessianResult,
    HessianRun,
    LayerBound,
    NonlinearParts,
    TrainedChange,
)
from ntk_core.experiments.hessian.network import TEMPLATES, templates
from ntk_core.experiments.hessian.spec import HessianSpec
from tests.dashboard.made_results import filled, make_points, make_result

EXPONENTS = {"fully-connected": -0.5, "fully-connected-swish": 0.0, "convnet": -0.4}


def make_run(line: str, width: int, seed: int, *, converged: bool = True, outcome: str = "converged") -> HessianRun:
    """A run whose norm follows a power law, with everything that such a network has."""
    norm = width ** EXPONENTS[line] * (1 + 0.05 * seed)
    bound = LayerBound(bound=8 * norm, q_inf=norm, q_l=0.9, q_221=1.8, b_max=(norm / 2, norm), b_norm=(1.0, 0.9))
    parts = NonlinearParts(gradient_part=norm, linear_part=norm / 4, lower=3 * norm / 4)
    balls = tuple(
        filled(
            BallBound,
            radius=radius,
            hessian=norm * (1 + radius),
            hessian_random=norm * (1 + radius / 4),
            kernel_change=radius * norm,
            kernel_change_random=radius * norm / 4,
        )
        for radius in (0.5, 1.0, 2.0)
    )
    trained = TrainedChange(
        sup_change=norm / 2, outcome=outcome, learning_rate=0.5, num_steps=20, final_loss=0.1 if seed else 0.2
    )
    return filled(
        HessianRun,
        seed=seed,
        norm=norm,
        converged=converged,
        kernel=0.7,
        bound=bound if line == "fully-connected" else None,
        parts=parts if line == "fully-connected-swish" else None,
        balls=balls if seed == 0 and line == "fully-connected" else (),
        trained=trained if seed < 2 else None,
    )


def make_point(line: str, width: int, *, seeds: int = 3, **trouble) -> HessianPoint:
    """A point of one network; a width of 100 means 8 channels."""
    blocks = HessianBlocks(
        seed=0, layers=("hidden1", "output"), norms=((0.3, 0.2), (0.2, 0.0)), converged=line == "fully-connected"
    )
    network = TEMPLATES[line]
    wide = network.at(width)[1]
    return HessianPoint(
        width=width,
        line=line,
        network=network,
        wide_width=wide,
        min_width=wide,
        num_params=10 * wide,
        runs=tuple(make_run(line, wide, seed, **trouble) for seed in range(seeds)),
        blocks=blocks if width == 1000 and line == "fully-connected" else None,
    )


def make_hessian_points(lines=("fully-connected", "fully-connected-swish", "convnet"), widths=(100, 200, 500, 1000)):
    """One point for each width and network, as a run gives them."""
    return tuple(make_point(line, width) for width in widths for line in lines)


def make_hessian_result(points, **settings) -> HessianResult:
    spec = HessianSpec(
        networks=templates(*dict.fromkeys(point.line for point in points)),
        widths=tuple({point.width for point in points}),
        **settings,
    )
    base = make_result(make_points())
    return HessianResult(spec=spec, points=points, provenance=base.provenance, status="completed", runtime_s=12.0)
