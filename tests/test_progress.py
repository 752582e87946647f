"""Reports of nested work: shares, messages, partial points, and stops."""

from __future__ import annotations

import pytest

from ntk_core.progress import Progress, Stopped


class Heard:
    """A progress that keeps what it receives; it stops after ``most`` reports and points."""

    def __init__(self, most: float = float("inf")):
        self.reports: list[tuple[float, str]] = []
        self.points: list[object] = []
        self.progress = Progress(
            lambda *report: self.reports.append(report),
            self.points.append,
            lambda: len(self.reports) + len(self.points) >= most,
        )


def test_parts_of_parts_fill_the_whole_without_gaps():
    heard = Heard()
    for outer in range(3):
        half = heard.progress.part(outer, 3).between(0.25, 1.0)
        for inner in range(7):
            part = half.part(inner, 7)
            for share in (0.0, 0.3, 1.0):
                part.report(share)
    shares = [share for share, _ in heard.reports]
    assert shares == sorted(shares)
    assert shares[0] == pytest.approx(0.25 / 3)
    assert shares[20] == pytest.approx(1 / 3)
    assert shares[-1] == 1.0


def test_names_come_before_the_message_from_the_outside_in():
    heard = Heard()
    inner = heard.progress.named("width 8").part(0, 2).named("seed 1")
    inner.report(0.5, "step 10")
    inner.report(1.0)
    assert heard.reports == [(0.25, "width 8, seed 1, step 10"), (0.5, "width 8, seed 1")]


def test_partial_points_are_converted_by_every_level():
    heard = Heard()
    doubled = heard.progress.showing(lambda point: 2 * point)
    doubled.part(1, 2).showing(lambda point: point + 1).show(3)
    assert heard.points == [8]


@pytest.mark.parametrize("ask", ["report", "show", "check"])
def test_a_stop_reaches_the_innermost_work(ask):
    heard = Heard(most=1)
    inner = heard.progress.part(0, 2).named("seed 1").between(0.0, 0.5)
    inner.check()
    heard.points.append("found")
    with pytest.raises(Stopped):
        {"report": lambda: inner.report(0.0), "show": lambda: inner.show(1), "check": inner.check}[
            ask
        ]()


def careless_work(progress):
    try:
        progress.report(0.0)
    except Exception:
        return "took the stop for an error of its own"
    return "was not stopped"


def test_handlers_of_errors_do_not_catch_a_stop():
    with pytest.raises(Stopped):
        careless_work(Progress(should_stop=lambda: True))


def test_without_listeners_nothing_happens():
    progress = Progress()
    progress.part(0, 2).named("a").report(0.5, "b")
    progress.show("point")
    progress.check()
