"""The public side of ``benchmarks.hessian_norm``: curvlinops' operator under SciPy's ARPACK, in its own environment.

Called as ``python curvlinops_side.py weights.npz tolerance repeats``; prints one line of JSON. Imports nothing of this
project, because PyTorch and JAX do not share an environment here.
"""

import json
import sys
import time
from importlib.metadata import version

import numpy as np
import torch
from curvlinops import HessianLinearOperator
from scipy.sparse.linalg import eigsh


class Scaled(torch.nn.Module):
    """z = W a / √fan_in."""

    def __init__(self, weight: torch.Tensor):
        super().__init__()
        self.weight = torch.nn.Parameter(weight.T.contiguous())

    def forward(self, a: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(a, self.weight) / self.weight.shape[1] ** 0.5


class OutputItself(torch.nn.Module):
    """In place of a loss: the Hessian that is meant is that of the output."""

    reduction = "sum"

    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return prediction.sum()


def main(path: str, tolerance: float, repeats: int) -> None:
    data = np.load(path, allow_pickle=False)
    weights = [torch.from_numpy(data[f"w{index}"]) for index in range(len(data.files) - 1)]
    hidden = [layer for weight in weights[:-1] for layer in (Scaled(weight), torch.nn.Tanh())]
    net = torch.nn.Sequential(*hidden, Scaled(weights[-1]))
    batch = (torch.from_numpy(data["x"])[None], torch.zeros(1, 1))
    parameters = list(net.parameters())
    operator = HessianLinearOperator(
        net, OutputItself(), parameters, [batch], check_deterministic=False, num_data=1
    ).to_scipy()
    times, norm = [], 0.0
    for repeat in range(repeats):
        start = np.random.default_rng(repeat).normal(size=operator.shape[0]).astype(np.float32)
        began = time.perf_counter()
        values = eigsh(operator, k=1, which="LM", tol=tolerance, return_eigenvectors=False, v0=start)
        times.append(time.perf_counter() - began)
        norm = abs(float(values[0]))
    packages = {name: version(name) for name in ("torch", "curvlinops-for-pytorch", "scipy", "numpy")}
    print(json.dumps({"times_s": times, "norm": norm, "threads": torch.get_num_threads(), "packages": packages}))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
