"""Written-out networks against the classes of their architectures."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from linearity_lab.networks.build import build_network
from linearity_lab.networks.sizes import layer_sizes, min_width
from linearity_lab.networks.spec import ArchitectureSpec
from ntk_core.errors import InvalidInput
from ntk_core.networks.graphs import composition_examples, parse_composition
from ntk_core.networks.kinds import ARCHITECTURES
from tests.cases import FAST_COMPILE
from tests.smallest import network_of

SHAPE, NUM_OUTPUTS = (4, 4, 2), 3
NESTED = {
    "kind": "residual",
    "layers": [
        {"kind": "concat", "layers": [{"kind": "dense"}]},
        {"kind": "dense"},
        {"kind": "scale", "factor": 2.0},
    ],
}
SPECS = [
    *map(network_of, ARCHITECTURES),
    ArchitectureSpec(depth=3, relative_widths=(1, 0.5, 2.25), bias_layers=(1, 3), trained="first"),
    ArchitectureSpec(
        kind="bottleneck", depth=3, bottleneck_width=2, bottleneck_activation="tanh", trained="last"
    ),
    *(ArchitectureSpec(kind="resnet", depth=depth, skip_every=2) for depth in (1, 5)),
    ArchitectureSpec(kind="densenet", depth=2, drop_probability=0.5),
    ArchitectureSpec(kind="convnet", depth=2, kernel_size=2, pool_size=2, trained="hidden"),
    ArchitectureSpec(
        kind="attention", num_heads=2, width_is="head_dim", causal=True, trained="first"
    ),
    ArchitectureSpec(
        kind="adapted", depth=3, base="resnet", adapted_layers=(1, 3), trained="hidden"
    ),
    ArchitectureSpec(
        kind="transformer", head_dim=2, width_is="num_heads", num_blocks=1, mlp_factor=1.5
    ),
    ArchitectureSpec(
        kind="transformer",
        head_dim=2,
        width_is="mlp_width",
        normalization="none",
        positions="fixed",
    ),
    *(
        ArchitectureSpec(kind="composed", composition=each)
        for each in composition_examples().values()
    ),
    ArchitectureSpec(
        kind="composed",
        trained="first",
        composition=parse_composition({"layers": [{"kind": "dense"}, NESTED, NESTED]}),
    ),
]

# Settings that change counts but not a layer's inputs.
COUNTED = [
    ArchitectureSpec(depth=3, use_bias=False),
    ArchitectureSpec(kind="densenet", depth=2, relative_widths=(0.5, 3), output_weights="signs"),
    ArchitectureSpec(kind="convnet", depth=2, kernel_size=2, pool_size=2, relative_widths=(1, 2)),
    ArchitectureSpec(kind="mixed", depth=2, pool_size=4, bias_layers=(2,)),
]


def _shape(spec: ArchitectureSpec) -> tuple[int, ...]:
    """Shape of an image, or of a sequence for kinds that take no images."""
    try:
        spec.check_inputs(SHAPE)
    except InvalidInput:
        return (4, 3)
    return SHAPE


def _name(spec: ArchitectureSpec) -> str:
    return f"{spec.kind}-{len(spec.biases())}"


@pytest.mark.parametrize("spec", [*SPECS, *COUNTED], ids=_name)
def test_layers_are_counted_and_trained_as_the_network_has_them(spec):
    shape = _shape(spec)
    net, sizes = (
        build_network(spec, 7, NUM_OUTPUTS, "linear"),
        layer_sizes(spec, 7, shape, NUM_OUTPUTS),
    )
    drawn = jax.eval_shape(lambda key: net.init(key, shape), jax.random.key(0))
    names = list(net.layers)
    counted = [
        sum(drawn[name][each].size for each in ("weight", "bias") if each in drawn[name])
        for name in names
    ]
    assert [size.num_params for size in sizes] == counted
    assert sum(counted) == net.num_params(shape)
    assert min_width(spec, sizes) == net.min_width(shape)
    # Except gains and positions.
    own = [block.size(7) is not None for block in spec.written_out.trained()]
    assert spec.widths(7) == tuple(
        size.features for size, has in zip(sizes[:-1], own, strict=True) if has
    )
    assert spec.written_out.trains(spec.trained) == tuple(
        net.layers[name].trainable for name in names
    )


# Each kind and every second variant; the others are slow.
IN_TIERS = [
    pytest.param(spec, marks=pytest.mark.slow if k % 2 and k >= len(ARCHITECTURES) else [])
    for k, spec in enumerate(SPECS)
]


@pytest.mark.sampled(16)  # depths of the same architectures
@pytest.mark.first_cases(4)  # each network compiles its derivatives
@pytest.mark.parametrize("spec", IN_TIERS, ids=_name)
def test_the_skips_are_what_the_network_computes(spec):
    ways = spec.written_out.connections()
    below = [{0}]  # layers summed into each layer's output, including itself
    for number in range(1, len(spec.biases()) + 1):
        around = [
            skip.start for skip in ways.skips if (skip.kind, skip.end) == ("residual", number)
        ]
        below.append({number}.union(*(below[start] for start in around)))
    expected = []
    for number in range(1, len(below) + 1):
        arriving = [skip for skip in ways.skips if skip.end == number and skip.kind != "residual"]
        branches = any(skip.kind == "branch" for skip in arriving)  # without the layer below
        beside = set().union(*(below[skip.start] for skip in arriving))
        expected.append(beside if branches else below[number - 1] | beside)
    assert _seen(spec) == expected
    assert ways.first == tuple(
        number for number, seen in enumerate(expected, start=1) if seen == {0}
    )


def _seen(spec: ArchitectureSpec) -> list[set[int]]:
    """Oracle: layers (0: the input) on whose outputs each layer's inputs depend directly."""
    net = build_network(spec, 5, NUM_OUTPUTS, "linear")
    reached = net.layer_input_shapes(_shape(spec))
    names, draws = list(reached), np.random.default_rng(0)
    given = {
        name: jnp.asarray(draws.random((1, *net.layers[name].output_shape(reached[name]))))
        for name in names
    }

    def inputs(x, given):
        seen = {}

        def call(name, a):
            # Normalization would hide inputs from a plain sum.
            seen[name] = jnp.vdot(a, jnp.cos(jnp.arange(a.size)))
            return given[name]

        net.body(call, x)
        return seen

    x = jnp.asarray(draws.random((1, *_shape(spec))))
    changes = jax.jit(jax.jacrev(inputs, argnums=(0, 1)), compiler_options=FAST_COMPILE)(x, given)
    moves = [[changes[name][0], *(changes[name][1][other] for other in names)] for name in names]
    return [
        {number for number, change in enumerate(each) if jnp.any(change != 0)} for each in moves
    ]
