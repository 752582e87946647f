"""Hessian norms of Liu, Zhu & Belkin 2020: Table 1 and the theorems behind it."""

from __future__ import annotations

from typing import Any

from ntk_core.experiments.hessian.network import TEMPLATES, templates
from ntk_core.experiments.hessian.spec import HessianSpec
from ntk_core.networks.spec import COMPOSED
from ntk_core.runs import Preset, Spec

_CHOICES = (
    "The paper states theorems, no sizes: data (MNIST averaged to 7 × 7, standardized, classes 0, 1 and 2, n = 20), "
    "activation, depth, widths, number of seeds and inputs are our choice."
)
_TABLE: dict[str, Any] = {
    "networks": tuple(
        network
        for network in TEMPLATES.values()
        if network.input == "data" and network.kind != COMPOSED and network.parameterization == "ntk"
    ),
    "num_inputs": 3,
    "bounds": False,
    "blocks": False,
}
_ONE: dict[str, Any] = {"networks": templates("fully-connected"), "num_trained": 0}
_BALL: dict[str, Any] = {"bounds": False, "blocks": False, "num_trained": 2}
_CLOSED: dict[str, Any] = {"num_inputs": 1, "num_trained": 0}


PRESETS: tuple[Preset[Spec], ...] = (
    Preset(
        "liu-table1",
        "Table 1: Hessian norm, kernel, linearity",
        "With a linear output the Hessian vanishes like m^(-1/2) while the kernel does not, so the network becomes "
        "linear; with a nonlinear output, or with a bottleneck, the Hessian stays.",
        "Liu, Zhu & Belkin 2020, Table 1",
        _CHOICES + " A bottleneck in a ResNet is left out: a skip connection needs equal widths.",
        HessianSpec(widths=(100, 300, 1000), num_seeds=12, num_trained=2, **_TABLE),
        HessianSpec(widths=(100, 300, 1000, 3000), num_seeds=20, num_trained=5, **_TABLE),
    ),
    Preset(
        "liu-shallow",
        "Shallow: a diagonal Hessian",
        "With one hidden layer, v = ±1 fixed and a scalar input the Hessian is diagonal; its largest entry falls "
        "exactly like m^(-1/2), below β_σ x²/√m.",
        "Liu, Zhu & Belkin 2020, §3.1",
        _CHOICES,
        HessianSpec(networks=templates("shallow"), widths=(100, 300, 1000, 3000, 10_000), blocks=False, **_CLOSED),
        HessianSpec(
            networks=templates("shallow"), widths=(100, 1000, 10_000, 100_000, 1_000_000), blocks=False, **_CLOSED
        ),
    ),
    Preset(
        "liu-theorem31",
        "Theorem 3.1: the bound above the norm",
        "The Hessian norm stays below the theorem's bound with measured constants, and both fall: the Hessian is "
        "scaled by the ∞-norm of ∂f/∂α, which vanishes, and the gradient by its 2-norm, which does not.",
        "Liu, Zhu & Belkin 2020, Theorem 3.1",
        _CHOICES,
        HessianSpec(widths=(100, 300, 1000, 3000), num_seeds=5, **_ONE),
        HessianSpec(widths=(100, 300, 1000, 3000, 10_000), num_seeds=10, **_ONE),
    ),
    Preset(
        "liu-theorem41",
        "Theorem 4.1: a bottleneck of one neuron",
        "One narrow layer keeps the Hessian of order 1: the block of the weights into the bottleneck is known exactly, "
        "and its median tends to 0.876 with the width.",
        "Liu, Zhu & Belkin 2020, Theorem 4.1",
        _CHOICES + " The closed form of the limit, |N(0, 3)| · ¾, is derived in docs/math.",
        HessianSpec(
            networks=templates("quadratic-bottleneck"),
            widths=(100, 1000, 10_000),
            num_seeds=300,
            bounds=False,
            **_CLOSED,
        ),
        HessianSpec(
            networks=templates("quadratic-bottleneck"),
            widths=(100, 1000, 10_000, 100_000),
            num_seeds=300,
            bounds=False,
            **_CLOSED,
        ),
    ),
    Preset(
        "liu-ball",
        "Theorem 3.2: the whole ball around w₀",
        "The Hessian of a wide network is small, and its kernel nearly constant, not at w₀ alone but everywhere in a "
        "ball of fixed radius R; a nonlinear output has no such ball.",
        "Liu, Zhu & Belkin 2020, Theorem 3.2 and Proposition 2.3",
        _CHOICES + " So are the radii and the number of starts.",
        HessianSpec(
            networks=templates("fully-connected", "fully-connected-swish"),
            widths=(100, 300, 1000),
            num_seeds=3,
            radii=(0.5, 1, 2, 4),
            **_BALL,
        ),
        HessianSpec(
            networks=templates("fully-connected", "fully-connected-swish", "bottleneck"),
            widths=(100, 300, 1000, 3000),
            num_seeds=5,
            num_ball_seeds=5,
            num_starts=5,
            radii=(0.5, 1, 2, 4, 8),
            **_BALL,
        ),
    ),
    Preset(
        "liu-nonlinear-output",
        "Why a nonlinear output is not linear",
        "With φ the Hessian gains φ''∇f∇fᵀ, of order 1 at every width: the measured norm stays above "
        "|φ''| ‖∇f‖² − |φ'| ‖H‖.",
        "Liu, Zhu & Belkin 2020, §4, Eq. 28 and 29",
        _CHOICES,
        HessianSpec(
            networks=templates("fully-connected", "fully-connected-swish", layers=1),
            widths=(100, 300, 1000, 3000),
            blocks=False,
        ),
        HessianSpec(
            networks=templates("fully-connected", "fully-connected-swish", layers=1),
            widths=(100, 300, 1000, 3000, 10_000, 30_000),
            num_seeds=20,
            blocks=False,
        ),
    ),
    Preset(
        "liu-parameterization",
        "Another parameterization changes nothing",
        "Drawing smaller weights and scaling them up multiplies kernel and Hessian by the same factor: ‖H‖ / K falls "
        "in the same way, and training moves the kernel as little.",
        "Liu, Zhu & Belkin 2020, App. A",
        _CHOICES,
        HessianSpec(
            networks=templates(*(f"fully-connected{scaling}" for scaling in ("", "-standard", "-lecun"))),
            widths=(100, 300, 1000),
            bounds=False,
            blocks=False,
        ),
        HessianSpec(
            networks=templates(*(f"fully-connected{scaling}" for scaling in ("", "-standard", "-lecun"))),
            widths=(100, 300, 1000, 3000),
            num_seeds=20,
            bounds=False,
            blocks=False,
        ),
    ),
)
