"""The beginning of one point of every preset is recomputed: the cheapest point, its first seed, its first steps.

Presets of kernel change, of architectures and of Hessians are recomputed to their end in test_gallery.py and
test_hessian_gallery.py. The others would take minutes to their end: here they go three steps, which needs the same
data, networks, kernels and rates, and of lists (outputs, rates, graphs) the first one is enough. Horizons are clocked
by the loss of a whole run: these runs go to their end.
"""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from linearity_lab.components.gallery import gallery_result
from ntk_core.runs import PRESETS, run
from ntk_core.settings.grammar import values_of, with_settings
from tests.smallest import smallest

NUM_STEPS = 3
# After three steps float32 sums differ by their order, some hundred ulps: 1e-5 in a difference of kernels.
RELATIVE, ABSOLUTE = 2e-3, 1e-5
CURVES = ("change", "loss", "difference", "smallest", "test_loss", "train_loss")
AT_START = ("learning_rate", "kappa", "hessian", "squared_gradient", "first_loss", "min_in_degree", "infinite_distance")
KERNELS = ("kernel", "difference", "frobenius_difference")
TO_THE_END = ("kernel_change", "architectures", "hessian")
# Its network is that of hu-fig4-cifar-cnn, its data are those of hu-fig4.
BEGUN = [name for name, preset in PRESETS.items() if preset.spec.experiment not in TO_THE_END and name != "hu-fig4-cnn"]


def close(value: Any) -> Any:
    return pytest.approx(value, rel=RELATIVE, abs=ABSOLUTE, nan_ok=True)


def identity(each: Any) -> tuple[Any, ...]:
    """Keys that identify a run within its point."""
    names = ("output", "graph", "method", "model", "rate", "start", "activation", "seed")
    return tuple(getattr(each, name, None) for name in names)


def compare(again: Any, before: Any) -> int:
    """Everything that both know of the first steps; how many numbers were compared."""
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
    """The first point: one seed, the first of every list but all models, three steps, few kernels."""
    small = smallest(spec, keep=("models",))
    values = values_of(spec)
    listed = {name: values[name][:1] for name in small if isinstance(values.get(name), tuple)}
    shorter = spec.experiment != "horizon"
    steps = {name: NUM_STEPS for name in small if shorter and name.endswith("max_steps") and values[name]}
    sampled = {name: value for name, value in small.items() if name in ("num_seeds", "num_kernels")}
    return {**listed, **steps, **sampled}


def prefix(again: Any, before: Any) -> int:
    """How many numbers two values have in common, where the lists of the first one are beginnings of the other's."""
    if isinstance(again, BaseModel):
        return sum(prefix(getattr(again, name), getattr(before, name)) for name in type(again).model_fields)
    if isinstance(again, tuple):
        return sum(prefix(*pair) for pair in zip(again, before, strict=False))
    if isinstance(again, float):
        assert again == close(before)
        return 1
    return 0


def test_training_at_one_width_shows_runs_of_the_sweep():
    """liu-fig1-right is the widest point of liu-fig1-left; no cheaper point could replace it."""
    (point,) = gallery_result("liu-fig1-right").points
    sweep = {each.width: each for each in gallery_result("liu-fig1-left").points}
    assert sorted(point.runs, key=identity) == sorted(sweep[point.width].runs, key=identity)


@pytest.mark.slow
@pytest.mark.parametrize("name", BEGUN)
def test_the_cheapest_point_begins_as_it_is_shown(name, quick_compilation):
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
    else:  # no curves and no kernels: all that it is made of
        assert prefix(again, before)
