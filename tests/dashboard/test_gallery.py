"""Precomputed figures against the current code and presets.

The cheapest point of every preset is recomputed with its first seed, to its end for presets of
``TO_THE_END``. Others take three steps with the same data, networks, kernels and rates, and with
the first of each list (outputs, rates, graphs). Horizons depend on the loss of a whole run, so
these runs continue to their end.
"""

import functools
import itertools
from typing import Any

import pytest
from pydantic import BaseModel

from linearity_lab.dashboard.gallery import GALLERY, gallery_result
from linearity_lab.runs import presets
from linearity_lab.settings.grammar import values_of, with_settings
from tests.running import result_of
from tests.smallest import smallest

SPECS = presets()
NAMES = sorted(
    path.relative_to(GALLERY).with_suffix("").as_posix() for path in GALLERY.glob("**/[!.]*.json")
)
NAMES = [name for name in NAMES if not name.startswith(".")]
WHOLE = ("kernel_change", "architectures", "hessian")
# Other presets of their experiments have the same networks and losses.
COVERED = (
    "hu-fig2",
    "hu-fig3",
    "hu-fig4",
    "hu-fig4-fashion",
    "hu-fig4-cifar",
    "hu-fig4-cnn",
    "hu-fig4-cifar-cnn",
    "hu-departure",
    "hu-theorem35",
    "richness-dial",
    "richness-anew",
    "no-price-on-digits",
    "learning-curves",
    "after-kernel",
    "horizon-cross-entropy",
    "attention-head-dim",
    "attention-length",
    "adapter-width",
    "adapter-width-change",
    "zhu-bottleneck-neurons",
    "zhu-unequal",
    "liu-fig1-right",
    "adapter-rank",
    "kernel-convergence-pair",
    "liu-fig1-wide",
    "liu-shallow",
    "liu-parameterization",
    "catapult-anew",
    "catapult-run",
    "richness-deep",
    "horizon-rate",
    "zhu-preactivations",
    "hu-fig3-cnn",
    "hu-fig5",
    "convolution",
    "zhu-pl",
    "zhu-vector-output",
    "adding-networks",
    "adding-curves",
    "adding-adapters",
    "edge-of-stability",
    "point-worth",
    "point-worth-width",
    "point-worth-swish",
)
TO_THE_END = [name for name in NAMES if SPECS[name].experiment in WHOLE and name not in COVERED]
TO_THE_END += ["zhu-fig2", "hu-fig1", "adding-many"]
BEGUN = [
    name
    for name in NAMES
    if SPECS[name].experiment not in WHOLE and name not in (*TO_THE_END, *COVERED)
]
LARGEST = {"early_time": 300_000, "hessian": 320_000}  # bytes

NUM_STEPS = 3
# The order of float32 sums matters by some hundred ulps after three steps: 1e-5 in a
# difference of kernels.
BEGINS = {"rel": 2e-3, "abs": 1e-5, "nan_ok": True}
CURVES = ("change", "loss", "difference", "smallest", "test_loss", "train_loss")
ALONG = [f"{part}{name}" for part in ("", "network.", "linear.", "linearized.") for name in CURVES]
AT_START = {
    **dict.fromkeys(ALONG, BEGINS),
    **dict.fromkeys(
        ("learning_rate", "kappa", "hessian", "squared_gradient", "first_loss", "min_in_degree"),
        BEGINS,
    ),
    **dict.fromkeys(("infinite_distance", "kernel", "frobenius_difference"), BEGINS),
}
# Relative error at the end: hundreds of float32 steps on another processor; narrow
# networks amplify rounding.
AT_THE_END = {
    name: {"rel": relative, "nan_ok": True}
    for relative, names in {
        0.05: ("sup_change", "sup_difference", "ball_change"),
        0.02: ("network.test_loss", "error"),
        0.01: ("sup_distance", "hessian_norm"),
        1e-3: ("norm", "kernel", "velocity", "linear.test_loss"),
        1e-4: ("learning_rate",),
    }.items()
    for name in names
}
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


def identity(each: Any) -> tuple[Any, ...]:
    """Values that identify a run within its point."""
    names = ("output", "graph", "method", "model", "rate", "start", "activation", "seed")
    return (type(each), *(getattr(each, name, None) for name in names))


