"""Comparison of networks: each equals its ``kernel_change`` run alone."""

from __future__ import annotations

import pytest

from linearity_lab.data.spec import DatasetSpec
from linearity_lab.experiments.architectures.point import ArchitecturesSpec
from linearity_lab.runs import counts_of, estimate, run_summary
from linearity_lab.settings.grammar import with_settings
from ntk_core.networks.kinds import ARCHITECTURES
from tests.running import result_of
from tests.smallest import network_of, patch_size_for

FEW = {"widths": [4], "num_seeds": 2, "dataset.num_samples": 6, "training.max_steps": 20}
SMALL = with_settings(ArchitecturesSpec(), {**FEW, "outputs": ["tanh"]})


@pytest.fixture(scope="module")
def results():
    """Letter → result of that network by ``kernel_change``; empty letter → comparison of all."""
    specs = {"": SMALL, **{letter: SMALL.of_network(letter) for letter in SMALL.networks}}
    return {letter: result_of(spec) for letter, spec in specs.items()}


@pytest.mark.slow
@pytest.mark.parametrize("letter", ["A", "B"])
def test_each_network_has_the_numbers_and_words_it_has_alone(results, letter):
    (together,) = [point for point in results[""].points if point.network == letter]
    (alone,) = results[letter].points
    assert (together.width, together.num_params) == (alone.width, alone.num_params)
    assert (together.runs, together.snapshots) == (alone.runs, alone.snapshots)
    distance = "distance_to_infinite_width"  # unknown for a bottleneck
    rows = [
        row | {distance: row.get(distance)}
        for row in results[""].rows()
        if row["network"] == letter
    ]
    assert rows == [
        {"network": letter, **row, distance: row.get(distance)} for row in results[letter].rows()
    ]
    words = run_summary(SMALL.of_network(letter), results[letter].points)
    words, _ = words.rsplit("\n", 1)  # the scope of errors is stated once, for both networks
    title = ARCHITECTURES[SMALL.networks[letter].kind].title
    assert f"Network {letter}: {title}\n{words}" in run_summary(SMALL, results[""].points)


def test_a_point_costs_what_its_network_costs_alone():
    for key in SMALL.point_keys():
        letter, width = SMALL.value_of(key)
        one, key_of_one = SMALL.of_network(letter), f"width={width}"
        assert counts_of(SMALL, key) == counts_of(one, key_of_one)
    assert estimate(SMALL).num_points == 2


@pytest.mark.parametrize("kind", list(ARCHITECTURES))
def test_infinite_width_is_asked_for_only_where_it_is_known(kind):
    network, digits = network_of(kind), DatasetSpec(name="digits", patch_size=patch_size_for(kind))
    one = ArchitecturesSpec(architectures=(network,), dataset=digits)
    assert one.of_network("A").infinite_width == network.has_infinite_width
    other = network.model_copy(update={"parameterization": "standard"})
    standard = ArchitecturesSpec(architectures=(other,), dataset=digits)
    assert not standard.of_network("A").infinite_width
