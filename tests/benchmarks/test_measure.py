"""Timing: fair comparisons, correct spreads, and no committed numbers from a busy machine."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks import __main__ as runner
from benchmarks import growth, measure
from benchmarks.growth import Size
from benchmarks.measure import Measured, Settings, Watch, alternate
from benchmarks.peers import process
from ntk_core import FullyConnected


def competitor(name: str, calls: list[tuple[str, bool]], seconds: float = 1.0):
    def call(weigh: bool) -> Measured:
        calls.append((name, weigh))
        return Measured(seconds, 10 if weigh else None)

    return call


def test_competitors_alternate_and_are_weighed_after_warmup():
    calls: list[tuple[str, bool]] = []
    rows = alternate({name: competitor(name, calls) for name in "ab"}, repeats=3).times
    assert [name for name, _ in calls] == ["a", "b"] * 4
    assert [weigh for _, weigh in calls] == [False] * 2 + [True] * 2 + [False] * 4
    assert rows["b"]["repeats"] == 3
    assert rows["b"]["added_bytes"] == 10


def test_slow_competitor_stops_after_its_budget():
    calls: list[tuple[str, bool]] = []
    rivals = {"slow": competitor("slow", calls, 100.0), "quick": competitor("quick", calls, 0.1)}
    rows = alternate(rivals, repeats=8, budget_s=5, least=3).times
    assert (rows["slow"]["repeats"], rows["quick"]["repeats"]) == (3, 8)


def test_work_of_children_is_ours_and_work_of_strangers_is_not(monkeypatch):
    monkeypatch.setattr(measure, "_machine_seconds", lambda: 100.0 + 2 * measure._our_seconds())
    watch = Watch()
    busy = "import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass"
    subprocess.run([sys.executable, "-c", busy], check=True)
    note = watch.note()
    # The machine works twice as long as this process; other programs account for half, at least 0.5
    # s.
    assert note["busy_by_others"] * note["took_s"] >= 0.48  # within two clock ticks
    assert note["high"] == (note["busy_by_others"] > measure.MOST_BY_OTHERS)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    committed, look = tmp_path / "results", tmp_path / "look"
    monkeypatch.setattr(runner, "RESULTS", committed)
    monkeypatch.setattr(runner, "ASIDE", look)
    return committed, look


@pytest.mark.parametrize(
    ("high", "force", "kept"), [(False, False, True), (True, False, False), (True, True, True)]
)
def test_numbers_of_a_busy_machine_need_force(places, monkeypatch, high, force, kept):
    committed, look = places
    committed.mkdir()
    (committed / "training.json").write_text('"before"')
    note = {
        "at_start": 1.0,
        "at_end": 2.0,
        "took_s": 1.0,
        "busy_by_others": 0.9 if high else 0.0,
        "high": high,
    }
    monkeypatch.setattr(Watch, "note", lambda self: note)
    monkeypatch.setattr("benchmarks.training.measure", lambda settings: {"found": 1})
    with pytest.raises(SystemExit) as ended:
        runner.main(["--only", "training", *(["--force"] if force else [])])
    assert bool(ended.value.code) is not kept
    place = committed if kept else look
    written = json.loads((place / "training.json").read_text())
    assert written["load"]["forced"] is (high and force)
    assert written["found"] == 1
    assert ((committed / "training.json").read_text() == '"before"') is not kept


def test_quick_numbers_and_failed_parts_are_never_written(places, monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.training.measure", lambda settings: {"quick": settings.quick})
    with pytest.raises(SystemExit) as ended:
        runner.main(["--only", "training", "--quick"])
    assert not ended.value.code
    assert "training: works" in capsys.readouterr().out

    def broken(settings: Settings) -> dict:
        raise RuntimeError("no such luck")

    monkeypatch.setattr("benchmarks.training.measure", broken)
    with pytest.raises(SystemExit) as ended:
        runner.main(["--only", "training"])
    assert ended.value.code
    assert "no such luck" in capsys.readouterr().err
    assert not any(place.exists() for place in places)


def test_peers_are_pinned():
    for name in process.NAMES:
        lines = [
            line
            for line in process.requirements(name).read_text().splitlines()
            if not line.startswith("#")
        ]
        # A peer's requirements are installed if it runs in this environment.
        assert lines
        assert all("==" in line or line == "-r ../../requirements.txt" for line in lines)


def test_a_warm_peer_answers_requests_and_reports_its_end(tmp_path, monkeypatch):
    script = Path(process.HERE) / "side.py"
    (tmp_path / "side.py").write_text(script.read_text())
    (tmp_path / "fake_side.py").write_text(
        "from side import serve\n"
        "def sums(request):\n    return {'add': (lambda: sum(request['of']), lambda found: "
        "{'norm': found})}\n"
        "serve({'sums': sums}, ('numpy',))\n"
    )
    monkeypatch.setattr(process, "HERE", tmp_path)
    with process.Peer("fake", sys.executable) as peer:
        assert peer.ask({"packages": True}) == {"numpy": np.__version__}
        peer.ask({"what": "sums", "of": [1, 2, 3]})
        began = time.perf_counter()
        measured = peer.competitor("add")(True)
        assert 0 <= measured.seconds <= time.perf_counter() - began
        assert measured.added_bytes is not None
        assert measured.found["norm"] == 6
        with pytest.raises(RuntimeError, match="process ended"):
            peer.ask({"time": "no such call", "weigh": False})


@pytest.mark.parametrize("size", [Size(40), Size(30, depth=3), Size(20, n=7, C=2, depth=2)])
def test_ceilings_count_each_weight_once(size):
    net = FullyConnected(width=size.m, depth=size.depth, num_outputs=size.C, use_bias=False)
    weights = size.num_weights
    assert weights == net.num_params((growth.INPUT_DIM,))
    operations, _ = growth.kernel_needs(size)
    jacobians = 2 * size.n * size.C * 2 * weights + (size.n * size.C) ** 2 * weights
    assert 2 * size.n * weights < operations < jacobians
    assert growth.training_step_needs(size)[0] <= 3 * 2 * size.n * weights
