"""One entry adds an activation, output, …: in a copy of the packages, with no other change.

docs/architecture.md names the places; each test edits exactly these and uses the new name.
"""

from pathlib import Path

import pytest

from tests.copied_product import copy_product, edit, run

pytestmark = pytest.mark.slow

CHOICES = "ntk_core/networks/choices.py"
LAWS = "linearity_lab/data/_laws.py"
DATASETS = "linearity_lab/data/datasets.toml"
TRAINING = "ntk_core/dynamics/choices.py"
FUNCTIONS = "linearity_lab/dashboard/live/functions.js"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of both packages."""
    return copy_product(tmp_path)


OUTPUT = """
import math
import re
import linearity_lab
from linearity_lab.charts.style import network_style, registry
from linearity_lab.dashboard.live import source
from linearity_lab.dashboard.live.settings import CHOICES, LiveSettings
from linearity_lab.experiments import KernelChangeSpec, preset
from linearity_lab.settings.grammar import settings

fields = {each.name: each for each in settings(KernelChangeSpec)}
assert fields["outputs"].label("gudermann") == "Gudermannian output"
small = {"widths": (4,), "num_seeds": 1, "outputs": ("gudermann",), "training": {"max_steps": 2}}
result = linearity_lab.compute("liu-fig1-left", dataset={"num_samples": 6}, **small)
assert result.points[0].runs[0].output == "gudermann"
linearity_lab.compute("liu-fig1-left", architecture={"activation": "gudermann"}, **small)

