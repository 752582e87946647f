"""Comparison of networks: each equals its ``kernel_change`` run alone."""

from __future__ import annotations

from typing import Any

import pytest

from ntk_core.data.spec import DatasetSpec
from ntk_core.experiments.architectures import EXPERIMENT, ArchitecturesSpec
from ntk_core.networks.kinds import ARCHITECTURES
from ntk_core.runs import PRESETS as ALL_PRESETS
from ntk_core.runs import counts_of, estimate, run, run_summary
from ntk_core.settings.grammar import with_settings
from tests.smallest import network_of, patch_size_for

FEW = {"widths": [4], "num_seeds": 2, "dataset.num_samples": 6, "training.max_steps": 20}
SMALL = with_settings(ArchitecturesSpec(), {**FEW, "outputs": ["tanh"]})
SPECS: dict[str, Any] = {preset.name: preset.spec for preset in EXPERIMENT.presets}


@pytest.fixture(scope="module")
def results():
    """Letter → result of that network by ``kernel_change``; empty letter → comparison of all."""
    specs = {"": SMALL, **{letter: SMALL.of_network(letter) for letter in SMALL.networks}}
    return {letter: list(run(spec))[-1].result for letter, spec in specs.items()}


@pytest.mark.parametrize("letter", ["A", "B"])
def test_each_network_has_the_numbers_that_it_has_alone(results, letter):
    together = [point for point in results[""].points if point.network == letter]
    alone = results[letter].points
    assert len(together) == len(alone) == 1
    for one, other in zip(together, alone, strict=True):
        assert (one.width, one.num_params) == (other.width, other.num_params)
        assert one.runs == other.runs
        assert one.snapshots == other.snapshots


def test_rows_are_those_of_each_network_behind_its_letter(results):
    rows = results[""].rows()
    distance = "distance_to_infinite_width"  # unknown for a bottleneck
    for letter in "AB":
        alone = [{"network": letter, **row, distance: row.get(distance)} for row in results[letter].rows()]
        assert [{**row, distance: row.get(distance)} for row in rows if row["network"] == letter] == alone
    assert len(rows) == 4


def test_the_summary_has_a_table_for_each_network(results):
    text = run_summary(SMALL, results[""].points)
    for letter, architecture in SMALL.networks.items():
        alone = run_summary(SMALL.of_network(letter), results[letter].points)
        assert f"Network {letter}: {ARCHITECTURES[architecture.kind].title}\n{alone}" in text


def test_a_point_costs_what_its_network_costs_alone():
    for key in SMALL.point_keys():
        letter, width = SMALL.value_of(key)
        one, key_of_one = SMALL.of_network(letter), f"width={width}"
        assert counts_of(SMALL, key) == counts_of(one, key_of_one)
    assert estimate(SMALL).num_points == 2


def test_specs_of_the_networks_differ_in_the_architecture_alone():
    for spec in SPECS.values():
        a, b = (spec.of_network(letter) for letter in "AB")
        assert (a.architecture, b.architecture) == spec.architectures
        assert a.model_copy(update={"architecture": b.architecture, "infinite_width": b.infinite_width}) == b


@pytest.mark.parametrize("kind", list(ARCHITECTURES))
def test_infinite_width_is_asked_for_only_where_it_is_known(kind):
    network, digits = network_of(kind), DatasetSpec(name="digits", patch_size=patch_size_for(kind))
    one = ArchitecturesSpec(architectures=(network,), dataset=digits)
    assert one.of_network("A").infinite_width == network.has_infinite_width
    other = network.model_copy(update={"parameterization": "standard"})
    standard = ArchitecturesSpec(architectures=(other,), dataset=digits)
    assert not standard.of_network("A").infinite_width


def test_convergence_preset_compares_shallow_and_residual():
    spec = SPECS["kernel-convergence-pair"]
    first, second = spec.architectures
    assert (first.kind, first.depth, second.kind) == ("fully-connected", 1, "resnet")
    assert all(spec.of_network(letter).infinite_width for letter in "AB")
    assert ALL_PRESETS["kernel-convergence-pair"].claim == ALL_PRESETS["kernel-convergence"].claim


def test_up_to_four_networks_are_compared_and_read_back():
    four = with_settings(ArchitecturesSpec(), {"architectures": 4, "architectures.3.kind": "resnet"})
    assert list(four.networks) == list("ABCD")
    assert four.networks["D"].kind == "resnet"
    assert EXPERIMENT.spec is type(four)
