"""Polls of classes, in the memory of this process, with unguessable codes, members and votes."""

import hashlib
import hmac
import math
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

CODE_BYTES = 12  # 96 bits
MAX_POLLS = 40
MAX_POLLS_PER_ADDRESS = 10
MAX_MEMBERS = 120
MAX_QUESTIONS = 40
MAX_CHOICES = 9
# Lifetime of a poll, and of one without its host.
LONGEST_S = 4 * 3600.0
IDLE_S = 3600.0
# After this time without its host, a poll is replaced by another one of its address.
SILENT_S = 600.0
HERE_S = 10.0  # a member with a request in this time is present
AWAY_S = 120.0  # after this absence a member is replaced by another one
TIMER_S = 60.0
Joined = Literal["joined", "unknown", "full", "closed"]


@dataclass(frozen=True)
class PollView:
    """A poll as a page shows it."""

    question: str
    order: tuple[int, ...]  # choices in the order of this poll
    is_revealed: bool  # the answer is shown and votes are closed
    num_members: int
    counts: tuple[int, ...]  # votes for each choice
    own: int | None = None  # the viewer's vote
    before: tuple[
        int, ...
    ] = ()  # votes for each choice in the first round; empty in the first round
    seconds_left: int | None = None  # until votes close; None without a timer
    is_open: bool = True  # whether further phones may join
    by_address: tuple[int, ...] = ()  # for the host: votes of each network address, most first

    @property
    def num_votes(self) -> int:
        """Number of votes."""
        return sum(self.counts)


@dataclass
class _HeldPoll:
    code: str
    host: str
    address: str
    opened: float
    heard: float
    question: str = ""
    order: tuple[int, ...] = ()
    revealed: set[str] = field(default_factory=set)
    members: dict[str, float] = field(default_factory=dict)  # session → time of its last request
    votes: dict[str, dict[str, int]] = field(default_factory=dict)  # question → session → choice
    before: dict[str, dict[str, int]] = field(default_factory=dict)  # the same, of the first round
    ends: tuple[str, float] = ("", 0.0)  # question and time of its timer
    is_open: bool = True
    origins: dict[str, bytes] = field(default_factory=dict)  # session → digest of its address
    # A digest with a random key distinguishes addresses without storing them.
    origin_key: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def origin(self, address: str) -> bytes:
        """Return the digest of a network address, different in every poll."""
        return hashlib.blake2b(address.encode(), key=self.origin_key, digest_size=8).digest()


class TooManyPolls(Exception):
    """Error for a poll beyond the limit."""


