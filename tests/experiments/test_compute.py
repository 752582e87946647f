"""``compute``: results of specs and presets, settings, a progress bar, errors of failed runs."""

from __future__ import annotations

from typing import Any, get_args, get_origin

import pytest

import linearity_lab
from linearity_lab.experiments import KernelChangeResult
from linearity_lab.runs import EXPERIMENTS, KINDS, SpecOf
from linearity_lab.settings.grammar import InvalidSpec
from ntk_core.errors import InvalidInput, RunFailed
from tests.running import result_of

SMALL: dict[str, Any] = {
    "widths": (4, 8),
    "num_seeds": 1,
    "outputs": ("linear",),
    "dataset": {"num_samples": 6},
}
QUICK: dict[str, Any] = {**SMALL, "training": {"max_steps": 2}}


def test_spec_preset_name_and_mapping_give_one_result():
    preset = linearity_lab.experiments.preset("liu-fig1-left")
    found: list[Any] = [
        linearity_lab.compute(given, **QUICK)
        for given in ("liu-fig1-left", preset, preset.spec, preset.spec.model_dump())
    ]
    assert all(type(each) is KernelChangeResult for each in found)
    assert len({each.csv() for each in found}) == 1
    assert found[0].spec.training.max_steps == 2
    assert found[0].spec.dataset.num_samples == 6
    # Other settings of the group.
    assert found[0].spec.training.learning_rate == preset.spec.training.learning_rate
    assert result_of(found[0].spec).csv() == found[0].csv()


def test_unknown_presets_and_settings_are_named():
    with pytest.raises(InvalidInput, match="liu-fig1-left"):
        linearity_lab.compute("liu-fig1-lft")
    with pytest.raises(InvalidSpec, match="widths"):
        linearity_lab.compute("liu-fig1-left", widht=(4,))
    with pytest.raises(InvalidSpec, match=r"training\.max_steps"):
        linearity_lab.compute("liu-fig1-left", training={"max_steps": 0})


def test_failed_run_raises_with_its_finished_points(monkeypatch):
    computation = EXPERIMENTS["kernel_change"].computation()

    def compute(spec, data, key, progress):
        if key == "width=8":
            raise MemoryError("too wide")
        return computation.compute(spec, data, key, progress)

    failing = type(computation)(compute, computation.load)
    monkeypatch.setattr(type(EXPERIMENTS["kernel_change"]), "computation", lambda self: failing)
    with pytest.raises(RunFailed, match="width 8") as caught:
        linearity_lab.compute("liu-fig1-left", **QUICK)
    assert [point.width for point in caught.value.result.points] == [4]


def test_specs_name_the_type_of_their_results():
    """``compute(spec)`` is typed by the second base of the spec.

    It must be the result that runs have.
    """
    for experiment in KINDS.values():
        bases = [each for each in experiment.spec.__orig_bases__ if get_origin(each) is SpecOf]
        (named,) = [get_args(base)[0] for base in bases]
        assert named.__forward_arg__ == experiment.result.__name__
