"""Names, gradients and state of PyTorch modules, against PyTorch's own derivatives (make torch)."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import jax
import numpy as np
import pytest

torch: Any = pytest.importorskip("torch", reason="make torch installs it")
if find_spec("torchax") is None:  # an import would register its device in PyTorch
    pytest.skip("make torch installs torchax", allow_module_level=True)
safetensors: Any = pytest.importorskip("safetensors.torch", reason="make torch installs it")

import ntk_core  # noqa: E402
from linearity_lab.model_files import read_checkpoint, with_checkpoints  # noqa: E402
from ntk_core.errors import InvalidInput  # noqa: E402
from ntk_core.torch import from_torch  # noqa: E402
from ntk_core.torch._torchax import without_fastpath  # noqa: E402

nn: Any = torch.nn
pytestmark = pytest.mark.filterwarnings("default")  # warnings of other libraries
X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
TOKENS = np.random.default_rng(0).integers(1, 11, (3, 6))


def kernel_by_autograd(module, x):
    """(n, n, C, C) in float64: inner products of PyTorch's gradients, one output at a time."""
    trained = [each for each in module.parameters() if each.requires_grad]
    jacobians = []
    for row in torch.as_tensor(x):
        outputs = module(row[None]).reshape(-1)
        slopes = []
        for output in outputs:
            gradients = torch.autograd.grad(output, trained, retain_graph=True)
            slopes.append(np.concatenate([each.double().numpy().ravel() for each in gradients]))
        jacobians.append(np.stack(slopes))
    jacobian = np.stack(jacobians)
    return np.einsum("iap,jbp->ijab", jacobian, jacobian)


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.back = nn.Linear(3, 5)
        self.head = nn.Linear(5, 2)

    def forward(self, x):
        return self.head(self.hidden(self.back(x)))

    def hidden(self, z):
        return torch.tanh(z)


class Attributes(Base):
    """Tensors that are no buffers: an attribute, in a list, and made in the forward pass."""

    def __init__(self):
        super().__init__()
        self.scale = torch.rand(5)
        self.scales = [torch.rand(5)]

    def hidden(self, z):
        made = torch.zeros(len(z), 5)
        made[:, 1:] = torch.tanh(z[:, 1:])
        return made * self.scale * self.scales[0] * torch.tensor([1.0, 2, 3, 4, 5])


class Tied(nn.Module):
    def __init__(self, frozen=False):
        super().__init__()
        self.emb = nn.Embedding(11, 4)
        self.mid = nn.Linear(4, 4)
        self.head = nn.Linear(4, 11, bias=False)
        self.head.weight = self.emb.weight
        self.emb.weight.requires_grad_(not frozen)

    def forward(self, x):
        return self.head(torch.tanh(self.mid(self.emb(x))).mean(1))


class Symmetric(nn.Module):
    def forward(self, weight):
        return weight.triu() + weight.triu(1).transpose(-1, -2)


class LowRank(nn.Module):
    """LoRA: a frozen weight and a trained product of rank 2."""

    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.randn(2, 3))
        self.b = nn.Parameter(torch.randn(6, 2))

    def forward(self, weight):
        return weight + self.b @ self.a


class Adapter(nn.Module):
    """A frozen layer and a trained one in its place, without the attribute ``weight``."""

    def __init__(self, frozen):
        super().__init__()
        self.frozen = frozen
        self.a = nn.Parameter(torch.randn(2, frozen.in_features))
        self.b = nn.Parameter(torch.randn(frozen.out_features, 2))

    def forward(self, x):
        return self.frozen(x) + x @ self.a.T @ self.b.T


class Directions(nn.Module):
    """DoRA: rows of a frozen weight plus a trained product of rank 2, with trained lengths."""

    def __init__(self, weight, is_detached):
        super().__init__()
        self.low_rank = LowRank()
        self.lengths = nn.Parameter(1.2 * weight.detach().norm(dim=1))
        self.is_detached = is_detached

    def forward(self, weight):
        moved = self.low_rank(weight)
        norms = moved.norm(dim=1, keepdim=True)
        return self.lengths[:, None] * moved / (norms.detach() if self.is_detached else norms)