class Polls:
    """All polls of this process; nothing is written to disk."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._held: dict[str, _HeldPoll] = {}  # by host
        self._lock = threading.Lock()

    def open(self, host: str, address: str) -> str:
        """Open a poll and return its code; the host's earlier poll ends.

        Raises:
            TooManyPolls: the limit of polls, in total or of this network address, is reached.
        """
        with self._lock:
            self._forget_old()
            self._held.pop(host, None)
            now = self._clock()
            own = [poll for poll in self._held.values() if poll.address == address]
            silent = min(own, key=lambda poll: poll.heard, default=None)
            if (
                len(own) >= MAX_POLLS_PER_ADDRESS
                and silent is not None
                and now - silent.heard > SILENT_S
            ):
                del self._held[silent.host]
                own.remove(silent)
            if len(self._held) >= MAX_POLLS or len(own) >= MAX_POLLS_PER_ADDRESS:
                raise TooManyPolls
            poll = _HeldPoll(secrets.token_urlsafe(CODE_BYTES), host, address, now, now)
            self._held[host] = poll
            return poll.code

    def ask(
        self, code: str, host: str, question: str, order: Sequence[int], *, is_revealed: bool
    ) -> PollView | None:
        """Show a question; None if this is not the host's poll.
        Earlier votes and answers are kept.
        """
        with self._lock:
            poll = self._hosted(code, host)
            if poll is None:
                return None
            if question not in poll.votes and len(poll.votes) >= MAX_QUESTIONS:
                oldest = next(iter(poll.votes))
                del poll.votes[oldest]
                poll.before.pop(oldest, None)
                poll.revealed.discard(oldest)
            poll.heard = self._clock()
            poll.question = question
            poll.order = tuple(order[:MAX_CHOICES])
            poll.votes.setdefault(question, {})
            if is_revealed:
                poll.revealed.add(question)
            return self._seen(poll)

    def join(self, code: str, session: str, address: str = "") -> Joined:
        """Admit a session to a poll; of its network address only a keyed digest is kept."""
        with self._lock:
            poll = self._found(code)
            if poll is None:
                return "unknown"
            if session not in poll.members and not poll.is_open:
                return "closed"
            if session not in poll.members and len(poll.members) >= MAX_MEMBERS:
                longest, asked = min(poll.members.items(), key=lambda member: member[1])
                if self._clock() - asked < AWAY_S:
                    return "full"
                del poll.members[longest]
                poll.origins.pop(longest, None)
                for votes in poll.votes.values():
                    votes.pop(longest, None)
            poll.members[session] = self._clock()
            poll.origins.setdefault(session, poll.origin(address))
            return "joined"

    def look(self, code: str, session: str) -> PollView | None:
        """Return the poll as a member sees it; None for other sessions or after its end."""
        with self._lock:
            poll = self._found(code)
            if poll is None or session not in poll.members:
                return None
            poll.members[session] = self._clock()
            return self._seen(poll, session)

    def state(self, code: str, session: str) -> str:
        """Return a text that changes with the view of host or member.

        Empty for others or after its end.
        """
        with self._lock:
            poll = self._found(code)
            if poll is None:
                return ""
            if poll.host == session:
                poll.heard = self._clock()
                seen = self._seen(poll)
                return (
                    f"{seen.question} {seen.is_revealed} {seen.counts} {seen.num_members} "
                    f"{seen.seconds_left}"
                )
            if session in poll.members:
                poll.members[session] = self._clock()
                seen = self._seen(poll, session)
                return (
                    f"{seen.question} {seen.is_revealed} {seen.own} {bool(seen.before)} "
                    f"{seen.seconds_left == 0}"
                )
            return ""

    def vote(self, code: str, session: str, question: str, choice: int) -> bool:
        """Replace a member's vote; return whether it counts, until the answer is shown."""
        with self._lock:
            poll = self._found(code)
            if poll is None or session not in poll.members or question != poll.question:
                return False
            if question in poll.revealed or choice not in poll.order or self._left(poll) == 0:
                return False
            poll.votes[question][session] = choice
            return True

    def vote_again(self, code: str, host: str) -> None:
        """Start the second round of a question after a discussion, and keep the first votes."""
        with self._lock:
            poll = self._hosted(code, host)
            if poll is not None and poll.question not in poll.revealed:
                poll.before.setdefault(poll.question, poll.votes[poll.question])
                poll.votes[poll.question] = {}
                poll.ends = ("", 0.0)

    def start_timer(self, code: str, host: str) -> None:
        """Close the votes of the question after ``TIMER_S`` seconds."""
        with self._lock:
            if (poll := self._hosted(code, host)) is not None:
                poll.ends = (poll.question, self._clock() + TIMER_S)

    def admit(self, code: str, host: str, is_open: bool) -> None:
        """Open or close the poll to phones that have not joined yet."""
        with self._lock:
            if (poll := self._hosted(code, host)) is not None:
                poll.is_open = is_open

    def _left(self, poll: _HeldPoll) -> int | None:
        question, ends = poll.ends
        return (
            max(0, math.ceil(ends - self._clock()))
            if question == poll.question and question
            else None
        )

    def close(self, code: str, host: str) -> None:
        """End a host's poll and delete its votes."""
        with self._lock:
            if self._hosted(code, host) is not None:
                del self._held[host]

    def _found(self, code: str) -> _HeldPoll | None:
        # In constant time.
        self._forget_old()
        given = code.encode("utf-8", "replace")
        found = None
        for poll in self._held.values():
            if hmac.compare_digest(poll.code.encode(), given):
                found = poll
        return found

    def _hosted(self, code: str, host: str) -> _HeldPoll | None:
        poll = self._found(code)
        return poll if poll is not None and poll.host == host else None

    def _forget_old(self) -> None:
        now = self._clock()
        for poll in list(self._held.values()):
            if now - poll.opened > LONGEST_S or now - poll.heard > IDLE_S:
                del self._held[poll.host]

    def _seen(self, poll: _HeldPoll, session: str = "") -> PollView:
        votes = poll.votes.get(poll.question, {})
        counts = Counter(votes.values())
        before = Counter(poll.before.get(poll.question, {}).values())
        since = self._clock() - HERE_S
        by_origin = Counter(poll.origins[each] for each in votes)
        is_host = not session
        return PollView(
            question=poll.question,
            order=poll.order,
            is_revealed=poll.question in poll.revealed,
            num_members=sum(asked >= since for asked in poll.members.values()),
            counts=tuple(counts[choice] for choice in range(len(poll.order))),
            own=votes.get(session),
            before=tuple(before[choice] for choice in range(len(poll.order)))
            if poll.question in poll.before
            else (),
            seconds_left=self._left(poll),
            is_open=poll.is_open,
            by_address=tuple(sorted(by_origin.values(), reverse=True)) if is_host else (),
        )


_SHARED = Polls()
PATH = "/api/polls"
COOKIE = "lab_poll_member"


async def state(request: Request) -> JSONResponse:
    """The state of a poll, for the host or a member in the header."""
    code, _, member = request.headers.get("x-lab-watch", "").partition(" ")
    found = JSONResponse(
        {"state": shared_polls().state(code, member)}, headers={"Cache-Control": "no-store"}
    )
    # A phone that opens the link again is the same member.
    if shared_polls().look(code, member) is not None:
        found.set_cookie(COOKIE, member, max_age=int(LONGEST_S), httponly=True, samesite="strict")
    return found


ROUTE = Route(PATH, state, methods=["GET"])


def shared_polls() -> Polls:
    """The polls of this process."""
    return _SHARED