def records(point: Any) -> dict[tuple[Any, ...], Any]:
    """Identity → record, for all records of a point's seeds."""
    lists = (getattr(point, name, ()) for name in ("runs", "at_start", "kernels"))
    return {identity(each): each for each in itertools.chain(*lists)}


def at(record: Any, path: str) -> Any:
    return functools.reduce(lambda part, name: getattr(part, name, None), path.split("."), record)


def is_curve(value: Any, steps: Any) -> bool:
    return isinstance(value, tuple) and len(value) == len(steps)


def compared(again: Any, before: Any, tolerances: dict[str, dict[str, Any]]) -> int:
    """Compare the numbers of two points and return their count; curves at their common steps."""
    count, shown = 0, records(before)
    for key, new in records(again).items():
        steps, known = getattr(new, "steps", ()), getattr(shown[key], "steps", ())
        for path, tolerance in tolerances.items():
            value, old = at(new, path), at(shown[key], path)
            if steps and tolerances is AT_START and path in ALONG and not is_curve(value, steps):
                continue  # of the end
            if is_curve(value, steps) and is_curve(old, known):
                value = [number for number, step in zip(value, steps, strict=True) if step in known]
                old = [number for number, step in zip(old, known, strict=True) if step in steps]
            if isinstance(value, float | list | tuple):
                assert value == pytest.approx(old, **tolerance), (key, path)
                count += 1
    return count


def whole(spec: Any) -> dict[str, Any]:
    """Settings of the smallest width and first seed; for Hessians, the first network."""
    swept = "values" if spec.experiment == "early_time" else "widths"
    changes: dict[str, Any] = {swept: getattr(spec, swept)[:1], "num_seeds": 1}
    if spec.experiment == "hessian":
        first = [spec.networks[0].model_dump()]
        changes |= {
            "networks": first,
            "radii": [],
            "num_trained": 0,
            "bounds": False,
            "blocks": False,
        }
    return changes


def beginning(spec: Any) -> dict[str, Any]:
    """Settings of the first point.

    One seed, first items of lists except models, three steps, few kernels.
    """
    small = smallest(spec, keep=("models",))
    values = values_of(spec)
    listed = {name: values[name][:1] for name in small if isinstance(values.get(name), tuple)}
    shorter = spec.experiment != "horizon"
    steps = {
        name: NUM_STEPS for name in small if shorter and name.endswith("max_steps") and values[name]
    }
    sampled = {name: value for name, value in small.items() if name in ("num_seeds", "num_kernels")}
    return {**listed, **steps, **sampled}


def prefix(again: Any, before: Any) -> int:
    """Count the numbers that two values share,
    if each list of the first is a prefix of the other's.
    """
    if isinstance(again, BaseModel):
        return sum(
            prefix(getattr(again, name), getattr(before, name)) for name in type(again).model_fields
        )
    if isinstance(again, tuple):
        return sum(prefix(*pair) for pair in zip(again, before, strict=False))
    if isinstance(again, float):
        assert again == pytest.approx(before, **BEGINS)
        return 1
    return 0


def test_training_at_one_width_shows_runs_of_the_sweep():
    """liu-fig1-right is the widest point of liu-fig1-left, without a cheaper point to recompute."""
    (point,) = gallery_result("liu-fig1-right").points
    (same,) = [each for each in gallery_result("liu-fig1-left").points if each.key == point.key]
    assert records(point) == records(same)


@pytest.mark.long_after(1)
@pytest.mark.sampled(16)  # experiments have several presets
@pytest.mark.slow
@pytest.mark.parametrize("name", [*TO_THE_END, *BEGUN])
def test_the_cheapest_point_is_computed_as_it_is_shown(name):
    shown, is_whole = gallery_result(name), name in TO_THE_END
    for again in result_of(
        with_settings(shown.spec, (whole if is_whole else beginning)(shown.spec))
    ).points:
        before = next(point for point in shown.points if point.key == again.key)
        old = records(before)
        if is_whole:
            assert compared(again, before, AT_THE_END)
            for key, new in records(again).items():
                assert [at(new, each) for each in EQUAL] == [at(old[key], each) for each in EQUAL]
        elif shown.spec.experiment == "horizon":
            assert sum(prefix(new, old[key]) for key, new in records(again).items()) >= 3
        elif records(again):
            assert compared(again, before, AT_START) >= 3
        else:  # no curves and no kernels, only its inputs
            assert prefix(again, before)