def with_directions(is_detached):
    layer = nn.Linear(3, 6).requires_grad_(False)
    made = Directions(layer.weight, is_detached)
    nn.utils.parametrize.register_parametrization(layer, "weight", made)
    return network(layer)


def adapted_transformer():
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).requires_grad_(False)
    layer.linear1 = Adapter(layer.linear1)
    return nn.Sequential(layer, nn.Flatten(), nn.Linear(12, 2))


def network(first):
    return nn.Sequential(first, nn.Tanh(), nn.Linear(first.out_features, 2))


def parametrized(parametrization, width):
    layer = nn.Linear(3, width)
    layer.weight.requires_grad_(not isinstance(parametrization, LowRank))
    nn.utils.parametrize.register_parametrization(layer, "weight", parametrization)
    return network(layer)


MODULES: dict[str, tuple[Any, Any]] = {
    "attributes": (Attributes, X),
    "weight_norm": (lambda: network(nn.utils.parametrizations.weight_norm(nn.Linear(3, 6))), X),
    "spectral_norm": (lambda: network(nn.utils.parametrizations.spectral_norm(nn.Linear(3, 6))), X),
    "old weight_norm": (lambda: network(nn.utils.weight_norm(nn.Linear(3, 6))), X),
    "old spectral_norm": (lambda: network(nn.utils.spectral_norm(nn.Linear(3, 6))), X),
    "symmetric": (lambda: parametrized(Symmetric(), 3), X),
    "low rank": (lambda: parametrized(LowRank(), 6), X),
    "DoRA": (lambda: with_directions(is_detached=False), X),
    "DoRA of detached norms": (lambda: with_directions(is_detached=True), X),
    "orthogonal": (lambda: network(nn.utils.parametrizations.orthogonal(nn.Linear(3, 3))), X),
    "tied": (Tied, TOKENS),
    "tied and frozen": (lambda: Tied(frozen=True), TOKENS),
    "adapter in a transformer": (adapted_transformer, np.tile(X[:, :, None], 4)),
    "compiled": (lambda: torch.compile(Base(), backend="eager"), X),
    "parallel": (lambda: nn.DataParallel(Base()), X),
}


@pytest.mark.parametrize("name", MODULES)
def test_kernel_is_that_of_pytorchs_gradients(name):
    make, x = MODULES[name]
    torch.manual_seed(0)
    module = make().eval()
    with without_fastpath():
        expected = kernel_by_autograd(module, x)
    apply, params = from_torch(module, x)
    found = ntk_core.empirical_ntk(apply, params, x)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z):
        return torch.sign(z)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class NoGradient(Base):
    def forward(self, x):
        with torch.no_grad():
            hidden = torch.tanh(self.back(x))
        return self.head(hidden)


class StraightThrough(Base):
    def hidden(self, z):
        return Sign.apply(z)


class Data(Base):
    def hidden(self, z):
        return torch.tanh(z).data


class Hook(Base):
    def __init__(self):
        super().__init__()
        self.back.weight.register_hook(lambda gradient: 0 * gradient)


class PlainList(Base):
    """Parameters that are read from a list, outside the registered names."""

    def __init__(self):
        super().__init__()
        self.weights = [self.back.weight]

    def forward(self, x):
        return self.head(torch.tanh(x @ self.weights[0].T + self.back.bias))


@pytest.mark.parametrize("make", [NoGradient, StraightThrough, Data, Hook, PlainList])
def test_other_gradients_are_refused_by_parameter(make):
    torch.manual_seed(0)
    with pytest.raises(InvalidInput, match=r"gradient .* parameter back\.(weight|bias)"):
        from_torch(make(), X)


class Gated(Base):
    """A second branch behind a gate of zero, without PyTorch's gradient in JAX."""

    def __init__(self, branch):
        super().__init__()
        self.other = nn.Linear(3, 5)
        self.gate = nn.Parameter(torch.zeros(1))
        self.branch = branch

    def forward(self, x):
        return self.head(torch.tanh(self.back(x)) + self.gate * self.branch(self.other(x)))


