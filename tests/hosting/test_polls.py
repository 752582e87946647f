"""Class polls: random codes, bounded numbers, one vote per participant, deletion at the end."""

import base64
import hmac
import json
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from starlette.applications import Starlette

from linearity_lab.dashboard.pages.lecture import poll_votes as module
from linearity_lab.dashboard.pages.lecture.poll_votes import Polls, TooManyPolls
from tests.hosting.answer import Answer

HOST, LINE = "host", "192.0.2.1"
ORDER = (2, 0, 1)


@pytest.fixture
def clock() -> SimpleNamespace:
    """A clock that the test advances."""
    return SimpleNamespace(now=1000.0)


@pytest.fixture
def polls(clock) -> Polls:
    return Polls(lambda: clock.now)


def opened(polls, members=("a", "b"), question="q") -> str:
    code = polls.open(HOST, LINE)
    polls.ask(code, HOST, question, ORDER, is_revealed=False)
    for member in members:
        assert polls.join(code, member) == "joined"
    return code


def test_code_has_96_random_bits_and_constant_time_compare(polls, monkeypatch):
    codes = {polls.open(f"host {index}", f"line {index}") for index in range(30)}
    assert len(codes) == 30
    assert all(len(base64.urlsafe_b64decode(code)) * 8 == 96 for code in codes)
    compared = []
    same = hmac.compare_digest

    def noted(a: bytes, b: bytes) -> bool:
        compared.append((a, b))
        return same(a, b)

    monkeypatch.setattr(module.hmac, "compare_digest", noted)
    assert polls.join(next(iter(codes)), "a") == "joined"
    assert len(compared) == 30, "also after the right one was found"
    for guess in ("", "x", "ä" * 4, next(iter(codes))[:-1], "\ud800"):
        assert polls.join(guess, "b") == "unknown"


def test_host_sees_votes_by_address_and_no_address_is_stored(polls):
    code = polls.open(HOST, LINE)
    polls.ask(code, HOST, "q", ORDER, is_revealed=False)
    classroom = "198.51.100.7"  # one router for all phones
    for member in range(62):
        assert polls.join(code, f"m{member}", classroom) == "joined"
        assert polls.vote(code, f"m{member}", "q", 0), "shared addresses are legitimate"
    for name, address in (("x", "203.0.113.1"), ("y", "203.0.113.2"), ("silent", "203.0.113.3")):
        assert polls.join(code, name, address) == "joined"
    for name in ("x", "y"):
        assert polls.vote(code, name, "q", 1)
    assert polls.vote(code, "x", "q", 2), "a changed vote counts once"
    # A member who joins again from another network is counted at the first address.
    assert polls.join(code, "x", classroom) == "joined"
    seen = polls.ask(code, HOST, "q", ORDER, is_revealed=False)
    assert seen.by_address == (62, 1, 1)
    assert sum(seen.by_address) == seen.num_votes == 64
    assert polls.look(code, "x").by_address == (), "for the host only"
    assert classroom not in repr(polls._held)
    assert "203.0.113" not in repr(polls._held)


def test_addresses_of_the_second_round_are_counted_again(polls):
    code = opened(polls)
    polls.vote(code, "a", "q", 0)
    polls.vote_again(code, HOST)
    assert polls.ask(code, HOST, "q", ORDER, is_revealed=False).by_address == ()
    polls.vote(code, "b", "q", 0)
    assert polls.ask(code, HOST, "q", ORDER, is_revealed=False).by_address == (1,)


def test_one_vote_each_that_may_change_until_the_answer(polls):
    code = opened(polls)
    assert polls.vote(code, "a", "q", 0)
    assert polls.vote(code, "a", "q", 2)
    assert polls.vote(code, "b", "q", 0)
    seen = polls.look(code, "a")
    assert (seen.counts, seen.own, seen.num_votes, seen.num_members) == ((1, 0, 1), 2, 2, 2)
    assert polls.ask(code, HOST, "q", ORDER, is_revealed=True).is_revealed
    assert not polls.vote(code, "a", "q", 1)
    assert polls.look(code, "a").own == 2
    assert polls.ask(code, HOST, "q", ORDER, is_revealed=False).is_revealed, (
        "what was shown stays shown"
    )
    assert polls.ask(code, HOST, "p", ORDER, is_revealed=False).num_votes == 0
    for member, question, choice in (("x", "p", 0), ("a", "q", 0), ("a", "p", 3), ("a", "p", -1)):
        assert not polls.vote(code, member, question, choice)
    assert polls.look(code, "a").num_votes == 0
    assert polls.ask(code, HOST, "q", ORDER, is_revealed=False).counts == (1, 0, 1), (
        "the votes return"
    )


def test_only_the_host_asks_and_ends(polls):
    code, other = opened(polls), polls.open("other", LINE)
    assert polls.ask(other, "other", "of another", ORDER, is_revealed=False).num_votes == 0
    assert polls.ask(code, "a", "p", ORDER, is_revealed=True) is None
    polls.close(code, "a")
    assert polls.look(code, "a").question == "q"
    polls.close(code, HOST)
    assert polls.look(code, "a") is None
    assert polls.join(code, "a") == "unknown"
    again = polls.open("other", LINE)
    assert polls.state(other, "other") == "", "a host has one poll"
    polls.close(again, "other")
    assert polls._held == {}, "nothing is kept"


