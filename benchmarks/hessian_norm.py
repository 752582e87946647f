"""Time the Hessian norm against a public full-space operator on the same weights, in one run.

    python -m venv torch-env
    torch-env/bin/pip install torch==2.13.0 curvlinops-for-pytorch scipy numpy
    python benchmarks/hessian_norm.py --torch-python torch-env/bin/python --widths 300 3000

Both sides get one network with 3 hidden tanh layers, one input and the same relative accuracy (1e-2). The public side is
curvlinops' Hessian operator of the model output, handed to SciPy's ARPACK (``eigsh``, k=1, largest magnitude); since PyTorch and
JAX should not share a process, it runs in a child that reads the weights from a file. Prints one JSON object with medians, spread,
compilation listed separately, agreement of the two norms, peak memory and the environment.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

INPUT_SIZE = 10
DEPTH = 3
TOLERANCE = 1e-2

TORCH_SIDE = '''
import json, sys, time
import numpy as np, scipy, torch
from importlib.metadata import version
from curvlinops import HessianLinearOperator
from scipy.sparse.linalg import eigsh

path, tolerance, repeats = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
data = np.load(path, allow_pickle=False)
weights = [torch.from_numpy(data[f"w{i}"]) for i in range(len(data.files) - 1)]
x = torch.from_numpy(data["x"])

class Scaled(torch.nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = torch.nn.Parameter(weight.T.contiguous())
    def forward(self, a):
        return torch.nn.functional.linear(a, self.weight) / self.weight.shape[1] ** 0.5

layers = []
for weight in weights[:-1]:
    layers += [Scaled(weight), torch.nn.Tanh()]
net = torch.nn.Sequential(*layers, Scaled(weights[-1]))

class Output(torch.nn.Module):
    """The "loss" whose Hessian is meant: the output itself."""
    reduction = "sum"
    def forward(self, prediction, target):
        return prediction.sum()

params = [p for p in net.parameters()]
operator = HessianLinearOperator(net, Output(), params, [(x[None], torch.zeros(1, 1))], check_deterministic=False)
linear = operator.to_scipy()
times = []
for repeat in range(repeats):
    start = time.perf_counter()
    values = eigsh(linear, k=1, which="LM", tol=tolerance, return_eigenvectors=False, v0=np.random.default_rng(repeat).normal(size=linear.shape[0]).astype(np.float32))
    times.append(time.perf_counter() - start)
packages = {name: version(name) for name in ("torch", "curvlinops-for-pytorch", "scipy", "numpy")}
print(json.dumps({"times_s": times, "norm": abs(float(values[0])), "threads": torch.get_num_threads(), "packages": packages}))
'''


def summary(times: list[float]) -> dict[str, float]:
    """Median and spread of repeated timings, in seconds."""
    return {"median_s": statistics.median(times), "min_s": min(times), "max_s": max(times), "num_repeats": len(times)}


def ours(width: int, repeats: int, weights_path: Path | None) -> dict[str, Any]:
    """Compile time, warm times, norm and memory of the restricted route."""
    import jax
    import numpy as np

    from ntk_core import FullyConnected, hessian_norm

    net = FullyConnected(width=width, depth=DEPTH, activation="tanh")
    params = jax.block_until_ready(jax.jit(net.init, static_argnums=1)(jax.random.key(0), (INPUT_SIZE,)))
    x = jax.random.normal(jax.random.key(1), (INPUT_SIZE,))
    if weights_path is not None:
        arrays = {f"w{index}": np.asarray(params[name]["weight"]) for index, name in enumerate(net.layers)}
        np.savez(weights_path, x=np.asarray(x), **arrays)
    before = peak_mib()

    def timed() -> float:
        start = time.perf_counter()
        hessian_norm(net, params, x, tolerance=TOLERANCE)
        return time.perf_counter() - start

    first = timed()
    times = [timed() for _ in range(repeats)]
    found = hessian_norm(net, params, x, tolerance=TOLERANCE)
    return {
        **summary(times),
        "compile_s": first - statistics.median(times),
        "norm": found.value,
        "residual": found.residual,
        "converged": found.converged,
        "num_matvecs": found.num_matvecs,
        "num_params": net.num_params((INPUT_SIZE,)),
        "peak_growth_mib": peak_mib() - before,
    }


def peak_mib() -> float:
    """Peak resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def public(torch_python: str, weights_path: Path, repeats: int) -> dict[str, Any]:
    """Times and norm of curvlinops with ARPACK on the weights in the file."""
    command = [torch_python, "-c", TORCH_SIDE, str(weights_path), str(TOLERANCE), str(repeats)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    return {**summary(answer["times_s"]), "norm": answer["norm"], "threads": answer["threads"], "packages": answer["packages"]}


def measure(width: int, torch_python: str | None) -> dict[str, Any]:
    """One row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.npz"
        row: dict[str, Any] = {"width": width, "depth": DEPTH, "ours": ours(width, 9, path if torch_python else None)}
        if torch_python:
            row["public"] = public(torch_python, path, 5 if width < 1000 else 1)
            row["speedup"] = row["public"]["median_s"] / row["ours"]["median_s"]
            row["relative_difference"] = abs(row["public"]["norm"] / row["ours"]["norm"] - 1)
    return row


def environment() -> dict[str, Any]:
    """What the numbers depend on."""
    import jax

    return {
        "python": platform.python_version(),
        "jax": jax.__version__,
        "device": str(jax.devices()[0]),
        "machine": platform.machine(),
        "num_cpus": os.cpu_count(),
        "load_average": os.getloadavg()[0],
    }


def growth(rows: list[dict[str, Any]], side: str) -> float | None:
    """Exponent of the median time against the number of parameters, between the smallest and the largest width."""
    timed = [(row["ours"]["num_params"], row[side]["median_s"]) for row in rows if side in row]
    if len(timed) < 2:
        return None
    (small, fast), (large, slow) = timed[0], timed[-1]
    return math.log(slow / fast) / math.log(large / small)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--widths", type=int, nargs="+", default=[300, 3000])
    parser.add_argument("--torch-python", help="interpreter with torch and curvlinops; without it only our side is timed")
    arguments = parser.parse_args()
    rows = [measure(width, arguments.torch_python) for width in sorted(arguments.widths)]
    result = {
        "tolerance": TOLERANCE,
        "rows": rows,
        "growth_exponent_in_num_params": {side: growth(rows, side) for side in ("ours", "public")},
        "environment": environment(),
    }
    json.dump(result, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