def without_gradient(z):
    with torch.no_grad():
        return torch.tanh(z)


def in_inference_mode(z):
    with torch.inference_mode():
        found = torch.tanh(z)
    return found.clone()


def with_hook(z):
    found = torch.tanh(z)
    if found.requires_grad:
        found.register_hook(lambda gradient: 0 * gradient)
    return found


@pytest.mark.parametrize(
    "branch",
    [without_gradient, in_inference_mode, with_hook, Sign.apply, lambda z: torch.tanh(z).data],
)
def test_closed_gates_hide_no_gradient(branch):
    torch.manual_seed(0)
    with pytest.raises(InvalidInput, match=r"gradient .* parameter other\.(weight|bias)"):
        from_torch(Gated(branch), X)


def test_hooks_of_parameters_behind_closed_gates_are_found():
    module = Gated(torch.tanh)
    module.other.weight.register_hook(lambda gradient: 0 * gradient)
    with pytest.raises(InvalidInput, match=r"parameter other\.weight"):
        from_torch(module, X)


def test_opened_gates_have_pytorchs_kernel():
    torch.manual_seed(0)
    module = Gated(torch.relu)
    before = {name: (each.data_ptr(), each._version) for name, each in module.named_parameters()}
    apply, params = from_torch(module, X)
    assert before == {
        name: (each.data_ptr(), each._version) for name, each in module.named_parameters()
    }
    found = ntk_core.empirical_ntk(apply, {**params, "gate": np.ones(1, np.float32)}, X)
    nn.init.ones_(module.gate)
    expected = kernel_by_autograd(module, X)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


def test_parameters_outside_the_domain_are_compared_once():
    class Positive(Base):
        def hidden(self, z):
            return z * torch.log(self.head.bias.sum())

    module = Positive()
    nn.init.ones_(module.head.bias)
    apply, params = from_torch(module, X)
    expected = kernel_by_autograd(module, X)
    found = ntk_core.empirical_ntk(apply, params, X)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


class Kinked(nn.Module):
    """A function of x W + b with W = I and b = 0, which keeps the kinks where x has them."""

    def __init__(self, function):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(3))
        self.bias = nn.Parameter(torch.zeros(3))
        self.function = function

    def forward(self, x):
        return self.function(x @ self.weight + self.bias)


KINKS = np.array([[0, 1, -1], [0, 0, 0], [6, 3, -3], [2, 2, 1], [-1, -1, 0.5]], np.float32)
KINKED = {
    "relu": nn.ReLU(),
    "relu6": nn.ReLU6(),
    "relu6 in place": lambda z: nn.functional.relu6(z + 0, inplace=True),
    "hardtanh": nn.Hardtanh(),
    "hardsigmoid": nn.Hardsigmoid(),
    "hardswish": nn.Hardswish(),
    "hardswish in place": lambda z: nn.functional.hardswish(z + 0, inplace=True),
    "leaky relu": nn.LeakyReLU(0.1),
    "leaky relu in place": lambda z: nn.functional.leaky_relu(z + 0, 0.1, inplace=True),
    "logsigmoid": nn.LogSigmoid(),
    "clamp": lambda z: z.clamp(-1, 1),
    "clamp in place": lambda z: (z + 0).clamp_(-1, 1),
    "clamp between tensors": lambda z: z.clamp(-torch.ones(3), torch.ones(3)),
    "clamp from below": lambda z: z.clamp_min(0.0),
    "clamp from above": lambda z: z.clamp(max=1.0),
    "abs": torch.abs,
    "abs in place": lambda z: (z + 0).abs_(),
    "largest": lambda z: torch.stack(
        [z.max(1)[0], z.max(1, keepdim=True)[0][:, 0], z.min(1)[0]], 1
    ),
    "running maximum": lambda z: z.cummax(1)[0],
    "running minimum": lambda z: z.cummin(1)[0],
    "norm": lambda z: torch.stack([z.norm(dim=1), z.norm(p=1, dim=1), z.norm(p=3, dim=1)], 1),
    "largest entry": lambda z: z.norm(p=float("inf"), dim=1, keepdim=True) + z,
    "norm of all": lambda z: z + z.norm(),
    "unit vector": lambda z: nn.functional.normalize(z, eps=1e-3),
    "standard deviation": lambda z: z + z.std(1, keepdim=True) + z.std(1, False)[:, None],
    "deviation of all": lambda z: z + z.std() + torch.std(z, correction=0),
    "angle": lambda z: torch.atan2(z, z.flip(1)),
    "bessel": torch.special.i0,
    "sign of another": lambda z: torch.copysign(z, z.flip(1)),
    "logit": lambda z: torch.logit(z / 10 + 0.5, eps=0.2),
    "largest of all": lambda z: z + z.max(),
    "elementwise maximum": lambda z: torch.max(z, z.flip(1)),
}


