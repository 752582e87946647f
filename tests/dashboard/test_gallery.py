"""Precomputed figures against the current code and presets.

The cheapest point of every preset is recomputed with its first seed, to its end for presets of ``TO_THE_END``. Others
take three steps with the same data, networks, kernels and rates, and with the first of each list (outputs, rates,
graphs). Horizons depend on the loss of a whole run, so these runs continue to their end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from linearity_lab.components.gallery import GALLERY, gallery_result
from ntk_core.runs import presets, run
from ntk_core.settings.grammar import values_of, with_settings
from tests.smallest import smallest

SPECS = presets()
NAMES = sorted(path.relative_to(GALLERY).with_suffix("").as_posix() for path in GALLERY.glob("**/[!.]*.json"))
NAMES = [name for name in NAMES if not name.startswith(".")]
WHOLE = ("kernel_change", "architectures", "hessian")
# liu-fig1-right has one large width, whose runs are those of the left figure.
TO_THE_END = [
    *(name for name in NAMES if SPECS[name].experiment in WHOLE and name != "liu-fig1-right"),
    *("zhu-fig2", "liu-true-and-linearized", "hu-fig1", "hu-fig5"),
]
# They have the network of hu-fig3-cnn and the data of hu-fig4 and hu-fig3.
COVERED = ("hu-fig4-cnn", "hu-fig4-cifar-cnn")
BEGUN = [name for name in NAMES if SPECS[name].experiment not in WHOLE and name not in (*TO_THE_END, *COVERED)]
LARGEST = {"early_time": 300_000, "hessian": 320_000}  # bytes

NUM_STEPS = 3
# The order of float32 sums matters by some hundred ulps after three steps: 1e-5 in a difference of kernels.
RELATIVE, ABSOLUTE = 2e-3, 1e-5
CURVES = ("change", "loss", "difference", "smallest", "test_loss", "train_loss")
AT_START = ("learning_rate", "kappa", "hessian", "squared_gradient", "first_loss", "min_in_degree", "infinite_distance")
KERNELS = ("kernel", "difference", "frobenius_difference")
# Relative error at the end: hundreds of float32 steps on another processor; narrow networks amplify rounding.
AT_THE_END = {
    "sup_change": 0.05, "sup_difference": 0.05, "sup_distance": 0.01, "ball_change": 0.05, "network_loss": 0.02,
    "hessian_norm": 1e-2, "norm": 1e-3, "kernel": 1e-3, "velocity": 1e-3, "linear_loss": 1e-3, "learning_rate": 1e-4,
}  # fmt: skip
EQUAL = ("outcome", "min_in_degree", "max_in_degree")


@pytest.mark.parametrize("name", NAMES)
def test_gallery_result_is_that_of_its_preset_with_its_origin(name):
    result = gallery_result(name)
    assert set(NAMES) == set(SPECS)
    assert result.spec == SPECS[name]
    assert result.status == "completed"
    assert tuple(point.key for point in result.points) == result.spec.point_keys()
    assert result.provenance.versions["jax"]
    assert result.provenance.data_sha256
    assert (GALLERY / f"{name}.json").stat().st_size < LARGEST.get(result.spec.experiment, 10**7)


def close(value: Any) -> Any:
    return pytest.approx(value, rel=RELATIVE, abs=ABSOLUTE, nan_ok=True)


def identity(each: Any) -> tuple[Any, ...]:
    """Values that identify a run within its point."""
    names = ("output", "graph", "method", "model", "rate", "start", "activation", "seed")
    return tuple(getattr(each, name, None) for name in names)


def records(point: Any) -> Iterator[Any]:
    """Yield all records of a point's seeds."""
    for name in ("runs", "at_start", "kernels"):
        yield from getattr(point, name, ())


def at_the_end(record: Any, name: str) -> Any:
    if name.endswith("_loss"):
        return getattr(getattr(record, name.removesuffix("_loss"), None), "test_loss", None)
    return getattr(record, name, None)