def test_the_numbers_of_polls_questions_and_members_are_bounded(polls, clock):
    for index in range(module.MAX_POLLS_PER_ADDRESS):
        polls.open(f"host {index}", LINE)
    with pytest.raises(TooManyPolls):
        polls.open("one more", LINE)
    clock.now += module.SILENT_S + 1
    polls.open("one more", LINE)  # replaces one with an absent host
    assert "host 0" not in polls._held
    for index in range(module.MAX_POLLS - len(polls._held)):
        code = polls.open(f"other {index}", f"line {index}")
    with pytest.raises(TooManyPolls):
        polls.open("last", "another line")
    host = f"other {index}"
    polls.ask(code, host, "q", ORDER, is_revealed=False)
    for member in range(module.MAX_MEMBERS):
        assert polls.join(code, str(member)) == "joined"
        polls.vote(code, str(member), "q", 0)
    assert polls.join(code, "late") == "full"
    clock.now += module.AWAY_S + 1
    assert polls.join(code, "late") == "joined", "in place of one that is long away, with its vote"
    assert polls.look(code, "late").num_votes == module.MAX_MEMBERS - 1
    for question in range(100):
        polls.ask(code, host, f"question {question}", ORDER, is_revealed=True)
    (held,) = (held for held in polls._held.values() if held.code == code)
    assert len(held.votes) == module.MAX_QUESTIONS
    assert len(held.revealed) <= module.MAX_QUESTIONS


@pytest.mark.parametrize("silent", [True, False])
def test_a_poll_ends_by_itself(polls, clock, silent):
    code = opened(polls)
    ends = module.IDLE_S if silent else module.LONGEST_S
    while clock.now < 1000 + ends:
        clock.now += 600
        if not silent:
            polls.ask(code, HOST, "q", ORDER, is_revealed=False)
    clock.now += 601
    assert polls.look(code, "a") is None
    assert polls._held == {}


def test_thirty_members_at_once_lose_no_vote(polls):
    code = opened(polls, members=[str(index) for index in range(30)])

    def vote(member: str) -> None:
        for choice in (0, 1, 2):
            assert polls.vote(code, member, "q", choice)

    with ThreadPoolExecutor(30) as pool:
        list(pool.map(vote, map(str, range(30))))
    assert polls.ask(code, HOST, "q", ORDER, is_revealed=False).counts == (0, 0, 30)


def test_host_begins_a_second_round_until_the_answer(polls):
    code = opened(polls)
    for member in ("a", "b"):
        polls.vote(code, member, "q", 0)
    polls.vote_again(code, "a")
    assert polls.look(code, "a").before == (), "only the host begins a round"
    polls.vote_again(code, HOST)
    assert polls.vote(code, "a", "q", 1)
    seen = polls.look(code, "b")
    assert (seen.before, seen.counts, seen.own) == ((2, 0, 0), (0, 1, 0), None)
    polls.ask(code, HOST, "q", ORDER, is_revealed=True)
    polls.vote_again(code, HOST)
    assert polls.look(code, "b").counts == (0, 1, 0), "no round after the answer"


def test_host_closes_votes_by_a_timer_and_the_poll_to_strangers(polls, clock):
    code = opened(polls)
    polls.start_timer(code, HOST)
    clock.now += module.TIMER_S - 1
    assert polls.look(code, "a").seconds_left == 1
    assert polls.vote(code, "a", "q", 0)
    clock.now += 1
    assert not polls.vote(code, "a", "q", 1)
    polls.ask(code, HOST, "p", ORDER, is_revealed=False)
    assert polls.vote(code, "a", "p", 1)

    polls.admit(code, "a", False)
    assert polls.look(code, "a").is_open, "only the host closes"
    polls.admit(code, HOST, False)
    assert (polls.join(code, "late"), polls.join(code, "a")) == ("closed", "joined")
    polls.admit(code, HOST, True)
    assert polls.join(code, "late") == "joined"


def test_state_is_served_and_changes_with_what_each_sees(polls, monkeypatch):
    monkeypatch.setattr(module, "_SHARED", polls)
    app, code = Starlette(routes=[module.ROUTE]), opened(polls)

    def watched(watch: str) -> tuple[str, str]:
        found = Answer(app, module.PATH, headers={"x-lab-watch": watch})
        return json.loads(found.text)["state"], found.headers.get("set-cookie", "")

    def states() -> list[str]:
        return [watched(f"{code} {who}")[0] for who in (HOST, "a", "b")]

    before = states()
    assert before == states()
    assert "" not in before
    polls.vote(code, "a", "q", 1)
    assert [one == other for one, other in zip(before, states(), strict=True)] == [
        False,
        False,
        True,
    ]
    polls.ask(code, HOST, "q", ORDER, is_revealed=True)
    assert states()[2] != before[2]
    assert watched(f"{code} {HOST}")[1] == ""
    assert f"{module.COOKIE}=a" in watched(f"{code} a")[1]
    for stranger in ("", code, f"{code} ", f"{code} eve", f"wrong {HOST}", " "):
        assert watched(stranger) == ("", "")
