"""Custom layers: JSON round trips, errors with their place, shapes and verdict by counting."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from linearity_lab.experiments.hessian.network import templates
from linearity_lab.experiments.hessian.spec import HessianSpec
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.runs import canonical_json, parse_spec, spec_digest
from linearity_lab.settings.grammar import InvalidSpec, with_settings
from ntk_core.errors import InvalidInput
from ntk_core.networks.graphs import (
    BLOCKS,
    Composition,
    composition_examples,
    graph_verdict,
    lay_out,
    parse_composition,
)

DENSE, TANH = {"kind": "dense", "width": "m"}, {"kind": "activation", "function": "tanh"}
CONVOLUTION = {"kind": "convolution", "width": "m"}


def composed(*layers) -> Composition:
    return parse_composition({"layers": list(layers)})


@pytest.mark.parametrize("name", composition_examples())
def test_an_example_survives_the_round_trip_through_its_text(name):
    example = composition_examples()[name]
    assert parse_composition(str(example)) == example
    assert hash(parse_composition(str(example))) == hash(example)
    spaced = json.dumps(json.loads(str(example)), indent=3)
    assert str(parse_composition(spaced)) == str(example)


REFUSED = [
    ("[", "layers", "text that is no JSON in line 1, column 2"),
    ("[" * 100_000, "layers", "100,000 characters"),
    ("{}", "layers", "nothing"),
    ('{"layers": [3]}', "layers.1", "3"),
    ('{"layers": [{"kind": "dense"}], "code": "x"}', "layers", "code"),
    ('{"layers": [{"kind": "exec"}]}', "layers.1.kind", "exec"),
    ('{"layers": [{"kind": "dense", "widht": "m"}]}', "layers.1", "widht"),
    ('{"layers": [{"kind": "dense", "width": "65m"}]}', "layers.1.width", "65m"),
    ('{"layers": [{"kind": "dense", "width": 1e99}]}', "layers.1.width", "1e+99"),
    ('{"layers": [{"kind": "dense", "bias": "yes"}]}', "layers.1.bias", "yes"),
    (
        '{"layers": [{"kind": "activation", "function": "os.system"}]}',
        "layers.1.function",
        "os.system",
    ),
    ('{"layers": [{"kind": "scale", "factor": NaN}]}', "layers.1.factor", "nan"),
    (
        '{"layers": [{"kind": "residual", "layers": [{"kind": "dense", "width": -1}]}]}',
        "layers.1.layers.1.width",
        "-1",
    ),
    ('{"layers": [{"kind": "activation", "function": "erf"}]}', "layers", "no layer with weights"),
]


@pytest.mark.parametrize(
    ("text", "field", "given"), REFUSED, ids=[given for _, _, given in REFUSED]
)
def test_what_is_wrong_is_named_by_its_place(text, field, given):
    with pytest.raises(InvalidInput) as error:
        parse_composition(text)
    assert (error.value.field, error.value.given) == (field, given)


def test_too_many_and_too_deep_layers_are_refused():
    inner: list[Any] = [DENSE]
    for _ in range(4):
        inner = [{"kind": "residual", "layers": inner}]
    with pytest.raises(InvalidInput, match="5 deep"):
        parse_composition({"layers": inner})
    with pytest.raises(InvalidInput, match="more than 64 layers"):
        parse_composition({"layers": [DENSE] * 40 + [{"kind": "residual", "layers": [DENSE] * 30}]})


MISFITS = [
    ([CONVOLUTION], (5,), "layers.1.kind"),
    ([{"kind": "average-pool"}, DENSE], (5,), "layers.1.kind"),
    ([DENSE, {"kind": "global-average"}], (4, 4, 1), "layers.2.kind"),
    ([CONVOLUTION, {"kind": "average-pool", "size": 3}], (8, 8, 1), "layers.2.size"),
    ([{"kind": "convolution", "kernel_size": 5}], (8, 4, 1), "layers.1.kernel_size"),
    (
        [DENSE, {"kind": "residual", "layers": [{"kind": "dense", "width": 3}]}],
        (5,),
        "layers.2.layers",
    ),
    (
        [CONVOLUTION, {"kind": "concat", "layers": [{"kind": "average-pool"}]}],
        (8, 8, 1),
        "layers.2.layers",
    ),
]


@pytest.mark.parametrize(
    ("layers", "shape", "field"), MISFITS, ids=[field for _, _, field in MISFITS]
)
def test_layers_that_do_not_fit_the_inputs_are_named(layers, shape, field):
    with pytest.raises(InvalidInput) as error:
        lay_out(composed(*layers).steps, 8, shape)
    assert error.value.field == field


def test_layers_that_fit_one_width_are_refused_for_another():
    composition = str(
        composed(DENSE, {"kind": "residual", "layers": [{"kind": "dense", "width": 30}]})
    )
    settings = {"architecture.kind": "composed", "architecture.composition": composition}
    assert with_settings(KernelChangeSpec(), {**settings, "widths": [30]}).architecture.widths(
        30
    ) == (30, 30)
    with pytest.raises(
        InvalidSpec, match=r"architecture.composition: layers.2.layers: 30 inside, 100 around"
    ):
        with_settings(KernelChangeSpec(), {**settings, "widths": [30, 100]})


@pytest.mark.parametrize(
    "name", ["fully-connected", "bottleneck", "residual", "concat", "convolution"]
)
def test_the_verdict_is_that_of_the_theorems(name):
    composition, shape = composition_examples()[name], (8, 8, 1) if name == "convolution" else (5,)
    assert graph_verdict(composition, 100, shape).outcome == (
        "not wide" if name == "bottleneck" else "wide"
    )
    assert graph_verdict(composition, 100, shape, output="softmax").outcome == "nonlinear output"


def test_bypassed_narrow_layer_is_left_to_measurement():
    around = composed(DENSE, {"kind": "concat", "layers": [{"kind": "dense", "width": 2}, TANH]})
    assert graph_verdict(around, 100, (5,)).outcome == "undecided"


def random_json(rng: random.Random, depth: int = 0):
    """Random JSON, half of it layers."""
    if rng.random() < 0.25:
        return rng.choice(
            [
                None,
                True,
                -1,
                0,
                2.5,
                "m",
                "3m",
                "x" * 99,
                [],
                {},
                10**400,
                float("inf"),
                [[1]],
                "dense",
            ]
        )
    layer = {"kind": rng.choice([*BLOCKS, "lambda", 3])}
    settings = [
        "width",
        "function",
        "bias",
        "size",
        "kernel_size",
        "padding",
        "factor",
        "layers",
        "__class__",
    ]
    for name in rng.sample(settings, rng.randint(0, 3)):
        layer[name] = rng.choice(
            ["m", "2m", 3, True, "tanh", "zero", 0.5, -1, None, [DENSE], [TANH, DENSE]]
        )
    if depth < 6 and layer["kind"] in ("residual", "concat"):
        layer["layers"] = [random_json(rng, depth + 1) for _ in range(rng.randint(0, 3))]
    return layer


def test_any_text_is_a_network_or_one_sentence():
    outcomes = []
    for seed in range(200):
        rng = random.Random(seed)
        text = json.dumps(
            {"layers": [DENSE, *(random_json(rng) for _ in range(rng.randint(0, 4)))]}
        )
        if seed % 3 == 0:
            at = rng.randrange(len(text))
            text = (
                text[:at]
                + rng.choice(['"', "}", "\0", "m", ",", "[", "é", "1e9"])
                + text[at + rng.randint(0, 9) :]
            )
        try:
            composition = parse_composition(text)
            lay_out(composition.steps, rng.choice([1, 7, 100]), rng.choice([(5,), (8, 8, 3), (1,)]))
        except InvalidInput as error:
            outcomes.append(str(error))
        else:
            assert parse_composition(str(composition)) == composition
            outcomes.append("network")
    assert "network" in outcomes
    assert [text for text in outcomes if "\n" in text or len(text) > 500] == []


def test_spec_with_custom_layers_has_a_canonical_text():
    spec = with_settings(KernelChangeSpec(), {"architecture.kind": "composed"})
    again = parse_spec(json.loads(canonical_json(spec)))
    assert again == spec
    assert "depth" not in canonical_json(spec)
    other = with_settings(
        spec, {"architecture.composition": str(composition_examples()["bottleneck"])}
    )
    assert spec_digest(other) != spec_digest(spec)
    with pytest.raises(InvalidSpec, match=r"architecture.depth"):
        with_settings(spec, {"architecture.depth": 3})


def test_kinked_layers_report_an_almost_everywhere_hessian():
    relu = str(composed(DENSE, {"kind": "activation", "function": "relu"}))
    spec = with_settings(
        HessianSpec(networks=templates("composed")), {"networks.0.composition": relu}
    )
    assert spec.networks[0].almost_everywhere.startswith("With ReLU, ")
