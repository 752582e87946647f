"""A toy architecture in a copy of the tree, one file and one line: parsed, counted, drawn, computed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tutorials import files_of

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, sys

from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.networks.sizes import layer_sizes, min_width
from ntk_core.settings.grammar import settings
from ntk_core.settings.grammar import with_settings

given = {"architecture.kind": "toy", "architecture.activation": "tanh", "widths": [6], "outputs": ["linear"],
         "dataset.num_samples": 12, "num_seeds": 1, "training.max_steps": 3}
spec = with_settings(KernelChangeSpec(), given)
architecture, shape = spec.architecture, spec.dataset.known_shapes().input_shape
sizes = layer_sizes(architecture, 6, shape, 2)
(kind,) = (each for each in settings(KernelChangeSpec) if each.name == "architecture.kind")
depth, activation = (
    next(each for each in settings(KernelChangeSpec) if each.name == f"architecture.{name}").is_used(given)
    for name in ("depth", "activation")
)
found = {
    "choice": [kind.label("toy"), "σ(z⁽²⁾) − α⁽¹⁾ / 2" in kind.help, depth, activation],
    "stored": KernelChangeSpec.model_validate_json(spec.model_dump_json()) == spec,
    "counted": [sum(size.num_params for size in sizes), min_width(architecture, sizes)],
    "limit": architecture.has_infinite_width,
    "light": "jax" not in sys.modules,
}

from linearity_lab.charts.style import network_style
from linearity_lab.views.architectures.network_drawing import drawing, drawing_words, layer_rows

figure = drawing(architecture, sizes, shape, 6)
found["drawing"] = {
    "boxes": sum(each.type == "rect" for each in figure.layout.shapes),
    "arcs": sum(each.type == "path" for each in figure.layout.shapes),
    "marks": list(figure.data[-1].text),
    "rows": len(layer_rows(architecture, sizes)),
    "words": drawing_words(architecture, sizes, 6),
    "style": network_style("toy", "softmax").title,
}

import jax, numpy as np

from ntk_core import run
from ntk_core.networks.build import build_network

net = build_network(architecture, 6, 2, "linear")
x = np.random.default_rng(0).standard_normal((4, *shape))
params = net.init(jax.random.key(0), shape)
layers = [net.layers[name] for name in params]
(w1, w2, v), a = params.values(), x.reshape(4, -1)
first = np.tanh(layers[0].apply(w1, a))
own = layers[2].apply(v, np.tanh(layers[1].apply(w2, first)) - 0.5 * first)
found["network"] = [net.num_params(shape), bool(np.allclose(net.apply(params, x), own, atol=1e-5))]
*_, last = run(spec)
found["points"] = [[point.width, len(point.runs)] for point in last.result.points]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    tree = tmp_path_factory.mktemp("tree")
    for package in ("ntk_core", "linearity_lab"):
        shutil.copytree(ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
    kinds = tree / "ntk_core" / "networks" / "kinds"
    (kinds / "toy.py").write_text(files_of("own-architecture.md")["ntk_core/networks/kinds/toy.py"])
    table = (kinds / "__init__.py").read_text()
    assert table.count("_MODULES = (") == 1
    (kinds / "__init__.py").write_text(table.replace("_MODULES = (", '_MODULES = ("toy", '))
    (tree / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tree,
        env={"PATH": "", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_toy_is_in_the_form_and_in_specs(found):
    assert found["choice"] == ["scaled skip", True, False, True]
    assert found["stored"]
    assert not found["limit"]
    assert found["light"]


def test_it_is_counted_and_computed_as_it_is_written(found):
    (counted, smallest), (parameters, is_own) = found["counted"], found["network"]
    assert (counted, smallest) == (parameters, 6)
    assert is_own
    assert found["points"] == [[6, 1]]


def test_it_is_drawn(found):
    drawing = found["drawing"]
    assert (drawing["boxes"], drawing["arcs"], drawing["marks"], drawing["rows"]) == (4, 1, ["⊕"], 3)
    assert drawing["words"].startswith("scaled skip, 2 hidden layers, tanh, biases")
    assert drawing["style"] == "scaled skip, softmax output"
