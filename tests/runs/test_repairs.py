"""Repairs of settings that do not fit together."""

import itertools

import pytest

from linearity_lab.data import DATASETS
from linearity_lab.experiments import DynamicsSpec, ExploreSpec, KernelChangeSpec
from linearity_lab.runs.repairs import repaired
from linearity_lab.settings.grammar import with_settings
from linearity_lab.settings.walk import values_of
from ntk_core.networks.kinds import ARCHITECTURES

KIND, DATA, PATCH = "architecture.kind", "dataset.name", "dataset.patch_size"


@pytest.mark.parametrize(
    ("given", "newest", "changes"),
    [
        ({KIND: "convnet"}, KIND, {DATA: "mnist"}),
        ({KIND: "convnet", DATA: "sine"}, KIND, {DATA: "mnist"}),
        ({KIND: "convnet", DATA: "copy"}, DATA, {KIND: "fully-connected"}),
        ({KIND: "transformer", DATA: "mnist"}, KIND, {PATCH: 7}),
        ({KIND: "convnet", DATA: "mnist", PATCH: 7}, KIND, {PATCH: 0}),
        ({KIND: "bottleneck"}, KIND, {"architecture.depth": 2}),
        ({DATA: "sine"}, DATA, {"outputs": ("linear", "swish")}),
    ],
)
def test_newest_pick_stays_and_others_move(given, newest, changes):
    found = repaired(ExploreSpec(), given, [newest])
    assert found is not None
    assert found.changes == changes
    assert with_settings(ExploreSpec(), {**given, **changes}) == found.spec
    assert len(found.sentences) == len(changes)


def test_settings_of_the_earlier_data_are_dropped():
    given = {**values_of(ExploreSpec()), KIND: "convnet"}
    found = repaired(ExploreSpec(), given, [KIND])
    assert found.changes == {DATA: "mnist"}
    assert found.spec.dataset.name == "mnist"


def test_sentence_names_cause_and_new_value():
    found = repaired(ExploreSpec(), {KIND: "convnet"}, [KIND])
    assert found.sentences == ("CNN needs images: dataset changed to MNIST",)


def test_fitting_settings_are_unchanged():
    found = repaired(ExploreSpec(), {KIND: "resnet"}, [KIND])
    assert (found.changes, found.sentences) == ({}, ())


@pytest.mark.long_after(1)
@pytest.mark.parametrize(
    "kind",
    [
        ExploreSpec,
        KernelChangeSpec,
        DynamicsSpec,
    ],
)
@pytest.mark.slow  # hundreds of specs each
def test_every_pair_of_picks_has_an_answer(kind):
    names = [name for name in DATASETS if name != "upload"]
    for architecture, data in itertools.product(ARCHITECTURES, names):
        for newest in (KIND, DATA):
            given = {KIND: architecture, DATA: data}
            found = repaired(kind(), given, [newest])
            assert found is not None, given
            assert newest not in found.changes, given
