"""torch.func's tangent kernels; Hessian norms of curvlinops and hessian-eigenthings.

Imports nothing of this project but its neighbor. The two kernels are those of the PyTorch
tutorial "Neural Tangent Kernels": Jacobian contraction by vmap(jacrev), and products of
vectors by vjp and jvp.
"""

from functools import partial

import numpy as np
import torch
from curvlinops import GGNLinearOperator, HessianLinearOperator
from hessian_eigenthings import HessianOperator, lanczos
from scipy.sparse.linalg import eigsh
from side import norm, serve, weights
from torch.func import jacrev, jvp, vjp, vmap

MOST_BYTES = 2**29  # for one call of vmap; the tutorial's way would need as many gradients as n² C
LANCZOS_STEPS = (15, 20, 30, 50, 80)


def dense(params, x):
    """Outputs (C,) of one input (d,)."""
    *hidden, last = params
    a = x
    for weight in hidden:
        a = torch.relu(a @ weight / weight.shape[0] ** 0.5)
    return a @ last / last.shape[0] ** 0.5


def convolutional(params, x):
    """Outputs (C,) of one input (channels, height, width)."""
    *hidden, last = params
    a = x[None]
    for weight in hidden:
        size = weight.shape[-1]
        low = (size - 1) // 2
        padded = torch.nn.functional.pad(
            a, (low, size - 1 - low, low, size - 1 - low), mode="circular"
        )
        a = torch.relu(torch.nn.functional.conv2d(padded, weight) / weight[0].numel() ** 0.5)
    return a.reshape(-1) @ last / last.shape[0] ** 0.5


def jacobian_contraction(apply, params, x):
    jacobians = vmap(jacrev(apply), (None, 0))(params, x)
    return sum(torch.einsum("Naf,Mbf->NMab", j, j) for j in (each.flatten(2) for each in jacobians))


