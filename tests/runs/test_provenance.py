"""Provenance of points, kept when another run reuses them."""

from __future__ import annotations

import pytest

from ntk_core.dynamics.choices import TrainingSpec
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.runs import Provenance, run
from tests.running import Kept

SPEC = KernelChangeSpec(
    widths=(4, 8), num_seeds=1, outputs=("linear",), training=TrainingSpec(max_steps=2, num_records=2)
)
EARLIER = Provenance(
    versions={"jax": "0.1"}, platform="another one", device="abacus", dtype="float32", started_at="2020-01-01"
)


@pytest.fixture(scope="module")
def computed():
    kept = Kept()
    *_, ended = run(SPEC, points=kept)
    return kept, ended.result


def of_another_run(point):
    return point.model_copy(update={"provenance": EARLIER, "runtime_s": 100.0})


def test_finished_point_is_saved_with_its_provenance(computed):
    kept, result = computed
    assert [point.provenance for point in kept.values()] == [result.provenance] * 2
    assert result.origins == ((result.provenance, ("width=4", "width=8")),)


def test_reused_points_keep_provenance_and_time(computed):
    kept, _ = computed
    *_, ended = run(SPEC, points=Kept({key: of_another_run(point) for key, point in kept.items()}))
    assert ended.result.provenance == EARLIER
    assert ended.result.origins == ((EARLIER, ("width=4", "width=8")),)
    assert ended.result.runtime_s >= 200


def test_a_resumed_run_names_both_origins_the_earlier_first(computed):
    kept, _ = computed
    *_, ended = run(SPEC, points=Kept({"width=4": of_another_run(kept["width=4"])}))
    (first, of_first), (second, of_second) = ended.result.origins
    assert (first, of_first, of_second) == (EARLIER, ("width=4",), ("width=8",))
    assert second == ended.result.provenance != EARLIER
    assert ended.result.runtime_s >= 100


def test_points_without_provenance_are_the_results(computed):
    _, result = computed
    bare = tuple(point.model_copy(update={"provenance": None}) for point in result.points)
    assert result.model_copy(update={"points": bare}).origins == result.origins
