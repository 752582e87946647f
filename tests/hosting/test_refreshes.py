"""A page's refresh of itself waits for the answer to what was asked before; what people do is always let through."""

from __future__ import annotations

import asyncio
import time

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from linearity_lab.server._refreshes import OneRefreshAtATime

DONE = ForwardMsg.FINISHED_SUCCESSFULLY
REFRESHED = ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY
ABANDONED = ForwardMsg.FINISHED_EARLY_FOR_RERUN
PATIENCE_S = 0.05


def rerun(*, by_itself: bool) -> dict:
    message = BackMsg()
    message.rerun_script.is_auto_rerun = by_itself
    message.rerun_script.fragment_id = "panel" if by_itself else ""
    return {"type": "websocket.receive", "bytes": message.SerializeToString()}


def finished(status) -> dict:
    message = ForwardMsg()
    message.script_finished = status
    return {"type": "websocket.send", "bytes": message.SerializeToString()}


TIMER, CLICK = rerun(by_itself=True), rerun(by_itself=False)
STOP = {"type": "websocket.receive", "bytes": BackMsg(stop_script=True).SerializeToString()}
BROKEN = {"type": "websocket.receive", "bytes": b"\xff\xff\xff"}
LEAVES = {"type": "websocket.disconnect"}
RUNS, WAITS = {"type": "websocket.send", "text": "between"}, "waits"


def let_through(*story) -> list:
    """What of a browser's messages has reached Streamlit, while it says its own between them."""
    asked, reached = list(story), []

    async def receive():
        while True:
            part = asked.pop(0) if asked else LEAVES
            if part == WAITS:
                time.sleep(1.2 * PATIENCE_S)
            elif part["type"] == "websocket.send":
                await said(part)
            else:
                return part

    async def app(scope, receive, send):
        nonlocal said
        said = send
        while (message := await receive()) != LEAVES:
            reached.append(message)

    async def said(message):
        raise AssertionError("nobody is connected yet")

    async def send(message):
        pass

    asyncio.run(OneRefreshAtATime(app, PATIENCE_S)({"type": "websocket"}, receive, send))
    return reached


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        ([TIMER, TIMER, TIMER], [TIMER]),
        ([TIMER, finished(REFRESHED), TIMER, TIMER], [TIMER, TIMER]),
        ([CLICK, TIMER, TIMER, finished(DONE), TIMER], [CLICK, TIMER]),
        ([CLICK, TIMER, finished(ABANDONED), TIMER, finished(DONE), TIMER], [CLICK, TIMER]),
        ([TIMER, CLICK, CLICK, TIMER], [TIMER, CLICK, CLICK]),
        ([CLICK, STOP, TIMER, BROKEN], [CLICK, STOP, BROKEN]),
        ([CLICK, RUNS, TIMER, finished(DONE), RUNS, TIMER], [CLICK, TIMER]),
        ([TIMER, TIMER, WAITS, TIMER, TIMER], [TIMER, TIMER]),
    ],
    ids=[
        "refreshes do not pile up",
        "the next one comes after the answer",
        "none during a run of the page",
        "none while another run follows by itself",
        "what people do is not dropped",
        "all else passes",
        "other messages end nothing",
        "an answer that never comes is not waited for",
    ],
)
def test_a_refresh_waits_for_the_answer(story, expected):
    assert let_through(*story) == expected


def test_long_messages_are_passed_on_whole():
    sent = []
    long = ForwardMsg()
    long.delta.new_element.text.body = "x" * 10_000

    async def app(scope, receive, send):
        await send({"type": "websocket.send", "bytes": long.SerializeToString()})

    async def send(message):
        sent.append(message)

    asyncio.run(OneRefreshAtATime(app)({"type": "websocket"}, None, send))
    assert sent == [{"type": "websocket.send", "bytes": long.SerializeToString()}]
