"""How a page follows a job: its words while the job waits and runs, and which URLs it reads."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from linearity_lab.components import session
from linearity_lab.components.job_status import progress_words
from ntk_core.experiments.architectures import ArchitecturesPoint, ArchitecturesSpec
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.runs import Spec
from tests.dashboard.made_results import make_points
from tests.dashboard.open_pages import bars, checked, open_page, words

SPEC = KernelChangeSpec(widths=(30, 100, 1000))


@pytest.fixture
def running(jobs):
    return jobs.snapshots[jobs.add(SPEC)]


def test_waiting_shows_place_start_and_end(running):
    waiting = replace(running, status="queued", position=3, starts_in_s=40.0, remaining_s=200.0)
    assert progress_words(waiting) == "Waiting, place 3 in the queue, starts in about 40 s, done in about 3 min"


@pytest.mark.parametrize("page", ["kernel_change", "architectures"])
@pytest.mark.parametrize("finished", [0, 1])
def test_trained_runs_are_drawn_while_others_train(jobs, page, finished):
    whole, part = make_points((30, 100), exponents={"linear": -1.0})
    part = part.model_copy(update={"runs": part.runs[:1]})
    spec: Spec = SPEC
    points = [whole, part]
    if page == "architectures":
        spec = ArchitecturesSpec(widths=(30, 100))
        points = [ArchitecturesPoint.model_validate({**dict(p), "kind": page, "network": "A"}) for p in points]
    job = jobs.add(spec, points=tuple(points[:1] * finished), growing=(points[1],), grown=1)
    app = open_page(page, job=job)
    drawn = [trace for chart in app.get("plotly_chart") for trace in json.loads(chart.proto.spec)["data"]]
    seeds = [trace for trace in drawn if (trace.get("meta") or {}).get("seeds")]
    assert sum(len(trace["text"]) for trace in seeds) == len(whole.runs) * finished + 1
    assert f"{finished} of {len(spec.point_keys())} " in bars(app)[0]
    assert "Computing the first point…" not in words(app)


def test_late_address_of_a_click_reverts_nothing(jobs, monkeypatch):
    app = checked(open_page("kernel_change", num_seeds="3"))
    earlier = dict(app.query_params)
    app.number_input(key="kernel_change.num_seeds").set_value(4).run()
    app.query_params = earlier  # of a browser that has not yet heard of the new address
    app.number_input(key="kernel_change.seed").set_value(7).run()
    shown = [app.number_input(key=f"kernel_change.{name}").value for name in ("num_seeds", "seed")]
    assert shown == [4, 7]
    assert app.query_params["num_seeds"] in ("4", ["4"])
    monkeypatch.setattr(session, "LATE_S", 0.0)
    app.query_params = earlier
    assert checked(app.run()).number_input(key="kernel_change.num_seeds").value == 3
