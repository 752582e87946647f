"""Every limit of every profile: accept the exact limit, refuse one above it in one sentence."""

import contextlib
import math
import re
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from linearity_lab.dashboard.jobs.limits import OverLimit, check_limits, largest_of
from linearity_lab.dashboard.jobs.profile import OVERRIDES, PROFILES, Profile, profile
from linearity_lab.dashboard.smaller_runs import largest_fit
from linearity_lab.experiments.architectures.point import ArchitecturesSpec
from linearity_lab.experiments.hessian.spec import HessianSpec
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.networks.sizes import layer_sizes
from linearity_lab.networks.spec import ArchitectureSpec
from linearity_lab.runs import EXPERIMENTS, PRESETS, _estimate, capped, check_time, estimate
from linearity_lab.runs.costs import SHIPPED, _counted
from linearity_lab.settings.grammar import settings
from ntk_core.errors import InvalidInput, TooLarge
from tests.runs.largest_specs import largest

VARIABLES = ("LINEARITY_LAB_PROFILE", "LINEARITY_LAB_WORKERS", *OVERRIDES)
NARROW = KernelChangeSpec(widths=(2,), num_seeds=1)
EVERY = pytest.mark.parametrize("limits", PROFILES.values(), ids=PROFILES.keys())
SHARED = [limits for limits in PROFILES.values() if limits.is_shared]
HOSTING = Path(__file__).parents[2] / "docs" / "hosting.md"


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("linearity_lab.runs._estimate.memory_limit", lambda: math.inf)
    # Without timings of other tests' runs.
    monkeypatch.setattr("linearity_lab.runs.costs._here", SHIPPED)


@pytest.fixture
def costs(monkeypatch):
    """Cost of specs, set by the test."""

    def state(*, seconds: float = 1.0, peak_bytes: float = 1.0) -> None:
        monkeypatch.setattr(
            "linearity_lab.runs._estimate.seconds_of_points", lambda *_: {"": seconds}
        )
        monkeypatch.setattr("linearity_lab.runs._estimate.largest_bytes", lambda spec: peak_bytes)

    state()
    return state


@pytest.mark.parametrize("variable", OVERRIDES)
def test_each_limit_has_a_variable_of_its_own(monkeypatch, variable):
    limit, unit = OVERRIDES[variable]
    monkeypatch.setenv(variable, "7")
    assert getattr(profile(), limit) == 7 * unit
    is_whole = variable != "LINEARITY_LAB_MEMORY_GIB"
    for wrong in ("0", "-1", "nan", "many", "9" * 30, *["1.5"] * is_whole):
        monkeypatch.setenv(variable, wrong)
        with pytest.raises(InvalidInput, match=variable):
            profile()


@EVERY
def test_workers_at_the_limit_pass_and_one_more_is_refused(monkeypatch, limits):
    monkeypatch.setenv("LINEARITY_LAB_PROFILE", limits.name)
    monkeypatch.setenv("LINEARITY_LAB_WORKERS", str(limits.max_workers))
    assert profile().num_workers == limits.max_workers
    monkeypatch.setenv("LINEARITY_LAB_WORKERS", str(limits.max_workers + 1))
    with pytest.raises(InvalidInput, match=f"1 to {limits.max_workers}"):
        profile()


@EVERY
@pytest.mark.parametrize(
    ("limit", "field", "spec_of"),
    [
        ("max_width", "widths", lambda most: KernelChangeSpec(widths=(2, most))),
        ("max_seeds", "num_seeds", lambda most: HessianSpec(num_seeds=most)),
    ],
)
def test_setting_at_the_limit_passes_and_one_more_is_refused(costs, limits, limit, field, spec_of):
    most = getattr(limits, limit)
    check_limits(spec_of(most), limits)
    with pytest.raises(OverLimit) as refused:
        check_limits(spec_of(most), replace(limits, **{limit: most - 1}))
    assert (
        str(refused.value)
        == f"{field}: {most} cannot be used; use at most {most - 1:,} on this server"
    )


@pytest.mark.parametrize("limits", SHARED, ids=lambda limits: limits.name)
@pytest.mark.parametrize(
    ("limit", "cost", "unit"),
    [("max_seconds", "seconds", "seconds"), ("max_memory_bytes", "peak_bytes", "bytes")],
)
def test_cost_at_the_limit_passes_and_any_more_is_refused(costs, limits, limit, cost, unit):
    most = getattr(limits, limit)
    costs(**{cost: most})
    check_limits(NARROW, limits)
    costs(**{cost: math.nextafter(most, math.inf)})
    with pytest.raises(TooLarge) as refused:
        check_limits(NARROW, limits)
    assert refused.value.unit == unit


