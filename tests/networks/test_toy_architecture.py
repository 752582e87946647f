"""A toy architecture in a copy of the tree, one file and one line.

Parsed, counted, drawn, computed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents import files_of

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys

from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.networks.sizes import layer_sizes, min_width
from linearity_lab.settings.grammar import settings, with_settings

given = {
    "architecture.kind": "toy",
    "architecture.activation": "tanh",
    "widths": [6],
    "outputs": ["linear"],
    "dataset.num_samples": 12,
    "num_seeds": 1,
    "training.max_steps": 3,
}
spec = with_settings(KernelChangeSpec(), given)
architecture, shape = spec.architecture, spec.dataset.known_shapes().input_shape
sizes = layer_sizes(architecture, 6, shape, 2)
fields = {each.name: each for each in settings(KernelChangeSpec)}
kind = fields["architecture.kind"]
assert kind.label("toy") == "scaled skip" and "σ(z⁽²⁾) − α⁽¹⁾ / 2" in kind.help
assert not fields["architecture.depth"].is_used(given)
assert fields["architecture.activation"].is_used(given)
assert KernelChangeSpec.model_validate_json(spec.model_dump_json()) == spec
assert min_width(architecture, sizes) == 6 and not architecture.has_infinite_width
assert "jax" not in sys.modules

from linearity_lab.charts.style import network_style
from linearity_lab.experiments.architectures.network_drawing import (
    drawing, drawing_words, layer_rows
)

figure = drawing(architecture, sizes, shape, 6)
kinds = [each.type for each in figure.layout.shapes]
assert (kinds.count("rect"), kinds.count("path"), list(figure.data[-1].text)) == (4, 1, ["⊕"])
assert len(layer_rows(architecture, sizes)) == 3
words = drawing_words(architecture, sizes, 6)
assert words.startswith("scaled skip, 2 hidden layers, tanh, biases")
assert network_style("toy", "softmax").title == "scaled skip, softmax output"

import jax, numpy as np

from linearity_lab import run
from linearity_lab.networks.build import build_network

net = build_network(architecture, 6, 2, "linear")
x = np.random.default_rng(0).standard_normal((4, *shape))
params = net.init(jax.random.key(0), shape)
layers = [net.layers[name] for name in params]
(w1, w2, v), a = params.values(), x.reshape(4, -1)
first = np.tanh(layers[0].apply(w1, a))
own = layers[2].apply(v, np.tanh(layers[1].apply(w2, first)) - 0.5 * first)
np.testing.assert_allclose(net.apply(params, x), own, atol=1e-5)
assert net.num_params(shape) == sum(size.num_params for size in sizes)
# Kernel and Hessian follow from the block; the oracle is the plain function.
import ntk_core

kernel = ntk_core.empirical_ntk(net, params, x)
plain = ntk_core.empirical_ntk(net.apply, params, x, route="plain")
np.testing.assert_allclose(kernel, plain, rtol=1e-4, atol=1e-5)
norm = ntk_core.hessian_norm(net, params, x[0]).value
plain = ntk_core.hessian_norm(net.apply, params, x[0], route="plain").value
np.testing.assert_allclose(norm, plain, rtol=1e-2)
*_, last = run(spec)
assert [[point.width, len(point.runs)] for point in last.result.points] == [[6, 1]]
"""


@pytest.mark.long
def test_one_file_and_one_line_add_an_architecture(tmp_path):
    for package in ("ntk_core", "linearity_lab"):
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    kinds = tmp_path / "ntk_core" / "networks" / "kinds"
    (kinds / "toy.py").write_text(files_of("own-architecture.md")["ntk_core/networks/kinds/toy.py"])
    table = (kinds / "__init__.py").read_text()
    for place, addition in (("_MODULES = (", "toy, "), ("kinds import ", "toy, ")):
        assert table.count(place) == 1
        table = table.replace(place, place + addition)
    (kinds / "__init__.py").write_text(table)
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {"PATH": "", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "program.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert not done.returncode, done.stderr
