"""Infinite width of PyTorch and Flax modules.

The limits of the same formulas, and refusals by operation.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ntk_core
from ntk_core.errors import InvalidInput

torch: Any = pytest.importorskip("torch", reason="make torch installs it")
if find_spec("torchax") is None:  # an import would register its device in PyTorch
    pytest.skip("make torch installs torchax", allow_module_level=True)
from ntk_core.torch import from_torch  # noqa: E402

nn: Any = torch.nn
pytestmark = pytest.mark.filterwarnings("default")  # warnings of other libraries
IMAGES = np.random.default_rng(0).normal(size=(3, 2, 6, 6)).astype(np.float32)
TOKENS = np.random.default_rng(0).normal(size=(3, 4, 8)).astype(np.float32)
SCALES = {"*weight": 0.5, "*bias": 0.25}


class Attending(nn.Module):
    """Self-attention with two heads beside a skip connection, and a linear output."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        mixed, _ = self.attention(x, x, x, need_weights=False)
        return self.head(mixed.mean(1))


def attending(p: Any, x: Any) -> Any:
    heads = []
    for name in ("q", "k", "v"):
        heads.append((x @ p[f"{name}_weight"] + p[f"{name}_bias"]).reshape(*x.shape[:2], 2, 4))
    queries, keys, values = heads
    scores = jnp.einsum("nihc,njhc->nhij", queries, keys) / 2
    mixed = jnp.einsum("nhij,njhc->nihc", jax.nn.softmax(scores, axis=-1), values)
    mixed = mixed.reshape(x.shape) @ p["o_weight"] + p["o_bias"]
    return mixed.mean(1) @ p["head_weight"] + p["head_bias"]


def test_convolutional_module_has_the_limit_of_its_formula() -> None:
    module = nn.Sequential(
        nn.Conv2d(2, 8, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(72, 1)
    )
    apply, params = from_torch(module, IMAGES)
    found = ntk_core.infinite_width(apply, params, IMAGES, weight_std=SCALES)

    def same(p: Any, x: Any) -> Any:
        numbers = ("NCHW", "OIHW", "NCHW")
        z = jax.lax.conv_general_dilated(
            x, p["k_weight"], (1, 1), "SAME", dimension_numbers=numbers
        )
        a = jax.nn.relu(z + p["k_bias"][:, None, None])
        a = a.reshape(len(x), 8, 3, 2, 3, 2).mean((3, 5))
        return a.reshape(len(x), -1) @ p["weight"] + p["bias"]

    shapes = {"k_weight": (8, 2, 3, 3), "k_bias": (8,), "weight": (72, 1), "bias": (1,)}
    ones = {name: jnp.ones(shape) for name, shape in shapes.items()}
    expected = ntk_core.infinite_width(same, ones, IMAGES, weight_std=SCALES)
    np.testing.assert_allclose(found.ntk, expected.ntk, rtol=1e-6)
    np.testing.assert_allclose(found.nngp, expected.nngp, rtol=1e-6)


def test_multihead_attention_has_the_limit_of_its_formula() -> None:
    apply, params = from_torch(Attending(), TOKENS)
    found = ntk_core.infinite_width(apply, params, TOKENS, weight_std=SCALES)
    shapes = {f"{name}_weight": (8, 8) for name in "qkvo"} | {
        f"{name}_bias": (8,) for name in "qkvo"
    }
    shapes |= {"head_weight": (8, 1), "head_bias": (1,)}
    ones = {name: jnp.ones(shape) for name, shape in shapes.items()}
    expected = ntk_core.infinite_width(attending, ones, TOKENS, weight_std=SCALES)
    distance = np.linalg.norm(found.ntk - expected.ntk) / np.linalg.norm(expected.ntk)
    assert distance < 4 * (found.sampling_error + expected.sampling_error)
    assert 0 < found.sampling_error < 0.03


@pytest.mark.parametrize(
    ("make", "x", "words"),
    [
        (
            lambda: nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 1)),
            TOKENS[:, 0],
            "over the width",
        ),
        (
            lambda: nn.Sequential(nn.Embedding(11, 8), nn.Flatten(), nn.Linear(32, 1)),
            np.arange(12).reshape(3, 4) % 11,
            "gather",
        ),
    ],
)
def test_modules_without_a_rule_are_refused_by_operation(
    make: Any, x: np.ndarray, words: str
) -> None:
    apply, params = from_torch(make(), x)
    with pytest.raises(InvalidInput, match=words):
        ntk_core.infinite_width(apply, params, x, weight_std={"*": 0.5})