assert "gudermann" in CHOICES["activation"] and "gudermann" in CHOICES["output"]
assert source.words()["choices"]["output"]["gudermann"] == "Gudermannian"
targets = [y for _, y in LiveSettings(output="gudermann", target="zigzag").learned()]
assert max(map(abs, targets)) < math.pi / 2
assert '"gudermann"' in source.module() and "gudermann(z, value, slope)" in source.model_module()
looks = [look for meaning, look in registry().items() if meaning.endswith(" gudermann")]
assert len(set(looks)) == len(looks) > 16
assert network_style("resnet", "gudermann").title == "ResNet, Gudermannian output"
"""


@pytest.mark.long
def test_one_entry_and_one_function_add_an_output_with_live(copy: Path) -> None:
    entry = """
    Function(
        "gudermann",
        "Gudermannian",
        "2 arctan(tanh(z / 2))",
        lambda z: 2 * _jax().numpy.arctan(_jax().numpy.tanh(z / 2)),
        values=(-math.pi / 2, math.pi / 2),
        is_output=True,
        live=("activation", "output"),
    ),
)
SAME = Term("""
    edit(copy, CHOICES, "\n)\nSAME = Term(", entry)
    function = """
  gudermann(z, value, slope) {
    for (let i = 0; i < z.length; i++) {
      value[i] = 2 * Math.atan(Math.tanh(z[i] / 2));
      slope[i] = 1 / Math.cosh(z[i]);
    }
  },
  linear(z, value, slope) {"""
    edit(copy, FUNCTIONS, "\n  linear(z, value, slope) {", function)
    run(copy, OUTPUT)


LOSS = """
import jax
import jax.numpy as jnp
import linearity_lab
from linearity_lab.experiments import (
    DepthWidthSpec, DynamicsSpec, KernelChangeSpec, LazySpec, LearningRateSpec, OptimizationSpec,
)
from linearity_lab.experiments.own_model.point import OwnModelSpec
from linearity_lab.settings.grammar import settings, with_settings
from ntk_core import dynamics

one, two = jnp.array([[0.5, 3.0]]), jnp.zeros((1, 2))
assert float(dynamics.Loss("linear", "huber")(one, two)) == 0.125 + 2.5
x, y = jnp.linspace(-1, 1, 6)[:, None], jnp.linspace(-1, 1, 6)[:, None]
net = ntk_core.FullyConnected(width=8, num_outputs=1, use_bias=False)
history = ntk_core.train(net, net.init(jax.random.key(0), (1,)), x, y, loss="huber", max_steps=20)
assert history.network.loss[-1] < history.network.loss[0]
for kind in (DynamicsSpec, OwnModelSpec):
    (field,) = [each for each in settings(kind) if each.name == "loss"]
    assert field.label("huber") == "Huber loss" and "|F − y|" in field.help
for kind in (KernelChangeSpec, LazySpec, OptimizationSpec, DepthWidthSpec):
    (field,) = [each for each in settings(kind) if each.name == "training.loss"]
    assert field.label("huber") == "Huber loss"
    tiny = {"widths": (4,), "num_seeds": 1, "training.loss": "huber", "training.max_steps": 3}
    more = {"outputs": ("linear",)}
    if kind is DepthWidthSpec:
        more = {"depths": (2,), "num_kernels": 20}
    run = linearity_lab.compute(with_settings(kind(), {**tiny, **more})).points[0].runs[0]
    assert run.num_steps == 3
tiny = {"widths": (4,), "num_seeds": 1, "loss": "huber", "max_steps": 3, "rates": (1.0,)}
assert linearity_lab.compute(with_settings(LearningRateSpec(), tiny)).points[0].runs
for data in ("sine", "gaussian-mixture"):
    small = {
        "dataset.name": data, "dataset.num_samples": 6, "num_test": 4, "loss": "huber",
        "widths": (4,), "outputs": ("linear",), "num_seeds": 1, "infinite_width": False,
        "training.max_steps": 5,
    }
    spec = with_settings(DynamicsSpec(), small)
    assert linearity_lab.estimate(spec).seconds > 0
    (run,) = linearity_lab.compute(spec).points[0].runs
    assert run.num_steps == 5 and run.sup_change > 0
"""


@pytest.mark.long
def test_one_entry_adds_a_loss(copy: Path) -> None:
    entry = """
    LossTerm(
        "huber",
        "Huber loss",
        "(1/n) Σ h(F − y), h(r) = r²/2 for |F − y| ≤ 1, |r| − ½ beyond",
        mean=lambda outputs, y: _mean(_optax().huber_loss(outputs, y)),
    ),
)


def usual_loss("""
    edit(copy, TRAINING, "\n)\n\n\ndef usual_loss(", entry)
    run(copy, LOSS)


MEASURE = """
import linearity_lab
from linearity_lab.experiments import OptimizationSpec
from linearity_lab.experiments.optimization import compute
from linearity_lab.settings.grammar import with_settings

small = {"widths": (4,), "num_seeds": 1, "outputs": ("linear",), "rates": (1.0,),
         "training.max_steps": 5, "training.num_records": 2, "dataset.num_samples": 6}
(run,) = linearity_lab.compute(with_settings(OptimizationSpec(), small)).points[0].runs
((steps, sizes),) = compute.MEASURED
assert steps == run.steps == (0, 1, 5) and sizes[0] > 0
"""
MEASURED_CLASS = """
MEASURED = []


class Sizes(Measure):
    def __init__(self):
        self.steps, self.sizes = [], []

    def record(self, step, models):
        self.steps.append(step)
        self.sizes.append(float((models["network"].outputs ** 2).sum()))

    def result(self):
        return tuple(self.steps), tuple(self.sizes)


def compute("""


def test_one_class_adds_a_measure(copy: Path) -> None:
    place = "linearity_lab/experiments/optimization/compute.py"
    edit(copy, place, "\ndef compute(", MEASURED_CLASS)
    train = "    beside.descend(measures, progress)\n"
    more = "    sizes = Sizes()\n    beside.descend([*measures, sizes], progress)\n"
    edit(copy, place, train, f"{more}    MEASURED.append(sizes.result())\n")
    run(copy, MEASURE)


METHOD = """
import linearity_lab
from linearity_lab.charts.style import method_style
from linearity_lab.experiments import (
    DepthWidthSpec, DynamicsSpec, GeneralizationSpec, KernelChangeSpec, LazySpec, LearningRateSpec,
    OptimizationSpec,
)
from linearity_lab.settings.grammar import settings, with_settings

(field,) = [each for each in settings(DynamicsSpec) if each.name == "methods"]
assert field.label("nesterov") == "Nesterov momentum"
small = {
    "methods": ("gradient-descent", "nesterov"), "dataset.num_samples": 6, "num_test": 4,
    "widths": (4,), "outputs": ("linear",), "num_seeds": 1, "infinite_width": False,
    "training.max_steps": 5,
}
result = linearity_lab.compute(with_settings(DynamicsSpec(), small))
assert [run.method for run in result.points[0].runs] == ["gradient-descent", "nesterov"]
assert method_style("nesterov").title == "Nesterov momentum"
for kind in (KernelChangeSpec, LazySpec, OptimizationSpec, GeneralizationSpec, DepthWidthSpec):
    names = {each.name: each for each in settings(kind)}
    assert names["training.optimizer"].label("nesterov") == "Nesterov momentum"
    assert "nesterov" in dict(names["training.momentum"].conditions)["training.optimizer"]
tiny = {"widths": (4,), "num_seeds": 1, "outputs": ("linear",), "training.max_steps": 3,
        "training.optimizer": "nesterov", "training.momentum": 0.5}
(run,) = linearity_lab.compute(with_settings(KernelChangeSpec(), tiny)).points[0].runs
assert run.num_steps == 3
tiny = {"widths": (4,), "num_seeds": 1, "method": "nesterov", "max_steps": 3, "rates": (1.0,)}
assert linearity_lab.compute(with_settings(LearningRateSpec(), tiny)).points[0].runs
"""


@pytest.mark.long
def test_one_entry_adds_an_optimizer(copy: Path) -> None:
    entry = """
    Method(
        "nesterov",
        "Nesterov momentum",
        "v ← μ v + ∇L(w), w ← w − η (∇L(w) + μ v)",
        direction=lambda momentum: _optax().trace(decay=momentum, nesterov=True),
        takes_momentum=True,
    ),
    Method(
        "adam","""
    edit(copy, TRAINING, '\n    Method(\n        "adam",', entry)
    run(copy, METHOD)


MOONS_LAW = """class Moons(Drawn):
    \"\"\"Two half circles, one class each.\"\"\"

    def shapes(self, options: Options) -> DatasetShapes:
        return shapes_of(options, (2,), ("upper", "lower"))

    def draw(self, options: Options, num: int, split: int) -> Samples:
        labels = uniform_integers(stream(options["seed"], split, 0), (num,), 2)
        angle = math.pi * stream(options["seed"], split, 1).random(num)
        side = 1 - 2 * labels
        x = np.stack([side * np.cos(angle) + labels, side * np.sin(angle) + labels / 2], axis=1)
        x += options["noise"] * stream(options["seed"], split, 2).standard_normal((num, 2))
        return x, labels


class Curve(DatasetInfo):"""
MOONS_ENTRY = """[datasets.crescents]
law = "Moons"
title = "crescents"
formula = "points of two half circles, with noise"
uses = ["num_samples", "num_test", "noise", "seed", "standardize", "targets"]
origin = "Drawn here; the noise is our choice. No licence is needed."

[datasets.sine]"""
MOONS = """
import linearity_lab
from linearity_lab.experiments import KernelChangeSpec
from linearity_lab.settings.grammar import settings

data = linearity_lab.load_dataset("crescents", num_samples=40, num_test=8, noise=0.1)
assert data.x.shape == (40, 2) and data.class_names == ("upper", "lower")
(field,) = [each for each in settings(KernelChangeSpec) if each.name == "dataset.name"]
assert field.label("crescents") == "crescents"
small = {"widths": (4,), "num_seeds": 1, "outputs": ("linear",), "training": {"max_steps": 2}}
moons = {"name": "crescents", "num_samples": 6}
result = linearity_lab.compute("liu-fig1-left", dataset=moons, **small)
assert result.spec.dataset.name == "crescents"
"""


@pytest.mark.long
def test_one_class_and_one_entry_add_a_data_set(copy: Path) -> None:
    edit(copy, LAWS, "class Curve(DatasetInfo):", MOONS_LAW)
    edit(copy, DATASETS, "[datasets.sine]", MOONS_ENTRY)
    run(copy, MOONS)


BLOCKS = "ntk_core/networks/graphs/_blocks.py"
STEPS = "ntk_core/networks/graphs/_steps.py"
LAYERED = "ntk_core/networks/architectures/_layered.py"
LAYERS = "ntk_core/networks/architectures/_layers.py"
EXPORTS = "ntk_core/networks/graphs/__init__.py"

COMPOSED = """
import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from ntk_core import empirical_ntk, hessian_norm
from ntk_core.networks.architectures import Composed
from ntk_core.networks.graphs import parse_composition

jax.config.update("jax_enable_x64", True)
x = jax.random.normal(jax.random.key(1), (4, 3))
dense = {"kind": "dense", "width": "m"}
tanh = {"kind": "activation", "function": "tanh"}

def made(*layers):
    net = Composed(parse_composition({"layers": list(layers)}), width=6)
    return net, net.init(jax.random.key(0), (3,))

def jacobian(net, params):
    flat, back = ravel_pytree(params)
    return jax.jacobian(lambda w: net.apply(back(w), x)[:, 0])(flat)
"""
STEP = """
net, params = made(dense, tanh, {"kind": "negate"})
plain, _ = made(dense, tanh)
np.testing.assert_allclose(net.apply(params, x), -plain.apply(params, x))
np.testing.assert_allclose(empirical_ntk(net, params, x), empirical_ntk(plain, params, x))
found = hessian_norm(net, params, x[0], tolerance=1e-9).value
np.testing.assert_allclose(found, hessian_norm(plain, params, x[0], tolerance=1e-9).value)
"""


def test_one_class_and_one_value_add_a_fixed_step(copy: Path) -> None:
    before = "class FixedPositionsBlock(_Block):"
    block = 'class NegateBlock(_Block):\n    """−a."""\n\n    kind: Literal["negate"] = "negate"\n'
    edit(copy, BLOCKS, before, f"{block}\n\n{before}")
    edit(copy, BLOCKS, "    | ScaleBlock\n", "    | ScaleBlock\n    | NegateBlock\n")
    edit(copy, EXPORTS, "    NormalizeBlock,\n", "    NegateBlock,\n    NormalizeBlock,\n")
    case = "            case graphs.ScaleBlock():\n"
    edit(
        copy,
        LAYERED,
        case,
        f"            case graphs.NegateBlock():\n                return -a\n{case}",
    )
    run(copy, COMPOSED + STEP)


SHIFT = '''@dataclass(frozen=True)
class Shift(Layer):
    """z = a + w, one number for each feature, 1 at initialization."""

    scaling: Scaling = NTK_SCALING

    def output_shape(self, input_shape: Shape) -> Shape:
        return input_shape

    def init(self, key: Array, input_shape: Shape) -> Params:
        return {"weight": jnp.ones(input_shape[-1:])}

    def apply(self, params: Params, a: Array) -> Array:
        return a + params["weight"]


@dataclass(frozen=True)
class MaskedDense(Layer):'''
LAYER = """
net, params = made(dense, {"kind": "shift"}, tanh)
slopes = jacobian(net, params)
assert net.num_params((3,)) == 3 * 6 + 6 + 6 == slopes.shape[1]
found = empirical_ntk(net, params, x)[:, :, 0, 0]
np.testing.assert_allclose(found, slopes @ slopes.T, rtol=1e-9)
"""


def test_a_layer_with_weights_is_added_at_its_places(copy: Path) -> None:
    edit(copy, LAYERS, "@dataclass(frozen=True)\nclass MaskedDense(Layer):", SHIFT)
    before = "class ActivationBlock(_Block):"
    block = (
        'class ShiftBlock(_AsBelow):\n    """a + w."""\n\n    kind: Literal["shift"] = "shift"\n'
    )
    edit(copy, BLOCKS, before, f"{block}\n\n{before}")
    edit(copy, BLOCKS, "    | GainBlock\n", "    | GainBlock\n    | ShiftBlock\n")
    trained = "TokenDenseBlock | GainBlock | PositionsBlock"
    edit(copy, BLOCKS, trained, f"{trained} | ShiftBlock")
    edit(copy, EXPORTS, "    TokenDenseBlock,\n", "    ShiftBlock,\n    TokenDenseBlock,\n")
    both = "registered.GainBlock | registered.ShiftBlock"
    edit(copy, STEPS, "registered.GainBlock):  # one factor", f"{both}):  # one number")
    edit(
        copy,
        STEPS,
        "registered.GainBlock):\n        return shape",
        f"{both}):\n        return shape",
    )
    made = "        if isinstance(block, graphs.GainBlock):\n"
    shift = "        if isinstance(block, graphs.ShiftBlock):\n"
    edit(
        copy, LAYERED, made, f"{shift}            return Shift(scaling, trainable=trained)\n{made}"
    )
    edit(copy, LAYERED, "| graphs.GainBlock()\n", "| graphs.GainBlock() | graphs.ShiftBlock()\n")
    edit(copy, LAYERED, "Parts, Scaling, Shape\n", "Parts, Scaling, Shape, Shift\n")
    run(copy, COMPOSED + LAYER)
