"""Types for users: every public name, and a user's program under strict checks."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import linearity_lab
import ntk_core
from tests.compiler_flags import QUICK_ENVIRONMENT

ROOT = Path(__file__).resolve().parents[2]
NAMES = [
    f"{package.__name__}.{name}"
    for package in (ntk_core, linearity_lab)
    for name in dir(package)
    if not name.startswith("_")
]
PROGRAM = """
import jax.numpy as jnp
from jax import Array

import linearity_lab
import ntk_core
from linearity_lab.experiments import (
    ExperimentSpec, HessianResult, HessianSpec, KernelChangeSpec, ResultValue, preset
)
from ntk_core.graphs import example_graphs, graph_verdict


def model(params: dict[str, Array], x: Array) -> Array:
    return jnp.tanh(x @ params["w"]) @ params["v"]


def measured(net: ntk_core.FullyConnected, key: Array, x: Array, y: Array) -> tuple[float, float]:
    history = ntk_core.train(net, net.init(key, 3), x, y, max_steps=20, learning_rate=0.1)
    before: Array = ntk_core.empirical_ntk(net, net.init(key, 3), x)
    change = ntk_core.kernel_change(ntk_core.empirical_ntk(net, history.params, x), before)
    mean: Array = ntk_core.empirical_ntk(net, history.params, x, trace_outputs=True)
    each: Array = ntk_core.empirical_ntk(net, history.params, x, equal_outputs=True)
    trace: float = ntk_core.gauss_newton(net, history.params, x, y).trace().value
    norms = ntk_core.hessian_norm(net, history.params, x)
    assert bool(norms.converged.all())
    return float(change), float(norms.value.mean())


def shape(weights: dict[str, Array], x: Array) -> tuple[int, ...]:
    linear = ntk_core.linearize(model, weights)
    return ntk_core.empirical_ntk(model, weights, x).shape + linear(weights, x).shape


try:
    training = {"max_steps": 3}
    result = linearity_lab.compute("liu-fig1-left", widths=(4, 8), num_seeds=1, training=training)
except linearity_lab.InvalidSpec as error:
    print(error.problems[0])
    raise
steps: int = result.spec.training.max_steps
widths = [point.width + 1 for point in result.points]
number: int = linearity_lab.estimate(KernelChangeSpec(widths=(4,), num_seeds=1)).num_points
hessian: HessianSpec = linearity_lab.experiments.preset("liu-table1").spec
of_spec: HessianResult = linearity_lab.compute(HessianSpec(widths=(4,), num_seeds=1))
of_preset: HessianResult = linearity_lab.compute(preset("liu-table1"), widths=(4,))


def of_any(spec: ExperimentSpec, name: str) -> list[ResultValue]:
    return [
        linearity_lab.compute(spec),
        linearity_lab.compute(name),
        linearity_lab.compute(preset(name)),
    ]


rows: tuple[int, ...] = linearity_lab.load_dataset("sine", num_samples=8).x.shape
verdicts = {}
for name, graph in example_graphs().items():
    verdicts[name] = graph_verdict(graph, 100, (5,)).becomes_linear
"""

MEASURES = """
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import ntk_core

Params = dict[str, dict[str, Array]]
Batch = dict[str, Array]


def encoder(params: Params, x: Batch) -> Array:
    embedded = params["table"]["w"][x["ids"]] * x["mask"][..., None]
    mean = embedded.sum(axis=1) / x["mask"].sum(axis=1, keepdims=True)
    return jnp.tanh(mean @ params["body"]["w"]) @ params["head"]["w"]


def drawn(key: Array) -> Params:
    shapes = {"table": (11, 4), "body": (4, 8), "head": (8, 3)}
    keys = jax.random.split(key, len(shapes))
    return {
        name: {"w": jax.random.normal(each, shape) / shape[0] ** 0.5}
        for each, (name, shape) in zip(keys, shapes.items(), strict=True)
    }


def is_adapted(name: str) -> bool:
    return name.startswith("head")


params = drawn(jax.random.key(0))
x: Batch = {"ids": jnp.arange(12).reshape(4, 3) % 11, "mask": jnp.ones((4, 3))}
y = jax.nn.one_hot(jnp.arange(4) % 3, 3)

kernel: Array = ntk_core.empirical_ntk(encoder, params, x, trainable="head.*")
traced: Array = ntk_core.empirical_ntk(encoder, params, x, trace_outputs=True, route="plain")
parts: dict[str, Array] = ntk_core.empirical_ntk(encoder, params, x, per_layer=True)
diagonal: float = float(jnp.trace(traced))
change = float(ntk_core.kernel_change(kernel, 1.1 * kernel))

