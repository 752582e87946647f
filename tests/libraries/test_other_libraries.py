"""Models of PyTorch, Hugging Face and Keras against plain derivatives.

Kernels and Hessian norms (make torch).
"""

from __future__ import annotations

import doctest
import importlib
import runpy
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

torch: Any = pytest.importorskip("torch", reason="make torch installs it")
if find_spec("torchax") is None:  # an import would register its device in PyTorch
    pytest.skip("make torch installs torchax", allow_module_level=True)

import ntk_core  # noqa: E402
from ntk_core import from_torch, linearity_report  # noqa: E402
from ntk_core.dynamics import linearize  # noqa: E402
from ntk_core.errors import InvalidInput  # noqa: E402
from ntk_core.kernels import empirical_ntk, generic_ntk  # noqa: E402
from ntk_core.traced import layers_of  # noqa: E402
from tests.documents import ROOT, blocks_of  # noqa: E402

nn: Any = torch.nn
TOKENS = np.random.default_rng(0).integers(0, 11, (3, 6))
pytestmark = pytest.mark.filterwarnings("default")  # warnings of other libraries


def drawn(*shape):
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


class Residual(nn.Module):
    """A block of a residual network with group normalization, after a strided convolution."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, stride=2, padding=1, bias=False)
        self.norm, self.second = nn.GroupNorm(2, 4), nn.Conv2d(4, 4, 3, padding=1)
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        a = self.first(x)
        a = a + self.second(nn.functional.gelu(self.norm(a)))
        return self.last(a.mean((2, 3)))


class Sequence(nn.Module):
    """Embedded tokens through a sequence layer, averaged over positions."""

    def __init__(self, layer):
        super().__init__()
        self.table, self.layer, self.last = nn.Embedding(11, 4), layer, nn.Linear(4, 2)

    def forward(self, x):
        a = self.layer(self.table(x))
        return self.last((a[0] if isinstance(a, tuple) else a).mean(1))


def gpt2():
    transformers = pytest.importorskip("transformers", reason="make torch installs it")
    config = transformers.GPT2Config(
        n_embd=8, n_layer=1, n_head=2, n_positions=8, vocab_size=11, num_labels=2, pad_token_id=0
    )
    return transformers.GPT2ForSequenceClassification(config)


MODULES = {
    "mlp": (
        lambda: nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2)),
        drawn(4, 3),
        "apap",
    ),
    "batch normalization": (
        lambda: nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)),
        drawn(4, 3),
        None,
    ),
    "residual": (Residual, drawn(3, 3, 6, 6), None),
    "transformer": (
        lambda: Sequence(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)),
        TOKENS,
        None,
    ),
    "gru": (lambda: Sequence(nn.GRU(4, 4, batch_first=True)), TOKENS, None),
    "gpt-2": (gpt2, np.maximum(TOKENS, 1), None),
}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_of_pytorch_has_the_kernel_of_its_jacobians(name):
    make, x, kinds = MODULES[name]
    torch.manual_seed(0)
    apply, params = from_torch(make(), x)
    found = layers_of(apply, params, x)
    assert {layer.name for layer in found.layers} == set(params)
    if kinds:
        assert "".join(layer.kind[0] for layer in found.layers) == kinds
    shares = {
        kind: sum(layer.num_params for layer in found.layers if layer.kind == kind)
        for kind in ("jacobian",)
    }
    assert shares["jacobian"] <= 0.5 * sum(leaf.size for leaf in params.values()), found.fallbacks
    expected = np.asarray(jax.jit(lambda p: generic_ntk(apply, p, jnp.asarray(x)))(params))
    kernel = empirical_ntk(apply, params, x)
    np.testing.assert_allclose(kernel, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_weights_stay_where_pytorch_has_them():
    """Same address, also of a transposed matrix; only misaligned tensors are copied."""
    module = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.Linear(64, 2))
    module[0].weight = nn.Parameter(torch.randn(64 * 64 + 1)[1:].reshape(64, 64))
    module[2].weight = nn.Parameter(torch.randn(64, 2).T)
    _, params = from_torch(module, drawn(4, 64))
    for name, tensor in module.named_parameters():
        np.testing.assert_array_equal(np.asarray(params[name]), tensor.detach().numpy())
        in_place = params[name].unsafe_buffer_pointer() == tensor.data_ptr()
        assert in_place == (name != "0.weight"), name


def test_a_model_of_keras_has_the_kernel_of_its_jacobians(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    keras = pytest.importorskip("keras", reason="make torch installs it")
    keras.utils.set_random_seed(0)
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((6, 6, 2)),
            layers.Conv2D(4, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.GlobalAveragePooling2D(),
            layers.Dense(2),
        ]
    )
    kept = [each.value for each in model.non_trainable_variables]

    def apply(params, x):
        return model.stateless_call(params, kept, x, training=False)[0]

    params, x = (
        [jnp.asarray(each.value) for each in model.trainable_variables],
        jnp.asarray(drawn(3, 6, 6, 2)),
    )
    kinds = [layer.kind for layer in layers_of(apply, params, x).layers]
    assert kinds.count("convolution") == kinds.count("product") == 1
    expected = np.asarray(generic_ntk(apply, params, x))
    np.testing.assert_allclose(
        empirical_ntk(apply, params, x), expected, rtol=0, atol=1e-5 * np.abs(expected).max()
    )


def test_module_with_an_output_per_token_has_pytorchs_kernel():
    """Against Jacobians computed by PyTorch; output (t, c) has index t·C + c."""
    torch.manual_seed(0)
    module, x = (
        nn.Sequential(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), nn.Linear(4, 2)),
        drawn(3, 5, 4),
    )
    module.eval()
    weights = dict(module.named_parameters())
    slopes = torch.func.jacrev(lambda w: torch.func.functional_call(module, w, torch.as_tensor(x)))(
        weights
    )
    flat = np.concatenate(
        [each.detach().numpy().reshape(3, 10, -1) for each in slopes.values()], axis=-1
    )
    expected = np.einsum("iap,jbp->ijab", flat.astype(np.float64), flat.astype(np.float64))
    apply, params = from_torch(module, x)
    assert apply(params, x).shape == (3, 5, 2)
    kernel = empirical_ntk(apply, params, x)
    np.testing.assert_allclose(kernel, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    assert linearize(apply, params)(params, x).shape == (3, 5, 2)
    moved = {name: 1.01 * each for name, each in params.items()}
    report = linearity_report(apply, params, moved, x)
    assert 0 < report.kernel_change < 0.5


def test_what_is_no_module_or_gives_no_rows_is_refused():
    with pytest.raises(InvalidInput, match="Module"):
        from_torch(object(), drawn(2, 3))
    for module, shape in ((nn.Flatten(0), (2, 3)), (nn.Identity(), (2, 3, 4, 3))):
        module = nn.Sequential(nn.Linear(3, 3), module)
        with pytest.raises(InvalidInput, match=r"outputs of shape \(n, C\), \(n,\) or \(n, T, C\)"):
            from_torch(module, drawn(*shape))


def test_one_module_in_a_file_is_reported_by_the_command_line(tmp_path, capsys):
    from linearity_lab.cli import main

    file = tmp_path / "model.py"
    file.write_text(
        "from torch import nn\nmodel = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, "
        "3))\n"
    )
    assert (
        main(
            [
                "own",
                str(file),
                "--num-samples",
                "8",
                "--num-seeds",
                "1",
                "--max-steps",
                "20",
                "--num-inputs",
                "1",
            ]
        )
        == 0
    )
    printed = capsys.readouterr().out
    assert printed.count("structured") == 2
    assert "checked on 2 inputs" in printed
    assert "Verdict" in printed


def test_documented_conversions_run(tmp_path):
    """The example of ``from_torch``, and the block of the page on your own models."""
    found = doctest.testmod(importlib.import_module(from_torch.__module__))
    assert found.attempted > 3
    assert found.failed == 0
    (block,) = (
        each for each in blocks_of(ROOT / "docs/own-data-and-models.md") if each.language == "py"
    )
    (tmp_path / "block.py").write_text(block.text, encoding="utf-8")
    x = drawn(4, 3)
    given = {"ntk_core": ntk_core, "module": nn.Linear(3, 2), "example": x, "x": x}
    apply, params = (
        runpy.run_path(str(tmp_path / "block.py"), given)[name] for name in ("apply", "params")
    )
    assert apply(params, x).shape == (4, 2)