@pytest.mark.slow
@pytest.mark.parametrize("name", TO_THE_END)
def test_one_point_of_the_gallery_is_found_again(name):
    """Smallest width and first seed; for Hessians, the first network."""
    shown = gallery_result(name)
    swept = "values" if shown.spec.experiment == "early_time" else "widths"
    changes: dict[str, Any] = {swept: getattr(shown.spec, swept)[:1], "num_seeds": 1}
    if shown.spec.experiment == "hessian":
        first = [shown.spec.networks[0].model_dump()]
        changes |= {"networks": first, "radii": [], "num_trained": 0, "bounds": False, "blocks": False}
    *_, ended = run(with_settings(shown.spec, changes))
    compared = 0
    for again in ended.result.points:
        (before,) = (point for point in shown.points if point.key == again.key)
        known = {(type(each), identity(each)): each for each in records(before)}
        for new in records(again):
            old = known[type(new), identity(new)]
            for each, relative in AT_THE_END.items():
                value = at_the_end(new, each)
                if value is not None:
                    assert value == pytest.approx(at_the_end(old, each), rel=relative, nan_ok=True), each
                    compared += 1
            assert [getattr(new, each, None) for each in EQUAL] == [getattr(old, each, None) for each in EQUAL]
    assert compared


def compare(again: Any, before: Any) -> int:
    """Compare all common numbers of the first steps and return their count."""
    compared = 0
    for name in AT_START:
        if isinstance(getattr(again, name, None), float):
            assert getattr(again, name) == close(getattr(before, name))
            compared += 1
    steps = getattr(again, "steps", ())
    if not steps:
        return compared
    known = [step for step in steps if step in getattr(before, "steps", ())]
    for new, old in ((again, before), *((getattr(again, part, None), getattr(before, part, None)) for part in
                                        ("network", "linear", "linearized"))):  # fmt: skip
        for name in CURVES:
            curve, shown = getattr(new, name, ()), getattr(old, name, ())
            if isinstance(curve, tuple) and len(curve) == len(steps) and len(shown) == len(before.steps):
                for step in known:
                    assert curve[steps.index(step)] == close(shown[before.steps.index(step)]), (name, step)
                    compared += 1
    return compared


def beginning(spec: Any) -> dict[str, Any]:
    """Settings of the first point: one seed, first items of lists except models, three steps, few kernels."""
    small = smallest(spec, keep=("models",))
    values = values_of(spec)
    listed = {name: values[name][:1] for name in small if isinstance(values.get(name), tuple)}
    shorter = spec.experiment != "horizon"
    steps = {name: NUM_STEPS for name in small if shorter and name.endswith("max_steps") and values[name]}
    sampled = {name: value for name, value in small.items() if name in ("num_seeds", "num_kernels")}
    return {**listed, **steps, **sampled}


def prefix(again: Any, before: Any) -> int:
    """Count the numbers that two values share, if each list of the first is a prefix of the other's."""
    if isinstance(again, BaseModel):
        return sum(prefix(getattr(again, name), getattr(before, name)) for name in type(again).model_fields)
    if isinstance(again, tuple):
        return sum(prefix(*pair) for pair in zip(again, before, strict=False))
    if isinstance(again, float):
        assert again == close(before)
        return 1
    return 0


def test_training_at_one_width_shows_runs_of_the_sweep():
    """liu-fig1-right is the widest point of liu-fig1-left, without a cheaper point to recompute."""
    (point,) = gallery_result("liu-fig1-right").points
    sweep = {each.width: each for each in gallery_result("liu-fig1-left").points}
    assert sorted(point.runs, key=identity) == sorted(sweep[point.width].runs, key=identity)


@pytest.mark.slow
@pytest.mark.parametrize("name", BEGUN)
def test_the_cheapest_point_begins_as_it_is_shown(name):
    shown = gallery_result(name)
    spec = shown.spec
    *_, ended = run(with_settings(spec, beginning(spec)))
    again = ended.result.points[0]
    before = next(point for point in shown.points if point.key == again.key)
    compared = 0
    seeds = {new.seed for new in getattr(again, "kernels", ())}
    stored = [old for old in getattr(before, "kernels", ()) if getattr(old, "seed", None) in seeds]
    for new, old in zip(getattr(again, "kernels", ()), stored, strict=True):
        assert [getattr(new, part) for part in KERNELS] == close([getattr(old, part) for part in KERNELS])
        compared += len(KERNELS)
    known = {identity(each): each for each in getattr(before, "runs", ())}
    for each in getattr(again, "runs", ()):
        together = prefix if spec.experiment == "horizon" else compare
        compared += together(each, known[identity(each)])
    if known or seeds:
        assert compared >= 3
    else:  # no curves and no kernels, only its inputs
        assert prefix(again, before)
