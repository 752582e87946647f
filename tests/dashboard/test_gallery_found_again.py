"""The beginning of one point of every preset is computed anew: the cheapest point, its first seed, its first steps.

Presets of kernel change, of architectures and of Hessians are computed anew to their end in test_gallery.py and
test_hessian_gallery.py. The others would take minutes to their end: here they go three steps, which needs the same
data, networks, kernels and rates, and what is measured once (Hessians of graphs, balls, other outputs) is left out.
"""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.components.gallery import gallery_result
from ntk_core.runs import PRESETS, run
from ntk_core.settings.grammar import with_settings

NUM_STEPS = 3
# After three steps only the order of float32 sums differs, by some hundred ulps of each kernel entry; a change of the
# kernel is a difference of two kernels, so an absolute error of 1e-5 stays in it.
RELATIVE, ABSOLUTE = 2e-3, 1e-5
LESS: dict[str, dict[str, Any]] = {
    "dag": {"num_hessians": 0, "pre_activations": False, "ball_radius": 0, "compared": []},
    "dynamics": {},
    "optimization": {},
    "lazy": {"scales": [1.0]},
    "depth_width": {"num_kernels": 20},
    "learning_rate": {"max_steps": NUM_STEPS},
    "early_time": {},
}
# Of settings with several values the first one is enough.
FIRST = {"dag": ("outputs",), "dynamics": ("outputs", "methods"), "optimization": ("outputs", "rates"),
         "lazy": ("outputs", "starts"), "depth_width": ("depths",), "learning_rate": ("rates",),
         "early_time": ()}  # fmt: skip
CURVES = ("change", "loss", "difference", "smallest", "test_loss", "train_loss")
AT_START = ("learning_rate", "kappa", "hessian", "squared_gradient", "first_loss", "min_in_degree", "infinite_distance")
KERNELS = ("kernel", "difference", "frobenius_difference")
TO_THE_END = {
    name for name, preset in PRESETS.items() if preset.spec.experiment in ("kernel_change", "architectures", "hessian")
}
BEGUN = [name for name, preset in PRESETS.items() if preset.spec.experiment in LESS]


def close(value: Any) -> Any:
    return pytest.approx(value, rel=RELATIVE, abs=ABSOLUTE, nan_ok=True)


def identity(each: Any) -> tuple[Any, ...]:
    """What tells a run from the others of its point."""
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


def test_every_entry_of_the_gallery_is_computed_anew_in_some_test():
    assert set(BEGUN) | TO_THE_END == set(PRESETS)


def test_training_at_one_width_shows_the_runs_of_the_sweep_over_widths():
    """liu-fig1-right is the widest point of liu-fig1-left; it is the one that nothing cheaper could stand for."""
    (point,) = gallery_result("liu-fig1-right").points
    sweep = {each.width: each for each in gallery_result("liu-fig1-left").points}
    assert sorted(point.runs, key=identity) == sorted(sweep[point.width].runs, key=identity)


@pytest.mark.slow
@pytest.mark.parametrize("name", BEGUN)
def test_the_cheapest_point_begins_as_it_is_shown(name, quick_compilation):
    shown = gallery_result(name)
    spec, kind = shown.spec, shown.spec.experiment
    one = {spec.swept_field: [getattr(spec, spec.swept_field)[0]], "num_seeds": 1, **LESS[kind]}
    one |= {field: [getattr(spec, field)[0]] for field in FIRST[kind]}
    if hasattr(spec, "training") and spec.training.max_steps:
        one["training.max_steps"] = NUM_STEPS
    *_, ended = run(with_settings(spec, one))
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
        compared += compare(each, known[identity(each)])
    assert compared >= 3
