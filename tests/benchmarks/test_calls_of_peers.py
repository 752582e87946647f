"""Calls of the peers in docs/coming-from.md, in the peers' environments.

The numbers of our calls below them.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
from typing import Any

import jax
import numpy as np
import pytest

from benchmarks.peers.process import ENVIRONMENTS
from tests.documents import ROOT, program

PAGE = ROOT / "docs/coming-from.md"
JAX_START = """
import jax.numpy as jnp
import neural_tangents as nt
from neural_tangents import stax

given = {name: jnp.asarray(each) for name, each in given.items()}
params = {"enc": {"w": given["w"], "b": given["b"]}, "head": {"w": given["v"]}}
x = given["x"]
"""
TORCH_START = """
import curvlinops, scipy, torch
from laplace import Laplace
from torch import nn
from torch.func import functional_call, grad, jacrev, jvp, vmap
from torch.utils.data import DataLoader, TensorDataset

x, y = torch.from_numpy(given["x"]), torch.from_numpy(given["y"])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.head = nn.Linear(5, 32), nn.Linear(32, 3, bias=False)
        self.enc.weight.data = torch.from_numpy(given["w"].T.copy())
        self.enc.bias.data = torch.from_numpy(given["b"])
        self.head.weight.data = torch.from_numpy(given["v"].T.copy())

    def forward(self, x):
        return self.head(torch.tanh(self.enc(x)))


model = Model()
params = {name: each.detach() for name, each in model.named_parameters()}
loader = DataLoader(TensorDataset(x, y), batch_size=8)
indices = torch.arange(160, 160 + 32 + 96)


def fnet_single(params, x):
    return functional_call(model, params, (x[None],))[0]


def loss(params):
    return 0.5 * ((functional_call(model, params, (x,)) - y) ** 2).sum(1).mean()
"""
SIDE = """
import ast, json, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
given = dict(np.load(sys.argv[1]))
start, calls = json.load(open(sys.argv[2]))
exec(start)
found = []
def norm(value):
    if isinstance(value, dict):
        return float(np.sqrt(sum(norm(each) ** 2 for each in value.values())))
    if hasattr(value, "detach"):
        value = value.detach()
    return float(np.linalg.norm(np.asarray(value, np.float64)))
for node in ast.parse(calls).body:
    if isinstance(node, ast.Expr):
        value = eval(ast.unparse(node.value))
        values = value if isinstance(value, tuple) else (value,)
        found += [norm(each) for each in values if each is not None]
    else:
        exec(ast.unparse(node))
print(json.dumps(found))
"""


def calls_of(section: str) -> str:
    """Return the comments of a section that are Python."""
    text = PAGE.read_text(encoding="utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    lines = []
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        for line in block.splitlines():
            if line.startswith("# "):
                try:
                    ast.parse(line[2:])
                except SyntaxError:
                    continue
                lines.append(line[2:])
    return "\n".join(lines)


@pytest.fixture(scope="module")
def ours() -> dict[str, Any]:
    """Values of the page's own code."""
    found: dict[str, Any] = {}
    exec(compile(program(PAGE), str(PAGE), "exec"), found)
    return found


def norms(*values: Any) -> list[float]:
    return [float(np.linalg.norm(np.asarray(each, np.float64))) for each in values]


def expected(section: str, ours: dict[str, Any]) -> list[float]:
    """Norms of our values, in the units of the peer."""
    n = len(ours["x"])
    match section:
        case "neural-tangents":
            kernels = norms(ours["kernel"], ours["traced"], ours["streamed"])
            outputs = ours["apply"](ours["params"], ours["x"])
            return [*kernels, *norms(ours["limit"], ours["covariance"], outputs)]
        case "curvlinops":
            values = ours["hessian"].norm().value, ours["gauss_newton"].trace().value
            return [2 * n * each for each in values]
        case "laplace":
            return [n * ours[name].norm().value for name in ("last_layer", "part")]
        case "torch.func":
            product = norms(*jax.tree.leaves(ours["product"]))
            return [*norms(ours["kernel"], ours["change"]), float(np.linalg.norm(product))]
    raise AssertionError(section)


@pytest.mark.long  # starts the peers
@pytest.mark.parametrize(
    ("section", "peer", "start"),
    [
        ("neural-tangents", "neural-tangents", JAX_START),
        ("curvlinops", "torch", TORCH_START),
        ("laplace", "torch", TORCH_START),
        ("torch.func", "torch", TORCH_START),
    ],
)
def test_calls_of_peers_give_our_numbers(section, peer, start, ours, tmp_path):
    python = ENVIRONMENTS / peer / "bin/python"
    if not python.exists():
        pytest.skip("make bench installs the peers")
    given = {
        "w": ours["params"]["enc"]["w"],
        "b": ours["params"]["enc"]["b"],
        "v": ours["params"]["head"]["w"],
        "x": ours["x"],
        "y": ours["y"],
    }
    np.savez(tmp_path / "given.npz", **{name: np.asarray(each) for name, each in given.items()})
    if peer == "neural-tangents":
        (definition,) = [
            node for node in ast.parse(program(PAGE)).body if isinstance(node, ast.FunctionDef)
        ]
        start += ast.unparse(definition)
    (tmp_path / "calls.json").write_text(json.dumps([start, calls_of(section)]))
    command = [str(python), "-c", SIDE, str(tmp_path / "given.npz"), str(tmp_path / "calls.json")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout.splitlines()[-1])
    wanted = expected(section, ours)
    tolerances = [1e-3] * len(wanted)  # all are in float32
    if section == "curvlinops":
        tolerances[1] = 0.02  # two random estimates of a trace
    assert len(found) == len(wanted)
    for own, other, tolerance in zip(found, wanted, tolerances, strict=True):
        assert own == pytest.approx(other, rel=tolerance)
