"""Random blocks at two calls.

Shared values, gates that open later, scales, custom rules and lengths of the batch.

A block is drawn from ``READERS`` (how z = x W + b is read), ``RULES`` (custom derivatives) and
``LENGTHS`` (uses of the number of rows). Each program is measured at closed gates first and at open
gates with other parameters and rows afterwards. Kernels are compared with plain reverse mode in
float64, each output on its own scale, and so is one of Hessian norm, linear model, report and parts
of the kernel. ``make programs`` runs 1,000 programs and prints the counts of their outcomes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from ntk_core.dynamics import linearize
from ntk_core.errors import InvalidInput
from ntk_core.hessians import hessian_norm
from ntk_core.kernels import empirical_ntk
from ntk_core.linearity import linearity_report
from ntk_core.traced import layers_of
from tests.plain_derivatives import dense_hessian, largest, normal, plain_kernel
from tests.tiers import EXHAUSTIVE

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

Values = dict[str, Any]
ROWS = 3
SHAPES = {
    "w": (3, 4),
    "b": (4,),
    "gate": (4,),
    "gate2": (4,),
    "u": (4, 4),
    "out": (4, 2),
    "far": (9, 4),
}


def _straight_through(a: Any) -> Any:
    return a + lax.stop_gradient(jnp.round(a) - a)


@jax.custom_vjp
def _right_vjp(a: Any) -> Any:
    return jnp.sin(a)


_right_vjp.defvjp(lambda a: (jnp.sin(a), a), lambda a, t: (t * jnp.cos(a),))


@jax.custom_vjp
def _clipped_vjp(a: Any) -> Any:
    return jnp.sin(a)


_clipped_vjp.defvjp(lambda a: (jnp.sin(a), a), lambda a, t: (0.5 * t,))


@jax.custom_jvp
def _right_jvp(a: Any) -> Any:
    return jnp.tanh(a)


_right_jvp.defjvps(lambda t, y, a: (1 - jnp.tanh(a) ** 2) * t)


@jax.custom_jvp
def _wrong_jvp(a: Any) -> Any:
    return jnp.tanh(a)


_wrong_jvp.defjvps(lambda t, y, a: 0.7 * jnp.cos(a) * t)

RULES: dict[str, Callable[[Any], Any]] = {
    "tanh": jnp.tanh,
    "silu": jax.nn.silu,
    "right custom_vjp": _right_vjp,
    "right custom_jvp": _right_jvp,
    "other custom_vjp": _clipped_vjp,
    "other custom_jvp": _wrong_jvp,
    "straight through": lambda a: jnp.tanh(_straight_through(a)),
}

# z = a W; a reader may see z with and without the bias. Gates are zero at the first call.
READERS: dict[str, Callable[[Values, Any, Callable[[Any], Any]], Any]] = {
    "once": lambda p, z, f: f(z + p["b"]) + p["gate"] * jnp.cos(p["b"]),
    "twice": lambda p, z, f: f(z + p["b"]) + p["gate"] * z,
    "twice without bias": lambda p, z, f: f(z) + p["gate"] * jnp.sin(z),
    "three times": lambda p, z, f: f(z + p["b"]) + p["gate"] * z + p["gate2"] * jnp.cos(z),
    "two biases": lambda p, z, f: f(z + p["b"]) + p["gate"] * jnp.sin(z + p["gate2"]),
    "self-gated": lambda p, z, f: z * jax.nn.sigmoid(f(z + p["b"])),
    "gated": lambda p, z, f: f(z + p["b"]) * (z @ p["u"]),
    "residual": lambda p, z, f: f(z + p["b"]) + (z @ p["u"]) * p["gate"],
    "bias again": lambda p, z, f: f(z + p["b"]) + p["gate"] * (p["b"] @ p["u"]),
    "branch": lambda p, z, f: z + p["gate"] * f(z @ p["u"] + p["b"]),
}

# Uses of the number of rows: along the axis of rows they are right, elsewhere they are refused.
LENGTHS_OF_ROWS: dict[str, Callable[[Values, Any], Any]] = {
    "none": lambda p, h: h,
    "zeros": lambda p, h: h + jnp.zeros((len(h), 4)),
    "reshaped": lambda p, h: h.reshape(h.shape[0], 2, 2).reshape(len(h), -1),
    "ones": lambda p, h: jnp.concatenate([h[:, :3], jnp.ones((len(h), 1))], 1),
    "repeated": lambda p, h: h + jnp.broadcast_to(p["b"], (len(h), 4)),
}
LENGTHS_ELSEWHERE: dict[str, Callable[[Values, Any], Any]] = {
    "positions": lambda p, h: h + p["far"][: len(h)],
    "place": lambda p, h: h + p["far"][h.shape[0]],
    "loop": lambda p, h: lax.fori_loop(0, len(h), lambda _, a: 0.9 * a, h),
    "divided": lambda p, h: h / len(h),
    "power": lambda p, h: h ** len(h),
    "sum of ones": lambda p, h: h * jnp.ones((len(h), 4)).sum(0),
}
LENGTHS = {**LENGTHS_OF_ROWS, **LENGTHS_ELSEWHERE}
SCALES = (1e-30, 1e-15, 1e-3, 1.0, 1.0, 1.0, 1e3, 1e15, 1e30)
NEAR_SCALES = (1e-3, 1.0, 1e3)


@dataclass(frozen=True)
class Block:
    """A program with the sizes of its parameters and outputs."""

    reader: str = "twice"
    rule: str = "tanh"
    length: str = "none"
    dtype: str = "float64"
    leaf_scales: tuple[tuple[str, float], ...] = ()
    output_scales: tuple[float, float] = (1.0, 1.0)

    def __call__(self, params: Values, x: Any) -> Any:
        values = dict(params)
        for name, scale in self.leaf_scales:
            values[name] = values[name] / scale
        h = READERS[self.reader](values, x @ values["w"], RULES[self.rule])
        h = LENGTHS[self.length](values, h)
        return (h @ values["out"]) * jnp.asarray(self.output_scales, h.dtype)

    def params(self, seed: int, is_open: bool) -> Values:
        """Draw parameters of the scales of their leaves; closed gates are zero."""
        found = normal(**SHAPES, seed=seed)
        for name in ("gate", "gate2"):
            if not is_open:
                found[name] = np.zeros_like(found[name])
        for name, scale in self.leaf_scales:
            found[name] = found[name] * scale
        return {name: jnp.asarray(leaf, self.dtype) for name, leaf in found.items()}


def random_block(rng: np.random.Generator) -> Block:
    """Every second block is float32 with scales; every tenth uses the number of rows elsewhere."""
    lengths = LENGTHS_ELSEWHERE if rng.integers(10) == 0 else LENGTHS_OF_ROWS
    drawn = {
        "reader": str(rng.choice(list(READERS))),
        "rule": str(rng.choice(list(RULES))),
        "length": str(rng.choice(list(lengths))),
    }
    if rng.integers(2):
        return Block(**drawn)
    names = rng.choice(["w", "b", "u", "out"], 2, replace=False)
    scales = [float(rng.choice(SCALES)), float(rng.choice(NEAR_SCALES))]
    # A gradient with respect to a leaf of size s is of size 1 / s. Outputs of size s make its
    # kernel one of size 1, while that of other leaves is of size s²; three of four programs do so,
    # since others are beyond float32.
    common = scales[0] if rng.integers(4) else float(rng.choice(SCALES))
    outputs = (common, common * float(rng.choice(NEAR_SCALES)))
    leaves = tuple(zip(map(str, names), scales, strict=True))
    return Block(**drawn, dtype="float32", leaf_scales=leaves, output_scales=outputs)


def kernel_is_right(block: Block, params: Values, x: Any, kernel: Any) -> bool:
    """Compare each pair of outputs on its own scale with reverse mode in float64.

    Numbers beyond the kernel's type may be infinite or NaN; numbers below it may be zero.
    """
    wide = {name: jnp.asarray(leaf, jnp.float64) for name, leaf in params.items()}
    expected = np.asarray(plain_kernel(block, wide, jnp.asarray(x, jnp.float64)))
    found = np.asarray(kernel, np.float64)
    info = np.finfo(block.dtype)
    tolerance = 1e-8 if block.dtype == "float64" else 1e-3
    diagonal = np.einsum("iicc->ic", expected).max(0)  # (C,)
    for c in range(2):
        for d in range(2):
            one = expected[:, :, c, d]
            other = found[:, :, c, d]
            scale = np.sqrt(diagonal[c]) * np.sqrt(diagonal[d])
            if scale > 0.1 * info.max:
                # The type has no such numbers: a finite one has to be right all the same.
                other = np.where(np.isfinite(other), other, one)
            allowed = tolerance * scale + 100 * float(info.tiny)
            if not (np.abs(one - other) <= allowed).all():
                return False
    return True


def wrong_hessian(block: Block, params: Values, x: Any) -> str:
    """Compare the Hessian norm of one row with a dense Hessian in float64."""
    if block.rule not in ("tanh", "silu", "right custom_jvp"):
        return ""
    is_wide = block.dtype == "float64"
    try:
        norm = float(hessian_norm(block, params, x[0], tolerance=1e-9 if is_wide else None).value)
    except InvalidInput:
        # Outputs and gradients of these scales may fit into float32 where second
        # derivatives do not.
        return "refused Hessian" if is_wide else ""
    wide = {name: jnp.asarray(leaf, jnp.float64) for name, leaf in params.items()}
    dense = float(largest(np.asarray(dense_hessian(block, wide, jnp.asarray(x[0], jnp.float64)))))
    tolerance = 1e-6 if is_wide else 5e-3
    return (
        "" if abs(norm - dense) <= tolerance * max(dense, 1e-12) else f"Hessian {norm} for {dense}"
    )


def plain_jacobian(block: Block, params: Values, x: Any) -> Values:
    """Return the Jacobian by reverse mode in float64, by parameter: (n, C, *shape)."""
    wide = {name: jnp.asarray(leaf, jnp.float64) for name, leaf in params.items()}
    rows = jnp.asarray(x, jnp.float64)
    found: Values = jax.jit(jax.jacrev(lambda w: block(w, rows)))(wide)
    return found


def moved(params: Values) -> Values:
    return {name: leaf * jnp.asarray(1.1, leaf.dtype) for name, leaf in params.items()}


def wrong_linear_model(block: Block, params: Values, x: Any) -> str:
    """Compare the linear model with f + J δ, J by reverse mode, each output on its own scale."""
    later = moved(params)
    try:
        found = np.asarray(linearize(block, params)(later, x), np.float64)
    except InvalidInput:
        return "refused linear model"
    expected = np.asarray(block(params, x), np.float64)
    scale = np.abs(expected).max(0)
    for name, part in plain_jacobian(block, params, x).items():
        step = np.asarray(later[name], np.float64) - np.asarray(params[name], np.float64)
        term = np.asarray(part).reshape(*expected.shape, -1) @ step.reshape(-1)
        expected = expected + term
        scale = np.maximum(scale, np.abs(term).max(0))
    tolerance = 1e-9 if block.dtype == "float64" else 1e-3
    return "" if (np.abs(found - expected) <= tolerance * scale).all() else "linear model"


def wrong_report(block: Block, params: Values, x: Any) -> str:
    """Compare the report's ΔK and error of the linear model with plain derivatives in float64."""
    if block.dtype != "float64":
        return ""
    later = moved(params)
    try:
        report = linearity_report(block, params, later, x)
    except InvalidInput as refusal:
        return f"refused report: {refusal}"
    k0 = np.asarray(plain_kernel(block, params, x))
    k1 = np.asarray(plain_kernel(block, later, x))
    change = float(np.linalg.norm(k1 - k0) / np.linalg.norm(k0))
    f0 = np.asarray(block(params, x))
    f1 = np.asarray(block(later, x))
    linear = np.zeros_like(f0)
    for name, part in plain_jacobian(block, params, x).items():
        step = np.asarray(later[name] - params[name]).reshape(-1)
        linear = linear + np.asarray(part).reshape(*f0.shape, -1) @ step
    error = float(np.linalg.norm(f1 - f0 - linear) / np.linalg.norm(f1 - f0))
    if not abs(report.kernel_change - change) <= 1e-6 * max(change, 1e-6):
        return f"report, change {report.kernel_change} for {change}"
    if not abs(report.output_error - error) <= 1e-6 * max(error, 1e-6):
        return f"report, error {report.output_error} for {error}"
    return ""


