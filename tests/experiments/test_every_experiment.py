"""Every experiment: named refusals of bad settings, JSON round trips, growing costs."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from linearity_lab.runs import EXPERIMENTS, Result, Spec, check_size, estimate
from linearity_lab.runs.gallery import GALLERY
from linearity_lab.settings.grammar import InvalidSpec, with_settings
from ntk_core.errors import TooLarge
from ntk_core.networks.graphs import dense_graph, shared_graph

LINEAR = {"kind": "fully-connected"}
NUMBERS = {"dataset.name": "gaussian-mixture"}
# (settings, the refused one, the message)
REFUSED: dict[str, list[tuple[dict[str, Any], str, str]]] = {
    "explore": [
        ({"dataset.name": "sine"}, "outputs", "other outputs, for data without classes"),
        ({"num_inputs": 25}, "num_inputs", "at most 24"),
        ({"architecture.kind": "convnet"}, "architecture.kind", "with images"),
    ],
    "kernel_change": [
        ({"dataset.name": "sine"}, "outputs", "other outputs, for data without classes"),
        ({"measured": "velocity", "keep_kernels": True}, "keep_kernels", "off if only"),
        ({"measured": "velocity", "infinite_width": True}, "infinite_width", "off if only"),
        (
            {"architecture.depth": 3, "architecture.relative_widths": [1, 2]},
            "architecture.relative_widths",
            "",
        ),
        (
            {"architecture.kind": "resnet", "architecture.relative_widths": [1]},
            "architecture.relative_widths",
            "",
        ),
        (
            {"architecture.use_bias": False, "architecture.bias_layers": [1]},
            "architecture.bias_layers",
            "",
        ),
        ({"architecture.bottleneck_activation": "tanh"}, "architecture.bottleneck_activation", ""),
        (
            {"dataset.name": "cifar2", "architecture.kind": "convnet", "architecture.pool_size": 3},
            "architecture.pool_size",
            "",
        ),
        (
            {
                "dataset.name": "cifar2",
                "architecture.kind": "mixed",
                "architecture.depth": 2,
                "architecture.kernel_size": 9,
            },
            "architecture.kernel_size",
            "",
        ),
    ],
    "architectures": [
        ({**NUMBERS, "architectures.1.kind": "convnet"}, "architectures.1.kind", "with images"),
        ({"architectures": 5}, "architectures", "1 to 4 groups of settings"),
    ],
    "hessian": [
        (
            {"dataset.name": "gaussian-mixture", "networks": [{"kind": "convnet"}]},
            "networks.0.kind",
            "with images",
        ),
        ({"networks": [LINEAR, LINEAR]}, "networks.1.kind", "differs from all earlier ones"),
        ({"networks": [LINEAR] * 13}, "networks", "1 to 12 groups of settings"),
        (
            {"networks": 1, "networks.0.output": "softmax", "dataset.name": "sine"},
            "networks.0.output",
            "",
        ),
        ({"dataset.num_samples": 6, "num_inputs": 7}, "num_inputs", "1 to 6"),
        ({"radii": [0]}, "radii", "a number above 0"),
        ({"swept": "num_tokens"}, "swept", "unless the data are generated sequences"),
        (
            {"swept": "num_tokens", "widths": [2, 4], "dataset.name": "majority"},
            "widths",
            "an odd number",
        ),
    ],
    "dynamics": [
        ({"dataset.name": "sine", "outputs": ["softmax"]}, "outputs", ""),
        ({"dataset.name": "sine", "loss": "cross-entropy"}, "loss", "square"),
        ({"methods": ["sgd"], "batch_size": 10_000}, "batch_size", "the number of training points"),
        (
            {"dataset.name": "gaussian-mixture", "architecture.kind": "convnet"},
            "architecture.kind",
            "only with images",
        ),
        ({"architecture.kind": "densenet"}, "infinite_width", ""),
    ],
    "optimization": [
        ({"dataset.name": "sine"}, "outputs", "other outputs, for data without classes"),
        ({"dataset.num_samples": 301}, "dataset.num_samples", "at most 300"),
    ],
    "adding": [
        ({"scale": 0}, "scale", "a number other than 0"),
        ({"num_tasks": 9}, "num_tasks", "8"),
        ({"dataset.num_samples": 3, "num_tasks": 4}, "num_tasks", "at most 3"),
        ({"dataset.name": "sine", "outputs": ["softmax"]}, "outputs", ""),
    ],
    "attribution": [
        ({"dataset.num_samples": 1, "num_removed": 2}, "dataset.num_samples", "at least 2"),
        ({"dataset.num_samples": 5, "num_removed": 6}, "num_removed", "at most 5"),
        ({"dataset.num_samples": 1500}, "dataset.num_samples", "a kernel of n·C rows is inverted"),
    ],
    "lazy": [
        (
            {"architecture.initial_output": "symmetric"},
            "architecture.initial_output",
            "the compared outputs at w₀",
        ),
        ({"richness": [0.6]}, "richness", ""),
    ],
    "depth_width": [({"depths": [65]}, "depths", ""), ({"num_kernels": 19}, "num_kernels", "20")],
    "dag": [
        ({"graph": "{"}, "graph", "JSON"),
        (
            {"graph": {"groups": [{"name": "a", "size": 0}], "edges": []}},
            "graph",
            "groups.a.size: 0",
        ),
        ({"graph": str(dense_graph(2)).replace('"b"', '"c"', 1)}, "graph", "edges"),
        ({"compared": ["shared-weights"]}, "compared", "images"),
        ({"graph": str(shared_graph(1))}, "graph", "images"),
        ({"dataset.name": "sine", "outputs": ["softmax"]}, "outputs", ""),
    ],
    "early_time": [
        ({"swept": "input_dim", "dataset": {"name": "cifar2"}}, "swept", ""),
        ({"network": {"kind": "convnet"}}, "network.kind", "convnet-1d"),
        (
            {"network": {"kind": "convnet-1d"}, "dataset": {"name": "cifar2"}},
            "network.kind",
            "convnet with images",
        ),
        ({"values": [3]}, "values", "even numbers"),
        ({"dataset": {"input_dim": 2, "spectrum": [1, 2, 3]}}, "dataset.input_dim", "at least 3"),
        (
            {"training": {"batch_size": 6000}},
            "training.batch_size",
            "the number of training points",
        ),
        ({"training": {"rate_hidden": 0, "rate_output": 0}}, "training.rate_output", "above 0"),
        ({"kernel_samples": 6000}, "kernel_samples", "the number of training points"),
        ({"dataset": {"name": "cifar2", "num_samples": 20000}}, "dataset.num_samples", ""),
        (
            {"swept": "input_dim", "values": [2, 9000], "width_exponent": 4},
            "width_exponent",
            "below 10,000,000",
        ),
    ],
    "learning_rate": [
        ({"dataset.num_samples": 401}, "dataset.num_samples", "at most 400"),
        ({"method": "sgd", "batch_size": 11}, "batch_size", "the number of samples"),
        ({"dataset.name": "sine", "output": "softmax"}, "output", "without classes"),
    ],
    "horizon": [
        ({"dataset.name": "sine"}, "regimes", "other regimes, for data without classes"),
        ({"rates": [4.0]}, "rates", ""),
        ({"decay": 0.02}, "decay", ""),
        ({"kernel_threshold": 0}, "kernel_threshold", "above 0"),
        ({"num_test": 0}, "num_test", ""),
        ({"dataset.num_samples": 401}, "dataset.num_samples", "at most 400"),
    ],
    "generalization": [
        ({"dataset.num_samples": 5001}, "dataset.num_samples", ""),
        ({"dataset": {"name": "mnist", "num_samples": 600}}, "dataset.num_samples", ""),
        ({"dataset": {"name": "points"}, "samples": [3], "draws": "network"}, "samples", "none"),
        ({"richness": [0.6]}, "richness", ""),
    ],
}


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_keys_name_the_points_and_are_read_back(experiment):
    point = EXPERIMENTS[experiment].point
    for spec in (preset.spec for preset in EXPERIMENTS[experiment].presets):
        keys = spec.point_keys()
        assert len({spec.value_of(key) for key in keys}) == len(keys) > 0
        # Their points have other names for parts.
        if experiment not in (
            "hessian",
            "early_time",
            "generalization",
        ):
            assert tuple(point.model_construct(**spec.parts_of(key)).key for key in keys) == keys


@pytest.mark.parametrize(
    ("experiment", "settings", "field", "words"),
    [
        pytest.param(name, *row, id=f"{name}-{row[1]}-{n}")
        for name in EXPERIMENTS
        for n, row in enumerate(REFUSED[name])
    ],
)
def test_impossible_settings_are_refused_by_name(experiment, settings, field, words):
    with pytest.raises(InvalidSpec) as refused:
        with_settings(EXPERIMENTS[experiment].spec(), settings)
    problems = [each for each in refused.value.problems if each.field.startswith(field)]
    assert problems, refused.value.problems
    assert all(words in str(each) for each in problems)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_results_survive_json(experiment):
    adapter: TypeAdapter[Result] = TypeAdapter(Result)
    files = [GALLERY / f"{preset.name}.json" for preset in EXPERIMENTS[experiment].presets]
    text = min(files, key=lambda file: file.stat().st_size).read_text(encoding="utf-8")
    result = adapter.validate_json(text)
    assert type(result) is EXPERIMENTS[experiment].result
    assert (
        adapter.validate_json(result.model_dump_json()).model_dump_json()
        == result.model_dump_json()
    )
    assert tuple(point.key for point in result.points) == result.spec.point_keys()
    # Drawn graphs have more columns.
    assert len({tuple(row) for row in result.rows()}) <= 1 + (experiment == "dag")


def swept_at(experiment: str, *values: int) -> Spec:
    spec = EXPERIMENTS[experiment].spec()
    return spec.model_copy(update={spec.swept_field: values})


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_costs_grow_and_what_is_too_large_is_refused(experiment, monkeypatch):
    check_size(EXPERIMENTS[experiment].spec())
    small, large = (estimate(swept_at(experiment, value)) for value in (32, 128))
    assert small.seconds < large.seconds
    assert small.peak_bytes < large.peak_bytes
    monkeypatch.setenv(
        "LINEARITY_LAB_MEMORY_GIB", str((small.peak_bytes + large.peak_bytes) / 2 / 2**30)
    )
    with pytest.raises(TooLarge) as refused:
        check_size(swept_at(experiment, 32, 128))
    assert refused.value.field == EXPERIMENTS[experiment].spec().swept_field
    assert 32 <= refused.value.nearest < 128
    check_size(swept_at(experiment, refused.value.nearest))
