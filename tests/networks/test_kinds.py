"""What is read from a network written out is what the class of its kind computes, for every kind."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from ntk_core.networks.build import build_network
from ntk_core.networks.compositions import composition_examples, parse_composition
from ntk_core.networks.kinds import ARCHITECTURES
from ntk_core.networks.sizes import layer_sizes, min_width
from ntk_core.networks.spec import ArchitectureSpec

SHAPE, NUM_OUTPUTS = (4, 4, 2), 3
NESTED = {
    "kind": "residual",
    "layers": [{"kind": "concat", "layers": [{"kind": "dense"}]}, {"kind": "dense"}, {"kind": "scale", "factor": 2.0}],
}
SPECS = [
    ArchitectureSpec(depth=3, relative_widths=(1, 0.5, 2.25), bias_layers=(1, 3), trained="first"),
    ArchitectureSpec(kind="bottleneck", depth=3, bottleneck_width=2, bottleneck_activation="tanh", trained="last"),
    *(ArchitectureSpec(kind="resnet", depth=depth, skip_every=every) for depth in (1, 4, 5) for every in (1, 2)),
    *(ArchitectureSpec(kind="densenet", depth=depth, drop_probability=depth % 2 / 2) for depth in (1, 2, 3)),
    ArchitectureSpec(kind="convnet", depth=2, kernel_size=2, pool_size=2, trained="hidden"),
    ArchitectureSpec(kind="mixed", depth=3, readout="global-average"),
    *(ArchitectureSpec(kind="composed", composition=each) for each in composition_examples().values()),
    ArchitectureSpec(
        kind="composed", trained="first", composition=parse_composition({"layers": [{"kind": "dense"}, NESTED, NESTED]})
    ),
]


def _name(spec: ArchitectureSpec) -> str:
    return f"{spec.kind}-{len(spec.biases())}"


def test_every_kind_is_among_them():
    assert {spec.kind for spec in SPECS} == set(ARCHITECTURES)


@pytest.mark.parametrize("spec", SPECS, ids=_name)
def test_layers_are_counted_and_trained_as_the_network_has_them(spec):
    net, sizes = build_network(spec, 7, NUM_OUTPUTS, "linear"), layer_sizes(spec, 7, SHAPE, NUM_OUTPUTS)
    drawn = jax.eval_shape(lambda key: net.init(key, SHAPE), jax.random.key(0))
    counted = [sum(drawn[name][each].size for each in ("weight", "bias") if each in drawn[name]) for name in drawn]
    assert [size.num_params for size in sizes] == counted
    assert sum(counted) == net.num_params(SHAPE)
    assert min_width(spec, sizes) == net.min_width(SHAPE)
    assert spec.widths(7) == tuple(size.features for size in sizes[:-1])
    assert spec.written_out.trains(spec.trained) == tuple(net.layers[name].trainable for name in drawn)


@pytest.mark.parametrize("spec", SPECS, ids=_name)
def test_the_skips_are_what_the_network_computes(spec):
    ways = spec.written_out.ways()
    below = [{0}]  # what is added up to what each layer gives, itself included
    for number in range(1, len(spec.biases()) + 1):
        around = [skip.start for skip in ways.skips if (skip.kind, skip.end) == ("residual", number)]
        below.append({number}.union(*(below[start] for start in around)))
    expected = []
    for number in range(1, len(below) + 1):
        beside = [skip.start for skip in ways.skips if (skip.kind, skip.end) == ("concat", number)]
        expected.append(below[number - 1].union(*(below[start] for start in beside)))
    assert _seen(spec) == expected
    assert ways.first == tuple(number for number, seen in enumerate(expected, start=1) if seen == {0})


def _seen(spec: ArchitectureSpec) -> list[set[int]]:
    """Oracle: whose outputs each layer's inputs depend on, 0 the network's input, when nothing passes a layer."""
    net = build_network(spec, 5, NUM_OUTPUTS, "linear")
    names = list(net.layer_input_shapes(SHAPE))
    shapes = {name: net.layers[name].output_shape(shape) for name, shape in net.layer_input_shapes(SHAPE).items()}
    given = {name: 1.0 + jnp.zeros((1, *shape)) for name, shape in shapes.items()}

    def inputs(x, given):
        seen = {}

        def call(name, a):
            seen[name] = jnp.sum(a)
            return given[name]

        net.body(call, x)
        return seen

    changes = jax.jacrev(inputs, argnums=(0, 1))(jnp.ones((1, *SHAPE)), given)
    moves = [[changes[name][0], *(changes[name][1][other] for other in names)] for name in names]
    return [{number for number, change in enumerate(each) if jnp.any(change != 0)} for each in moves]