def wrong_parts(block: Block, params: Values, x: Any) -> str:
    """Compare the part of each parameter with its own Jacobian in float64."""
    if block.dtype != "float64":
        return ""
    try:
        parts = empirical_ntk(block, params, x, per_layer=True)
    except InvalidInput as refusal:
        return "" if "per_layer" in str(refusal) else "refused parts"
    for name, own in plain_jacobian(block, params, x).items():
        flat = np.asarray(own).reshape(ROWS, 2, -1)
        expected = np.einsum("iap,jbp->ijab", flat, flat)
        named = [part for key, part in parts.items() if name in re.findall(r"\w+", key)[:1]]
        if not named:
            if np.abs(expected).max() > 0:
                return f"no part of {name}"
            continue
        found = np.asarray(sum(named))
        if not np.abs(found - expected).max() <= 1e-8 * max(np.abs(expected).max(), 1e-12):
            return f"part of {name}"
    return ""


# One of them for each program, by its seed.
FURTHER = (wrong_hessian, wrong_linear_model, wrong_report, wrong_parts, wrong_hessian)


def outcome(block: Block, seed: int = 0) -> str:
    """Return right by structure, right by Jacobians, refused (with the reason),
    or wrong (with the quantity).
    """
    rng = np.random.default_rng(seed)
    is_structured = False
    for is_open in (False, True):
        params = block.params(seed + is_open, is_open)
        x = jnp.asarray(rng.standard_normal((ROWS, 3)), block.dtype)
        try:
            kernel = empirical_ntk(block, params, x)
            if not kernel_is_right(block, params, x, kernel):
                return f"wrong: kernel, open {is_open}"
            layers = layers_of(block, params, x).layers
            is_structured = any(layer.kind != "jacobian" for layer in layers)
        except InvalidInput as refusal:
            if block.length in LENGTHS_OF_ROWS and "mixes the rows" in str(refusal):
                return "wrong: refused independent rows"
            return "refused: " + re.sub(r"[-+.\d]+e?[-+\d]*", "#", str(refusal))[:110]
        wrong = FURTHER[seed % len(FURTHER)](block, params, x)
        if wrong:
            return f"wrong: {wrong}, open {is_open}"
    return "right by structure" if is_structured else "right by Jacobians"


