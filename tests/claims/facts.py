"""Facts about the gallery that pages and lecture steps rely on, beyond ``claims.toml``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linearity_lab.components.gallery import gallery_result
from ntk_core.experiments.depth_width.random_kernels import MOST_OF_ONE
from ntk_core.experiments.hessian.compute import TOLERANCE
from ntk_core.runs import PRESETS
from ntk_core.settings.grammar import values_of
from tests.claims.measures import (
    INF,
    after_phase,
    fact,
    gained_outside,
    gap_at_first,
    outside_share,
    over_bound,
    ratio,
    share_of_first_half,
    smallest_ratio,
    way_left,
)

LINEAR, NONLINEAR = "fully-connected", "fully-connected-swish"


IMAGES = ("hu-fig3", "hu-fig3-cnn", "hu-fig4", "hu-fig4-fashion")
KERNELS = {"against": "value", "records": "kernels"}
HU = [
    *(
        fact("every", name, lambda run: run.outcome == "completed", 1)
        for name, preset in PRESETS.items()
        if name.startswith("hu-") and values_of(preset.spec)["training.max_steps"]
    ),
    fact("upper end", "hu-fig1", "discrepancy", -INF, -0.4, "value"),
    fact("ratios of ends", "hu-fig1", "discrepancy", 0, 0.6, "value"),
    fact("every", "hu-fig1", after_phase, 1, input_dim=25),
    fact("every", "hu-fig1", ratio("network.test_loss.last", "optimal_test_loss"), 0, 0.9, input_dim=25),
    fact("every", "hu-fig2", smallest_ratio("naive_distance", "distance"), 2),
    fact("every", "hu-fig2", ratio("naive.test_loss.last", "network.test_loss.last"), 1.5),
    fact("every", "hu-fig2", ratio("network.test_loss.last", "linear.test_loss.last"), 0.9, 1.1),
    fact("every", "hu-fig3", after_phase, 1),
    # A linear function of the inputs cannot change the loss outside their span.
    fact("every", "hu-fig3", lambda run: np.ptp(run.linear.complement_loss), 0, 1e-4),
    fact("every", "hu-fig3", lambda run: gained_outside(run, run.linear_phase), -INF, 0.05),
    fact("every", "hu-fig3", lambda run: gained_outside(run, -1), 0.065),
    fact("every", "hu-fig3", lambda run: gained_outside(run, -1) - 1.9 * gained_outside(run, run.linear_phase), 0),
    fact("every", "hu-fig3", lambda run: way_left(run, "train"), 0, 0.2),
    fact("every", "hu-fig3", lambda run: way_left(run, "test"), 0, 0.1),
    *(fact("every", name, outside_share, 0.7) for name in ("hu-fig1", "hu-fig3", "hu-fig3-cnn")),
    *(fact("every", name, lambda run: max(run.relative_error[1 : run.departure + 1]), 0.08, 1.1) for name in IMAGES),
    *(fact("every", name, "loss_gap", 0, 0.05) for name in IMAGES),
    fact("every", "hu-fig3-cnn", "share_at_departure", 0.77, 0.83),
    *(fact("every", name, gap_at_first, 0, 0.1) for name in ("hu-fig3-cnn", "hu-fig4-cifar")),
    *(
        fact("every", name, ratio("linear.test_loss.smallest", "linear.test_loss.first"), 0, 0.8)
        for name in ("hu-fig3-cnn", "hu-fig4-cifar")
    ),
    # Less agreement than in the paper, because patches of digits have unequal norms.
    fact("every", "hu-fig4-cnn", gap_at_first, 0.1, 0.5),
    fact("every", "hu-fig4-cnn", ratio("network.test_loss.last", "network.test_loss.first"), 0, 0.6),
    fact("every", "hu-fig4", "share_at_departure", 0.15, 0.45),
    fact("every", "hu-fig4", smallest_ratio("network.test_loss", "linear.test_loss"), 0.84, 0.88),
    fact("every", "hu-fig4-fashion", "share_at_departure", 0.1, 0.2),
    fact("every", "hu-fig4-fashion", smallest_ratio("network.test_loss", "linear.test_loss"), 0.85, 0.92),
    *(fact("every", name, lambda run: run.share_at(-1), 0.8) for name in ("hu-fig4", "hu-fig4-fashion")),
    fact("every", "hu-fig4-cifar-cnn", "share_at_departure", 0, 0.6),
    fact("every", "hu-fig4-cifar-cnn", lambda run: run.share_at(-1), 0.7),
    fact("every", "hu-fig4-cifar-cnn", ratio("network.train_loss.last", "network.train_loss.first"), 0, 0.1),
    *(
        fact(how, name, "discrepancy", 0, high, "value", activation=activation)
        for name, activation in (("hu-theorem32", "erf"), ("hu-theorem35", "erf"), ("hu-theorem35", "softplus"))
        for how, high in (("worst ratios of neighbors", 1), ("ratios of ends", 0.6), ("every", 0.15))
    ),
    *(fact("worst ratios of neighbors", name, "difference", 0, 1, **KERNELS) for name in ("hu-fig5", "hu-prop41")),
    fact("slopes", "hu-fig5", "difference", -INF, -1, **KERNELS, activation="relu"),
    fact("slopes", "hu-prop41", "difference", -INF, -1, **KERNELS, activation="erf"),
    fact("exponent", "hu-prop41", "frobenius_difference", -1, **KERNELS, activation="erf"),
    *(
        fact(
            "every", "hu-departure", ratio("network.test_loss.last", "linear.test_loss.last"), *bounds, activation=name
        )
        for name, bounds in {"erf": (0.86, 0.96), "tanh": (0.86, 0.96), "relu": (0.99,), "softplus": (0.99,)}.items()
    ),
]

DONE = {"outcome": "converged"}
SQUARES = "liu-true-and-linearized"
BEYOND = {"width": 3000, "output": "linear"}
STABLE = ["gradient-descent", "large-rate", "sgd", "momentum", "adam"]
SECTION_5 = {"output": "leaky_softplus", "rate": 2.0}
TRAINING = [
    fact("exponent", "kernel-velocity", "velocity", -0.3, 0.3, records="at_start", output="swish"),
    fact("exponent", "liu-fig1-wide", "sup_change", -1.2, -0.8, output="linear", width=[10_000, 100_000], **DONE),
    *(
        fact("ratio of means", "liu-fig1-wide", "sup_change", 0.63, 1.58, output=output, width=[100, 100_000], **DONE)
        for output in ("softmax", "swish")
    ),
    fact("ratio of means", "liu-fig1-left", "sup_change", 0, 0.02, output="linear", **DONE),
    *(fact("means", "liu-fig1-left", "sup_change", 0.5, output=output, **DONE) for output in ("softmax", "swish")),
    fact("exponent", "liu-fig2", "sup_change", -0.6, -0.4, output="linear", **DONE),
    fact("means", "liu-fig2", lambda run: run.outcome == "converged", 0.51, 0.99, output="linear", width=3),
    fact("exponent", SQUARES, "sup_difference", -1.25, -0.75, output="linear"),
    fact("slopes", SQUARES, "sup_difference", -1.25, -0.75, output="linear", width=[300, 1000, 3000]),
    fact("means", SQUARES, lambda run: run.sup_difference > 0.01, 0.51, 1, output="swish"),
    *(
        fact("worst ratios of neighbors", "curves-in-one-dimension", of, 0, 1 / 3)
        for of in ("sup_difference", "sup_change")
    ),
    fact("ratios of ends", "curves-in-one-dimension", "sup_difference", 0, 1 / 30, width=[300, 3000]),
    fact("every", "curves-in-one-dimension", "sup_difference", 1e-4, width=30),
    fact("every", "curves-in-one-dimension", "sup_difference", 0, 1e-4, width=3000),
    fact("every", "curves-in-one-dimension", lambda run: run.departure_step is None, 1, width=3000),
    fact("every", "beyond-gradient-descent", lambda run: run.network.outcome == "converged", 1, **BEYOND),
    fact("every", "beyond-gradient-descent", "sup_difference", 0, 0.05, **BEYOND, method=STABLE),
    fact("every", "beyond-gradient-descent", "sup_change", 0, 0.1, **BEYOND, method=STABLE),
    *(
        fact("every", "beyond-gradient-descent", of, least, **BEYOND, method="beyond-stable")
        for of, least in (
            (lambda run: run.linearized.outcome == "diverged", 1),
            (ratio("learning_rate", "stable_rate"), 1),
            ("sup_change", 0.3),
        )
    ),
    fact("every", "liu-section5", lambda run: over_bound(run, run.pl_bound()), 0, 1 + 1e-6, **SECTION_5),
    fact("every", "liu-section5", share_of_first_half, 0.3, 0.8, **SECTION_5),
    fact("every", "liu-section5", "sup_change", 0.45, 0.75, **SECTION_5),
    fact("exponent", "liu-section5", "sup_change", -0.1, 0.1, **SECTION_5),
    fact("slopes", "liu-section5", "sup_change", -0.1, 0.1, **SECTION_5),
    *(
        fact("every", "liu-section5", lambda run: run.outcome == "converged", 1, width=10_000, output=output, rate=2.0)
        for output in ("swish", "softmax")
    ),
]

SCALES = {"output": "linear", "width": 100, "against": "scale"}
WIDTHS = {"output": "linear", "scale": 1.0}
RANDOM, ZERO = {"start": "random", **DONE}, {"start": "subtracted", **DONE}
RHOS = (0.0, 0.125, 0.25, 0.5)
LAZY = [
    *(
        fact("slopes", "liu-lazy", of, -1.15, -0.85, **SCALES, **ZERO)
        for of in ("kappa", "sup_change", "distance", "largest_distance")
    ),
    *(fact("exponent", "liu-lazy", of, -0.2, 0.2, **SCALES, **RANDOM) for of in ("sup_change", "distance")),
    # Scaling soon has no effect: from three times the scale on, no value decreases.
    *(
        fact("slopes", "liu-lazy", of, low, high, "scale", output="linear", width=100, scale=scales, **RANDOM)
        for of in ("sup_change", "distance")
        for low, high, scales in ((-0.4, 0, [1.0, 3.0]), (-0.05, 0.05, [3.0, 9.0, 27.0]))
    ),
    *(
        fact(how, "liu-lazy", of, low, high, **WIDTHS, **start)
        for start in (RANDOM, ZERO)
        for how, of, low, high in (
            ("exponent", "distance", -0.1, 0.1),
            ("slopes", "distance", -0.15, 0.15),
            # The largest of m displacements still grows towards its limit at these widths.
            ("exponent", "largest_distance", -0.5, -0.35),
            ("slopes", "largest_distance", -0.6, -0.25),
            ("slopes", "sup_change", -INF, -0.5),
        )
    ),
    fact("slopes", "liu-lazy", "kappa", -0.6, -0.4, **WIDTHS, start="subtracted"),
    fact("every", "liu-lazy", "pre_output_change", 0, 0.02, output="swish", scale=1.0, width=10_000),
    fact("every", "liu-lazy", "sup_change", 0.1, output="swish", scale=1.0, width=10_000),
    fact("exponent", "liu-lazy", "pre_output_change", -INF, -0.5, output="swish", scale=1.0, **RANDOM),
    fact("exponent", "liu-lazy", "sup_change", -0.3, 0.3, output="swish", scale=1.0, **RANDOM),
    fact("means", "liu-lazy", "sup_change", 0.5, output="swish", scale=1.0, **RANDOM),
    # Eq. 2: no output moves by more than its target, which is 1, and ‖∇f‖ is about 1; distances in single precision.
    fact("every", "liu-distance", "least_distance.first", 0.9),
    fact("every", "liu-distance", ratio("least_distance.first", "least_distance.last"), 0, 1),
    fact("every", "liu-distance", ratio("least_distance.last", "distance"), 0, 1.0005),
    fact("exponent", "liu-distance", "least_distance.first", -0.05, 0.05, **DONE),
    fact("exponent", "liu-distance", "least_distance.last", -0.05, 0.05, **DONE),
    *(
        fact("exponent", "richness-dial", of, law(rho) - 0.1, law(rho) + 0.1, scale=1.0, richness=rho, **ZERO)
        for rho in RHOS
        for of, law in (
            ("sup_change", lambda rho: 2 * rho - 1),
            ("mean_hidden_change", lambda rho: rho - 0.5),
            ("curvature", lambda rho: rho - 0.5),  # but for √log m
            ("distance", lambda rho: rho),
        )
    ),
    fact("exponent", "richness-dial", "sup_change", -1.1, -0.9, scale=1.0, richness=0.0, **ZERO),
    *(
        fact("exponent", "richness-dial", of, -0.05, 0.05, richness=0.5, **ZERO)
        for of in ("sup_change", "mean_hidden_change")
    ),
    *(
        fact("exponent", "richness-deep", lambda run, i=index: run.hidden_change[i], low, high, richness=rho, **ZERO)
        for index in range(3)
        for rho, low, high in ((0.0, -0.6, -0.4), (0.5, -0.05, 0.05))
    ),
    *(
        fact("every", name, lambda run: run.outcome == "converged", 1, richness=[0.0, 0.5], start="subtracted")
        for name in ("richness-dial", "richness-deep")
    ),
]

BALLS = {"records": "runs.balls"}
HESSIANS = [name for name, preset in PRESETS.items() if preset.spec.experiment == "hessian"]
NORMS = [
    *(fact("every", name, lambda run: run.converged, 1) for name in HESSIANS),
    fact("exponent", "liu-nonlinear-output", "norm", -0.1, 0.1, line=NONLINEAR),
    *(
        fact("every", name, lambda run: run.bound and run.norm / run.bound.bound, 0, 1 + 1e-5)
        for name in ("liu-theorem31", "liu-shallow", "liu-nonlinear-output")
    ),
    fact("every", "liu-nonlinear-output", lambda run: run.parts and run.parts.lower / run.norm, 0, 1 + 1e-5),
    *(fact("exponent", "liu-theorem31", of, -0.03, 0.03) for of in ("bound.q_221", "bound.q_l")),
    fact("exponent", "liu-table1", "norm", -0.15, 0.15, line="bottleneck"),
    # Many neurons nearly attain the largest |σ''|; Lanczos finds one of them, within its tolerance.
    fact("every", "liu-shallow", lambda run: 1 - run.norm / run.exact, -1e-6, TOLERANCE, line="shallow"),
    *(
        fact("exponent", "liu-ball", "hessian", -0.7, -0.35, **BALLS, line=LINEAR, radius=radius)
        for radius in (0.5, 1.0, 2.0, 4.0)
    ),
    # A large ball around a narrow network contains points of larger curvature than any wide network has.
    *(
        fact("exponent", "liu-ball", "hessian", -0.15, 0.15, **BALLS, line=NONLINEAR, radius=each)
        for each in (0.5, 1.0)
    ),
    fact("every", "liu-ball", ratio("hessian", "hessian_random"), 1, **BALLS),
    fact("every", "liu-ball", lambda run: min(np.diff([ball.hessian for ball in run.balls]), default=None), 0),
    fact("every", "liu-ball", ratio("kernel_change", "kernel_change_random"), 5, **BALLS, line=LINEAR),
    *(
        fact("ratio of means", "liu-ball", "kernel_change", low, high, **BALLS, line=line, radius=radius)
        for radius in (0.5, 1.0, 2.0, 4.0)
        for line, low, high in ((LINEAR, 0.15, 0.28), (NONLINEAR, 0.7, INF))
    ),
    fact("exponent", "liu-ball", "kernel_change", 0.9, 1.25, "radius", "runs.balls", line=LINEAR, width=1000),
    *(fact("exponent", "relu-and-tanh", "norm", -0.65, -0.3, line=line) for line in (LINEAR, f"{LINEAR}-2")),
    *(
        fact("exponent", "zhu-vector-output", "vector.norm", -0.6, -0.35, line=line)
        for line in gallery_result("zhu-vector-output").spec.lines()
    ),
    fact("every", "zhu-vector-output", ratio("norm", "vector.norm"), 0, 1 + 1e-3),
    fact("every", "zhu-vector-output", ratio("vector.norm", "vector.upper"), 0, 1 + 1e-3),
    *(
        fact("slopes", "liu-parameterization", "relative_norm", -INF, -0.25, line=line)
        for line in (LINEAR, f"{LINEAR}-standard", f"{LINEAR}-lecun")
    ),
    fact("ratio of means", "attention-head-dim", "norm", 0.75, line="attention"),
    fact("ratio of means", "attention-heads", "norm", 0, 0.4, line="attention"),
    *(
        fact(
            "ratio of means",
            "attention-head-dim",
            "share",
            0,
            0.1,
            records="runs.shares",
            line="attention-2",
            layer=each,
        )
        for each in ("queries", "keys")
    ),
]

IN_DEGREE = {"against": "min_in_degree", **DONE}
DRAWN, LAYER, REPAIRED = ({"graph": each, "output": "linear", **DONE} for each in
                          ("drawn", "bottleneck-layer", "bottleneck-repaired"))  # fmt: skip
NEURONS = "zhu-bottleneck-neurons"
GRAPHS = [
    *(
        fact(how, name, of, -INF, high, output="linear", **DONE)
        for name in ("zhu-skip", "zhu-shared", "zhu-unequal")
        for how, of, high in (("upper end", "sup_change", -0.4), ("exponent", "hessian_norm", -0.35))
    ),
    *(
        fact("slopes", "zhu-preactivations", of, -INF, -0.3, records="runs.layers", group=group)
        for group in ("b", "c", "output")
        for of in ("hessian_norm", "change")
    ),
    fact("every", "zhu-preactivations", "change", 0, 0, records="runs.layers", group="a"),
    fact("exponent", "zhu-nonlinear-output", "hessian_norm", -INF, -0.35, output="linear", **DONE),
    *(
        fact("upper end", "zhu-nonlinear-output", "hessian_norm", -0.2, output=output, **DONE)
        for output in ("softmax", "swish")
    ),
    fact("every", "zhu-nonlinear-output", "sup_change", 0, 0.09, output="linear", width=1000, **DONE),
    fact("every", "zhu-nonlinear-output", "sup_change", 0.9, output=["softmax", "swish"], **DONE),
    fact("every", "zhu-pl", ratio("gradient_norm", "gradient_bound"), 1),
    fact("every", "zhu-pl", "gradient_bound", 1e-300),
    fact("every", NEURONS, "min_in_degree", 1, 1, graph="drawn", output="linear"),
    fact("every", NEURONS, "min_in_degree", 2, 2, graph="bottleneck-layer", output="linear"),
    *(fact("ratio of means", NEURONS, "sup_change", 0, 0.15, **each) for each in (DRAWN, REPAIRED)),
    fact("ratio of means", NEURONS, "sup_change", 0.7, **LAYER),
]

MAP, WIDE_MAP = "catapult-map", [1600, 3200, 6400, 10_000]
BELOW_TWO, BELOW_FOUR, ABOVE_FOUR = [0.5, 1.0, 1.5, 1.8], [2.2, 2.5, 3.0, 3.5, 3.8], [4.2, 5.0, 6.0]
NONLINEAR_MODELS = ["network", "quadratic"]


def _has_diverged(run: Any) -> bool:
    return run.outcome == "diverged"


RATES = [
    fact("every", MAP, lambda run: run.outcome == "monotone", 1, model="linear", rate=BELOW_TWO),
    fact("every", MAP, _has_diverged, 0, 0, model=NONLINEAR_MODELS, rate=[*BELOW_TWO, *BELOW_FOUR]),
    fact("every", MAP, "curvature", 0, 2, model=NONLINEAR_MODELS, rate=BELOW_TWO),
    *(fact("means", MAP, _has_diverged, 1e-9, 1, model="quadratic", rate=rate) for rate in ABOVE_FOUR),
    fact("every", MAP, _has_diverged, 1, model="quadratic", rate=ABOVE_FOUR, width=WIDE_MAP),
    # Two-layer ReLU, ten samples: about 1.8 from c = 2.2, near 1 from c = 3, unchanged below 2.
    *(
        fact("every", MAP, "curvature", low, high, model=model, rate=rate, width=WIDE_MAP)
        for model, rate, low, high in (
            ("network", 2.2, 1.7, 1.9),
            ("network", 3.0, 0.6, 1.3),
            (["linear", *NONLINEAR_MODELS], 1.5, 1.45, 1.55),
        )
    ),
    fact("exponent", MAP, "peak", 0.8, 1.1, model="network", rate=3.0),
    fact("every", MAP, lambda run: run.converged, 1, model="network", rate=3.0),
    fact("every", MAP, "peak", 1, 1, model="network", rate=1.5),
    fact("every", MAP, "peak", 1.5, model="network", rate=2.2, width=WIDE_MAP),
    fact("means", MAP, "peak", 0, 4, model="network", rate=2.2, width=[100, 200, 400, 800]),
    fact("exponent", "horizon-weight-decay", "kernel.horizon", -0.05, 0.05, width=[1024, 4096]),
]

SMALL_BETA = [2.0**power for power in range(-10, -2)]  # up to 1/8
DEPTHS = [
    fact("every", "depth-width", lambda p: p.expected_cv_squared * p.width, 3 - 3e-6, 3 + 3e-6, "beta", "", depth=1),
    fact("every", "depth-width", "largest_share", 0, MOST_OF_ONE, "beta", "", beta=SMALL_BETA),
    # The formula agrees within one and a half bootstrap intervals.
    fact(
        "every",
        "depth-width",
        lambda point: abs(point.cv_squared - point.expected_cv_squared) / (point.high - point.low),
        0,
        1.5,
        "beta",
        "",
        beta=SMALL_BETA,
    ),
    fact(
        "every",
        "depth-width",
        lambda point: point.growth if point.depth > 1 else None,
        2.7,
        5,
        "beta",
        "",
        beta=SMALL_BETA[-3:],
    ),
    # Four standard errors of the mean of 2,000 kernels.
    fact(
        "every",
        "depth-width",
        lambda point: abs(point.mean / (point.depth + 1) - 1) / math.sqrt(point.cv_squared / 2000),
        0,
        4,
        "beta",
        "",
    ),
    fact(
        "every",
        "depth-width",
        lambda point: point.beta if point.largest_share > MOST_OF_ONE else None,
        1 / 4,
        INF,
        "beta",
        "",
    ),
]
FACTS = [*HU, *TRAINING, *LAZY, *NORMS, *GRAPHS, *RATES, *DEPTHS]
