"""Kernel of a residual network of PyTorch, traced and by vmap(jacrev).

The one side script that imports this package, since it is what is measured: in an environment with PyTorch.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from side import norm, serve
from torch import nn
from torch.func import functional_call, jacrev, vmap

sys.path.insert(0, str(Path(__file__).parents[2]))


class Block(nn.Module):
    """Two convolutions with group normalization, and a shortcut."""

    def __init__(self, before: int, channels: int, stride: int):
        super().__init__()
        groups = min(8, channels)
        self.first = nn.Conv2d(before, channels, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.GroupNorm(groups, channels), nn.GroupNorm(groups, channels)])
        changes = stride > 1 or before != channels
        self.around = nn.Conv2d(before, channels, 1, stride, bias=False) if changes else nn.Identity()

    def forward(self, x):
        a = torch.relu(self.norms[0](self.first(x)))
        return torch.relu(self.norms[1](self.second(a)) + self.around(x))


def residual(channels: int, blocks: int, num_outputs: int) -> nn.Module:
    """ResNet-18 for small images: channels double at half the size."""
    layers: list[nn.Module] = [nn.Conv2d(3, channels, 3, 1, 1, bias=False), nn.ReLU()]
    before = channels
    for stage in range(4):
        for index in range(blocks):
            layers.append(Block(before, channels * 2**stage, 2 if stage and not index else 1))
            before = channels * 2**stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, num_outputs))


def kernels(request):
    torch.manual_seed(0)
    net = residual(request["channels"], request["blocks"], request["num_outputs"]).eval()
    x = np.random.default_rng(0).normal(size=(request["num_samples"], 3, request["size"], request["size"]))
    x = x.astype(np.float32)
    num_params = sum(each.numel() for each in net.parameters())
    ways = {"traced": by_tracing, "jacobian_contraction": by_jacobians}
    way = request["way"]
    return {way: (ways[way](net, x), lambda kernel: {**norm(kernel), "num_params": num_params})}


def by_tracing(net, x):
    import jax

    import ntk_core

    apply, params = ntk_core.from_torch(net, x[:1])
    return lambda: jax.block_until_ready(ntk_core.empirical_ntk(apply, params, x))


def by_jacobians(net, x):
    params = {name: each.detach() for name, each in net.named_parameters()}
    rows = torch.from_numpy(x)

    def apply(params, row):
        return functional_call(net, params, (row[None],))[0]

    def work():
        jacobians = vmap(jacrev(apply), (None, 0))(params, rows)
        return sum(torch.einsum("Naf,Mbf->NMab", j, j) for j in (each.flatten(2) for each in jacobians.values()))

    return work


serve({"kernels": kernels}, ("torch", "torchax", "jax", "numpy"))