norm = ntk_core.hessian_norm(encoder, params, x, -1, batched=True, trainable=is_adapted)
norms: list[float] = [float(each) for each in np.asarray(norm.value)]
all_outputs = ntk_core.hessian_norm(encoder, params, x, None, batched=True)
one: Batch = {"ids": x["ids"][0], "mask": x["mask"][0]}
of_last = ntk_core.hessian_eigenpairs(encoder, params, one, -1, num_wanted=1).eigenvalues[0]
of_each = ntk_core.hessian_eigenpairs(encoder, params, one, None)
leading_of_each: list[int] = [pairs.num_matvecs for pairs in of_each]

hessian = ntk_core.loss_hessian(encoder, params, x, y, "cross-entropy")
matrix = ntk_core.gauss_newton(encoder, params, x, y, "cross-entropy", trainable=["head.w"])
expected = ntk_core.fisher(encoder, params, x, loss="cross-entropy")
size: tuple[int, int] = matrix.shape
largest = float(hessian.norm().value)
leading = hessian.eigenpairs(2).eigenvalues[0]
trace: float = expected.trace().value

linear = ntk_core.linearize(encoder, params)
outputs: Array = linear(params, x)
history = ntk_core.train(encoder, params, x, y, trainable="head", max_steps=2, learning_rate=0.1)
after = history.params
report = ntk_core.linearity_report(encoder, params, after, x)
print(of_last, leading_of_each)
print(diagonal, change, norms, size, largest, leading, trace, outputs.shape, report)


def dense(params: dict[str, Array], x: Array) -> Array:
    return jax.nn.relu(x @ params["w"]) @ params["v"]


wide = {"w": jnp.ones((3, 16)), "v": jnp.ones((16, 1))}
limit = ntk_core.infinite_width(dense, wide, jnp.ones((2, 3)), weight_std={"*": 0.1})
entry: float = limit.ntk[0, 0].item()
"""


@pytest.mark.long  # mypy reads all code behind the public API
def test_program_and_public_names_pass_mypy_strict(tmp_path):
    """Without this project's mypy settings, as for users.

    The only error is a name that does not exist.
    """
    config, program, measures, names = (
        tmp_path / name for name in ("mypy.ini", "program.py", "measures.py", "names.py")
    )
    config.write_text(
        "[mypy]\nstrict = True\n[mypy-optax.*,scipy.*,lazy_loader.*]\nignore_missing_imports = "
        "True\n"
    )
    program.write_text(PROGRAM)
    measures.write_text(MEASURES)
    names.write_text(
        "\n".join(
            [
                "import linearity_lab, ntk_core",
                "ntk_core.nothing",
                *(f"reveal_type({n})" for n in NAMES),
            ]
        )
    )
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file",
        str(config),
        "--follow-imports=silent",
    ]
    # As installed.
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "MYPYPATH": str(ROOT),
    }
    shown = subprocess.run(
        [*command, str(program), str(measures), str(names)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    assert re.findall(r"error: (.*)", shown) == [
        'Module has no attribute "nothing"  [attr-defined]'
    ]
    kinds = re.findall(r"note: Revealed type is (.*)$", shown, flags=re.MULTILINE)
    revealed = dict(zip(NAMES, kinds, strict=True))
    assert [name for name, kind in revealed.items() if kind == '"Any"'] == []
    parts = ("net: ntk_core.", "Network", "x1: ", "per_layer: Literal[True]", "Array")
    assert all(part in revealed["ntk_core.empirical_ntk"] for part in parts)


@pytest.mark.long  # pyright reads all code behind the public API
def test_programs_pass_pyright(tmp_path):
    settings = {"typeCheckingMode": "standard", "extraPaths": [str(ROOT)], "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "measures.py").write_text(MEASURES + "wrong: int = ntk_core.infinite_width\n")
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable]
    shown = subprocess.run(
        [*command, "--outputjson"], cwd=tmp_path, capture_output=True, text=True, check=False
    ).stdout
    problems = json.loads(shown)["generalDiagnostics"]
    assert [each["rule"] for each in problems] == ["reportAssignmentType"], problems


@pytest.mark.long  # compiles ten measures
def test_measures_run(tmp_path):
    """The program also runs, and its numbers are finite."""
    ended = subprocess.run(
        [sys.executable, "-c", MEASURES],
        cwd=tmp_path,
        env={**os.environ, **QUICK_ENVIRONMENT, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "nan" not in ended.stdout