@pytest.mark.long_after(1)
@pytest.mark.sampled(5)  # one reader among many
@pytest.mark.slow  # each compiles its oracle at several parameters
@pytest.mark.parametrize("reader", READERS)
def test_blocks_whose_gates_open_later_are_right(reader, x64):
    assert outcome(Block(reader)).startswith("right")


@pytest.mark.long_after(1)
@pytest.mark.slow  # compiles its oracle
@pytest.mark.parametrize("rule", RULES)
def test_custom_rules_have_one_derivative_or_are_refused(rule, x64):
    assert not outcome(Block("twice", rule)).startswith("wrong")


@pytest.mark.long_after(1)
@pytest.mark.sampled(5)  # one reader among many
@pytest.mark.slow  # compiles its oracle
@pytest.mark.parametrize("length", LENGTHS)
def test_lengths_are_right_along_rows_and_refused_elsewhere(length, x64):
    expected = "right" if length in LENGTHS_OF_ROWS else "refused"
    assert outcome(Block("twice", length=length)).startswith(expected)


@pytest.mark.slow  # compiles in several precisions
def test_products_beyond_their_type_are_refused_as_such(x64):
    """The kernel of the bias fits into float32, that of the weights does not.

    Their sum has a wider type.
    """
    sizes = (("b", 1e15), ("w", 1e-3))
    block = Block("once", "other custom_jvp", "zeros", "float32", sizes, (1e30, 1e30))
    assert outcome(block, 4).startswith("refused: net: outputs with kernel entries")