def vector_products(apply, params, x):
    num_outputs = params[-1].shape[-1]

    def block(x1, x2):
        _, pull = vjp(lambda w: apply(w, x1), params)

        def one_output(cotangent):
            _, pushed = jvp(lambda w: apply(w, x2), (params,), pull(cotangent))
            return pushed

        return vmap(one_output)(torch.eye(num_outputs))

    gradients_bytes = 4 * num_outputs * sum(weight.numel() for weight in params)
    size = max(1, min(len(x), MOST_BYTES // gradients_bytes))
    row = vmap(block, (None, 0), chunk_size=size)
    return vmap(row, (0, None), chunk_size=max(1, size // len(x)))(x, x)


def kernels(request):
    x, params = weights(request, torch.from_numpy)
    apply = {"dense": dense, "convnet": convolutional}[request["kind"]]
    if request["kind"] == "convnet":
        x = x.movedim(-1, 1).contiguous()
        params = [*(weight.permute(3, 2, 0, 1).contiguous() for weight in params[:-1]), params[-1]]
    ways = {"jacobian_contraction": jacobian_contraction, "vector_products": vector_products}
    return {
        name: (partial(ways[name], apply, tuple(params), x), norm)
        for name in request["implementations"]
    }


class Scaled(torch.nn.Module):
    """z = W a / √fan_in."""

    def __init__(self, weight: torch.Tensor):
        super().__init__()
        self.weight = torch.nn.Parameter(weight.T.contiguous())

    def forward(self, a: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(a, self.weight) / self.weight.shape[1] ** 0.5


class OutputItself(torch.nn.Module):
    """Identity as loss: the Hessian is that of the output."""

    reduction = "sum"

    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return prediction.sum()


def hessians(request):
    """Norms to a relative tolerance; each call starts from another random vector."""
    x, matrices = weights(request, torch.from_numpy)
    batch = (x[None], torch.zeros(1, 1))
    hidden = [layer for weight in matrices[:-1] for layer in (Scaled(weight), torch.nn.Tanh())]
    net = torch.nn.Sequential(*hidden, Scaled(matrices[-1]))
    tolerance = request["tolerance"]
    calls = iter(range(1_000_000))
    by_curvlinops = HessianLinearOperator(
        net, OutputItself(), list(net.parameters()), [batch], check_deterministic=False, num_data=1
    ).to_scipy()
    by_eigenthings = HessianOperator(net, [batch], lambda model, batch: model(batch[0]).sum())

    def arpack():
        start = (
            np.random.default_rng(next(calls))
            .normal(size=by_curvlinops.shape[0])
            .astype(np.float32)
        )
        values = eigsh(
            by_curvlinops, k=1, which="LM", tol=tolerance, return_eigenvectors=False, v0=start
        )
        return abs(float(values[0]))

    steps: list[int] = []

    def fixed_steps():
        # It takes a number of steps instead of a tolerance; the first call finds the smallest
        # sufficient number.
        for number in [*steps] or LANCZOS_STEPS:
            found = lanczos(by_eigenthings, k=1, max_iter=number, tol=tolerance, seed=next(calls))
            if steps or bool(found.converged[0]):
                break
        steps[:] = [number]
        return abs(float(found.eigenvalues[0]))

    def describe(value):
        return {"norm": value, **({"lanczos_steps": steps[0]} if steps else {})}

    ways = {"curvlinops": arpack, "hessian-eigenthings": fixed_steps}
    return {name: (ways[name], describe) for name in request["implementations"]}


class Plain(torch.nn.Module):
    """A model of benchmarks/curvature.py from its weights."""

    def __init__(self, kind, weights):
        super().__init__()
        self.w = torch.nn.ParameterList(weights)
        self.forward = {
            "dense": self.dense,
            "convnet": self.convnet,
            "transformer": self.transformer,
        }[kind]

    def dense(self, x):
        for weight in list(self.w)[:-1]:
            x = torch.tanh(x @ weight)
        return x @ self.w[-1]

    def convnet(self, x):
        a = x.movedim(-1, 1)
        for weight in list(self.w)[:-1]:
            a = torch.tanh(torch.nn.functional.conv2d(a, weight.permute(3, 2, 0, 1), padding=1))
        return a.movedim(1, -1).reshape(len(x), -1) @ self.w[-1]

    def transformer(self, x):
        queries, keys, values, projection, up, down, head = self.w
        scores = (x @ queries) @ (x @ keys).transpose(1, 2) / x.shape[-1] ** 0.5
        x = x + torch.softmax(scores, -1) @ (x @ values) @ projection
        x = x + torch.tanh(x @ up) @ down
        return x.mean(1) @ head


def curvature(request):
    """Products and the norm of loss matrices, at the mean of the square loss over two outputs."""
    x, matrices = weights(request, torch.from_numpy)
    with np.load(request["file"], allow_pickle=False) as arrays:
        y, v = (torch.from_numpy(arrays[name]) for name in ("y", "v"))
    net = Plain(request["kind"], [torch.nn.Parameter(each) for each in matrices])
    given = (net, torch.nn.MSELoss(), list(net.parameters()), [(x, y)])
    hessian = HessianLinearOperator(*given, check_deterministic=False)
    matrix = GGNLinearOperator(*given, check_deterministic=False)
    by_scipy = hessian.to_scipy()
    calls = iter(range(1_000_000))

    def largest():
        start = np.random.default_rng(next(calls)).normal(size=len(v)).astype(np.float32)
        values = eigsh(
            by_scipy, k=1, which="LM", tol=request["tolerance"], return_eigenvectors=False, v0=start
        )
        return abs(float(values[0]))

    return {
        "hessian product": (lambda: (hessian @ v).detach(), norm),
        "gauss-newton product": (lambda: (matrix @ v).detach(), norm),
        "hessian norm": (largest, norm),
    }


serve(
    {"kernels": kernels, "hessians": hessians, "curvature": curvature},
    ("torch", "curvlinops-for-pytorch", "hessian-eigenthings", "scipy", "numpy"),
)