@pytest.mark.parametrize("name", KINKED)
def test_subgradients_are_pytorchs(name):
    module = Kinked(KINKED[name])
    apply, params = from_torch(module, KINKS)
    slopes = jax.jit(jax.vmap(lambda row: jax.jacrev(apply)(params, row[None])["bias"][0]))
    for row, slope in zip(KINKS, slopes(KINKS), strict=True):
        outputs = module(torch.as_tensor(row[None]))[0]
        expected = []
        for output in outputs:
            (gradient,) = torch.autograd.grad(output, module.bias, retain_graph=True)
            expected.append(gradient)
        np.testing.assert_allclose(slope, np.stack(expected), rtol=1e-5, atol=1e-6)


def test_ties_of_topk_in_the_example_are_refused():
    """PyTorch states no order of equal numbers, so their slopes may differ."""
    with pytest.raises(InvalidInput, match="a gradient that differs from PyTorch's"):
        from_torch(Kinked(lambda z: z.topk(2, 1)[0]), KINKS)


class Bag(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.bag = layer
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        found = self.bag(x)
        return self.head(torch.tanh(found if found.ndim == 2 else found.mean(1)))


@pytest.mark.parametrize(
    ("layer", "given"),
    [
        (lambda: nn.Embedding(11, 4, scale_grad_by_freq=True), "embedding with scale_grad_by_freq"),
        (lambda: nn.EmbeddingBag(11, 4, mode="sum", padding_idx=0), "embedding_bag with padding"),
    ],
)
def test_arguments_that_torchax_ignores_are_refused(layer, given):
    with pytest.raises(InvalidInput, match=given):
        from_torch(Bag(layer()), np.array([[1, 2, 3], [4, 5, 6]]))


def test_padding_that_the_example_lacks_has_no_gradient():
    module = Bag(nn.Embedding(11, 4, padding_idx=0))
    apply, params = from_torch(module, TOKENS)
    padded = np.where(np.arange(TOKENS.shape[1]) > 3, 0, TOKENS)
    expected = kernel_by_autograd(module, padded)
    found = ntk_core.empirical_ntk(apply, params, padded)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


def test_modules_that_merge_adapters_in_eval_mode_are_refused():
    class Merging(Base):
        def __init__(self):
            super().__init__()
            self.low_rank = nn.Parameter(torch.ones(5, 3))

        def train(self, mode=True):
            if self.training and not mode:
                self.back.weight.data += self.low_rank
            return super().train(mode)

    module = Merging()
    before = module.back.weight.detach().clone()
    with pytest.raises(InvalidInput, match=r"eval\(\) changes its parameter back\.weight"):
        from_torch(module, X)
    assert torch.equal(module.back.weight, before)
    assert module.training


def test_nan_beside_a_subgradient_is_refused():
    class Sinc(Base):
        def hidden(self, z):
            return torch.sinc(z)

    module = Sinc()
    nn.init.zeros_(module.back.bias)
    zero = X.copy()
    zero[0] = 0
    with pytest.raises(InvalidInput, match=r"not finite in JAX.*gradient of back\."):
        from_torch(module, zero)


def test_detached_backbone_has_pytorchs_kernel():
    class Detached(Base):
        def hidden(self, z):
            return torch.tanh(z).detach()

    apply, params = from_torch(Detached(), X)
    parts = ntk_core.empirical_ntk(apply, params, X, per_layer=True)
    assert all(np.all(np.asarray(part) == 0) for name, part in parts.items() if "back" in name)


def test_module_and_session_are_left_as_they_were():
    class Counting(Base):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))
            self.drop = nn.Dropout(0.5)
            self.norm = nn.BatchNorm1d(5).eval()

        def hidden(self, z):
            self.calls += 1
            self.kept = self.norm(self.drop(torch.tanh(z)))
            return self.kept

    module = Counting().train()
    module.norm.eval()
    module(torch.as_tensor(X)).sum().backward()
    state = {name: each.clone() for name, each in module.state_dict().items()}
    gradients = {name: each.grad.clone() for name, each in module.named_parameters()}
    modes = [each.training for each in module.modules()]
    kept, random = module.kept, torch.random.get_rng_state()
    apply, params = from_torch(module, X)
    ntk_core.empirical_ntk(apply, params, X)
    assert [each.training for each in module.modules()] == modes
    assert module.kept is kept
    assert torch.equal(torch.random.get_rng_state(), random)
    for name, each in module.state_dict().items():
        assert torch.equal(each, state[name]), name
    for name, each in module.named_parameters():
        assert each.requires_grad
        assert torch.equal(each.grad, gradients[name]), name
    assert torch._C._get_privateuse1_backend_name() == "privateuseone"
    assert torch.backends.mha.get_fastpath_enabled()
    rows = torch.as_tensor(X)
    assert torch.compile(Base(), backend="eager")(rows).shape == (4, 2)
    assert nn.DataParallel(Base())(rows).shape == (4, 2)
    assert next(iter(torch.utils.data.DataLoader(rows, 2, pin_memory=True))).shape == (2, 3)


