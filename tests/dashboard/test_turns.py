"""Turns of pages and pictures; the waiting threads are real, no test measures time."""

import threading
import time

import plotly.graph_objects as go
import pytest

from linearity_lab.dashboard.shown import above_once
from linearity_lab.dashboard.turns import Kind, Turns


def _wait_until(condition) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never happens"
        time.sleep(0.001)


def test_pages_come_first_then_first_marks():
    turns = Turns(patience_s=60.0)
    drawn: list[Kind] = []
    at_once: list[int] = []

    def draw(kind: Kind) -> None:
        with turns.turn(kind):
            at_once.append(turns._num_drawing)
            drawn.append(kind)

    threads = []
    with turns.turn(Kind.PAGE):
        for kind in (Kind.LATER_PICTURE, Kind.FIRST_MARK, Kind.PAGE, Kind.FIRST_MARK):
            threads.append(threading.Thread(target=draw, args=(kind,)))
            threads[-1].start()
            _wait_until(lambda: len(turns._waiting) == len(threads))
        assert drawn == []
    for thread in threads:
        thread.join(60)
    assert drawn == [Kind.PAGE, Kind.FIRST_MARK, Kind.FIRST_MARK, Kind.LATER_PICTURE]
    assert at_once == [1, 1, 1, 1]


def test_a_page_that_hangs_or_fails_keeps_no_other_waiting():
    turns = Turns(patience_s=0.0)
    with turns.turn(Kind.PAGE), turns.turn(Kind.LATER_PICTURE):
        assert turns._num_drawing == 2
    with pytest.raises(ZeroDivisionError), turns.turn(Kind.PAGE):
        raise ZeroDivisionError
    assert (turns._num_drawing, turns._waiting) == (0, [])


def test_sessions_share_a_figure_above_its_ghost():
    def figure(high: float) -> go.Figure:
        axes = {"xaxis": {"range": [0, 1]}, "yaxis": {"range": [0, high]}}
        return go.Figure(go.Scatter(x=[0, 1], y=[0, high], mode="lines"), axes)

    now, before = figure(1.0), figure(3.0)
    both = above_once(now, before)
    assert above_once(now, before) is both
    assert both.has_ghost
    sent = both.sent.to_dict()
    assert [trace["y"][1] for trace in sent["data"]] == [1.0, 3.0]
    assert list(sent["layout"]["yaxis"]["range"]) == [0, 3.0]
    assert above_once(now, figure(3.0)) is not both
    assert not above_once(now, go.Figure()).has_ghost