def test_a_local_server_is_limited_by_what_is_free_alone(costs, monkeypatch):
    assert profile() == PROFILES["local"]
    costs(seconds=1e12, peak_bytes=2.0**60)
    check_limits(NARROW, profile())
    monkeypatch.setattr("linearity_lab.runs._estimate.memory_limit", lambda: 1000.0)
    with pytest.raises(TooLarge):
        check_limits(NARROW, profile())


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_setting_that_counts_neurons_is_held_to_the_width(experiment):
    """By the shared type of all widths, so that new settings are included."""
    every = settings(EXPERIMENTS[experiment].spec)
    wide = [
        each
        for each in every
        if each.name != "training.max_steps" and "le=10000000" in repr(each.info)
    ]
    wide += [each for each in every if each.entry == "integer" and each.name.endswith("width")]
    assert wide
    assert {largest_of(each, PROFILES["hosted"]) for each in wide} == {10_000}


@pytest.mark.parametrize("name", PRESETS)
def test_refusal_names_the_largest_value_that_fits(name):
    """Estimated costs: the paper's sizes against half of their cost."""
    spec = PRESETS[name].paper_spec
    limits = replace(PROFILES["local"], max_seconds=estimate(spec).seconds / 2)
    with pytest.raises(TooLarge) as refused:
        check_limits(spec, limits)
    field, nearest = refused.value.field, refused.value.nearest
    if nearest == 1:  # no setting suffices alone, so each is lowered in turn
        smaller = largest_fit(spec, limits)
        assert smaller is not None
        check_limits(smaller, limits)
        return
    check_limits(capped(spec, field, nearest), limits)
    with pytest.raises(TooLarge):
        check_limits(capped(spec, field, 2 * nearest + 10), limits)


@pytest.mark.first_cases(1)  # searches every preset
@EVERY
def test_largest_size_here_passes_every_limit(limits):
    largest = list(
        filter(None, (largest_fit(preset.paper_spec, limits) for preset in PRESETS.values()))
    )
    assert len(largest) > len(PRESETS) / 2
    for spec in largest:
        check_limits(spec, limits)
        assert type(spec)(**spec.model_dump()) == spec


def test_presets_fit_profiles_except_those_in_the_guide():
    def refused(limits: Profile) -> set[str]:
        names = set()
        for name, preset in PRESETS.items():
            try:
                check_limits(preset.spec, limits)
            except InvalidInput:
                names.add(name)
        return names

    assert refused(PROFILES["classroom"]) == set()
    _, _, rest = HOSTING.read_text(encoding="utf-8").partition(
        "every figure of the papers runs in a classroom"
    )
    named = re.findall(r"`([^`]+)`", rest.partition("on a host;")[0])
    assert named
    assert refused(PROFILES["hosted"]) == set(named)


def test_one_of_several_networks_is_refused_by_its_name(costs, monkeypatch):
    monkeypatch.setenv("LINEARITY_LAB_MAX_WIDTH", "100")
    bottleneck = ArchitectureSpec(kind="bottleneck", depth=3, bottleneck_width=101)
    with pytest.raises(OverLimit, match=r"^architectures\.1\.bottleneck_width: 101"):
        check_limits(
            ArchitecturesSpec(widths=(100,), architectures=(ArchitectureSpec(), bottleneck))
        )


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_check_of_the_largest_spec_is_short(experiment):
    """A 2: a page load without Run kept the server busy for minutes.
    The limit is ten times the usual time.
    """
    spec = largest(experiment)
    for limits in PROFILES.values():
        took_s = [math.inf]
        while min(took_s) > 0.5 and len(took_s) < 4:
            for cached in (_estimate._costs, _estimate._most_in_time, _counted, layer_sizes):
                cached.cache_clear()
            began = time.thread_time()
            for check in (partial(check_limits, spec, limits), partial(check_time, spec, 30.0)):
                with contextlib.suppress(InvalidInput):
                    check()
            took_s.append(time.thread_time() - began)
        assert min(took_s) <= 0.5