def test_function_does_not_follow_later_changes_of_the_module():
    module = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Dropout(0.5), nn.Linear(5, 2))
    apply, params = from_torch(module, X)
    before = np.asarray(apply(params, X))
    module.train()
    module(torch.as_tensor(X))  # moves the running averages
    np.testing.assert_array_equal(np.asarray(apply(params, X)), before)


@pytest.mark.parametrize(
    "example",
    [X[:, :2], X * np.nan, X[:0], 3.0, {"a": X}, ["a"], [[1.0], [1.0, 2.0]], None, X + 1j],
    ids=str,
)
def test_unsuitable_examples_are_refused(example):
    with pytest.raises(InvalidInput, match=r"^example: "):
        from_torch(Base(), example)


@pytest.mark.parametrize(
    "make",
    [
        lambda: None,
        lambda: X,
        lambda: nn.Linear,
        lambda: nn.Linear(3, 2, device="meta"),
        lambda: nn.LazyLinear(2),
        lambda: nn.Tanh(),
        lambda: nn.Linear(3, 2).requires_grad_(False),
        lambda: nn.Linear(3, 2, dtype=torch.complex64),
        lambda: torch.jit.script(nn.Linear(3, 2)),
        lambda: nn.RNN(3, 2, batch_first=True),
    ],
)
def test_unsuitable_modules_are_refused(make):
    with pytest.raises(InvalidInput, match=r"^model: "):
        from_torch(make(), X)


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float32", "float64"])
def test_types_of_modules_and_examples(kind):
    module = Base().to(getattr(torch, kind))
    for example in (X, X.astype(np.float64), (X > 0).astype(np.uint8), torch.as_tensor(X)):
        apply, params = from_torch(module, example)
        expected = module(torch.as_tensor(example).to(module.back.weight.dtype))
        found = np.asarray(apply(params, example), np.float64)
        eps = max(torch.finfo(expected.dtype).eps, 1e-7)
        np.testing.assert_allclose(found, expected.detach().double().numpy(), atol=8 * eps)