@pytest.mark.slow  # compiles in several precisions
def test_small_derivatives_of_one_output_are_refused_as_such(x64):
    """The whole kernel is around 1, the parts of w of the second output are below float32."""
    sizes = (("out", 1e-15), ("w", 1e-3))
    block = Block("three times", "other custom_jvp", "none", "float32", sizes, (1e-15, 1e-18))
    assert outcome(block, 6).startswith("refused: net: derivatives around")


NARROW: Any = {"length": "ones", "dtype": "float32"}  # the ones have 64 bits, and so has the kernel


@pytest.mark.long  # several kernels
def test_parts_of_narrower_types_than_the_kernel_may_vanish(x64):
    by_weights = Block("self-gated", "straight through", leaf_scales=(("w", 1e30),), **NARROW)
    by_bias = Block(
        "self-gated",
        "other custom_vjp",
        leaf_scales=(("u", 1e-15), ("b", 1000.0)),
        output_scales=(1e-15, 1e-15),
        **NARROW,
    )
    # The kernel of the second output is around 1e-35.
    second_output = Block(
        "branch",
        "right custom_vjp",
        leaf_scales=(("u", 1e-15), ("w", 1000.0)),
        output_scales=(1e-15, 1e-18),
        **NARROW,
    )
    assert outcome(by_weights, 45).startswith("right")
    assert outcome(by_bias, 14).startswith("right")
    assert outcome(second_output, 40).startswith("right")


@pytest.mark.sampled(8)  # random
@pytest.mark.slow
@pytest.mark.skipif(not EXHAUSTIVE, reason="make programs runs them")
@pytest.mark.parametrize("chunk", range(20))
def test_random_blocks_are_right_or_refused(chunk, x64):
    rng = np.random.default_rng([chunk, 1])
    found = Counter[str]()
    wrong = []
    for seed in range(50):
        block = random_block(rng)
        result = outcome(block, seed)
        found[result] += 1
        if result.startswith("wrong"):
            wrong.append((block, result))
    print(dict(found))
    assert not wrong