WRAPPED = {
    "plain": lambda state: state,
    "state_dict": lambda state: {"state_dict": state, "epoch": 3},
    "model": lambda state: {"model": state, "ema": state},
    "model_state_dict": lambda state: {
        "model_state_dict": state,
        "optimizer_state_dict": {"state": {0: {"exp_avg": torch.ones(2)}}, "param_groups": []},
    },
    "_orig_mod.": lambda state: {f"_orig_mod.{name}": each for name, each in state.items()},
    "module.": lambda state: {"model": {f"module.{name}": each for name, each in state.items()}},
    "bfloat16": lambda state: {name: each.bfloat16() for name, each in state.items()},
}


@pytest.mark.parametrize("end", ["pt", "safetensors"])
@pytest.mark.parametrize("spelling", WRAPPED)
def test_every_spelling_of_a_state_dictionary_opens(tmp_path, spelling, end):
    weights = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        written = WRAPPED[spelling](Tied().state_dict())
        path = tmp_path / f"{seed}.{end}"
        if end == "pt":
            torch.save(written, path)
        elif all(isinstance(each, torch.Tensor) for each in written.values()):
            tied = next(name for name in written if name.endswith("head.weight"))
            one = {name: each for name, each in written.items() if name != tied}
            safetensors.save_file(one, path)
        else:
            pytest.skip("safetensors has no nested dictionaries")
        weights.append(read_checkpoint(path))
    model = Tied()
    before = {name: each.clone() for name, each in model.state_dict().items()}
    _, w0, w1 = with_checkpoints(model, *weights, TOKENS)
    for seed, found in enumerate((w0, w1)):
        torch.manual_seed(seed)
        for name, each in Tied().named_parameters():
            stored = each.bfloat16().float() if spelling == "bfloat16" else each
            np.testing.assert_array_equal(np.asarray(found[name]), stored.detach().numpy())
    for name, each in model.state_dict().items():
        assert torch.equal(each, before[name])


def test_two_values_of_tied_weights_are_refused():
    weights = {name: each.numpy().copy() for name, each in Tied().state_dict().items()}
    other = {**weights, "head.weight": weights["head.weight"] + 1}
    with pytest.raises(InvalidInput, match="after: two values of tied weights"):
        with_checkpoints(Tied(), weights, other, TOKENS)


def test_report_from_saved_tied_language_models(tmp_path):
    transformers = pytest.importorskip("transformers", reason="make torch installs it")
    config = transformers.GPT2Config(
        n_embd=8, n_layer=1, n_head=2, n_positions=8, vocab_size=11, bos_token_id=0, eos_token_id=0
    )
    models = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        model = transformers.GPT2LMHeadModel(config).eval()
        model.save_pretrained(tmp_path / str(seed))
        models.append(model)
    read = [read_checkpoint(tmp_path / str(seed) / "model.safetensors") for seed in (0, 1)]
    assert "lm_head.weight" not in read[0]
    found = ntk_core.linearity_report(
        *with_checkpoints(transformers.GPT2LMHeadModel(config), *read, TOKENS), TOKENS
    )
    apply, params = from_torch(models[0], TOKENS)
    later = {name: each.detach().numpy() for name, each in models[1].named_parameters()}
    expected = ntk_core.linearity_report(apply, params, later, TOKENS)
    assert found.output_error == pytest.approx(expected.output_error, rel=1e-5)
    assert found.kernel_change == pytest.approx(expected.kernel_change, rel=1e-5)


def test_mean_over_equal_outputs_of_a_module():
    """Contracted inside, against PyTorch's gradients of each output in float64."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 4))
    apply, params = from_torch(module, X)
    found = ntk_core.empirical_ntk(apply, params, X, trace_outputs=True)
    kernel = kernel_by_autograd(module, X)
    np.testing.assert_allclose(found, np.einsum("ijaa->ij", kernel) / 4, rtol=1e-5)
