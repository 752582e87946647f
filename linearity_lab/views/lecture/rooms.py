"""Polls of classes, in the memory of this process: rooms with unguessable codes, members and votes."""

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
MAX_ROOMS, MAX_ROOMS_PER_ADDRESS = 40, 10
MAX_MEMBERS, MAX_QUESTIONS, MAX_CHOICES = 120, 40, 9
LONGEST_S, IDLE_S = 4 * 3600.0, 3600.0  # life of a room; of one whose host is gone
SILENT_S = 600.0  # a room whose host is gone so long makes room for another one of its address
HERE_S = 10.0  # a member that has asked since then is present
AWAY_S = 120.0  # a member absent so long makes room for another one
TIMER_S = 60.0
Joined = Literal["joined", "unknown", "full", "closed"]


@dataclass(frozen=True)
class Poll:
    """A room as a page shows it.

    Attributes:
        question: name of the question.
        order: choices in the order of this room.
        is_revealed: the answer is shown and votes are closed.
        num_members: phones that are present.
        counts: votes for each choice.
        own: the viewer's vote.
        before: votes for each choice in the first round; empty in the first round.
        seconds_left: until votes close; None without a timer.
        is_open: whether further phones may join.
    """

    question: str
    order: tuple[int, ...]
    is_revealed: bool
    num_members: int
    counts: tuple[int, ...]
    own: int | None = None
    before: tuple[int, ...] = ()
    seconds_left: int | None = None
    is_open: bool = True

    @property
    def num_votes(self) -> int:
        """Number of votes."""
        return sum(self.counts)


@dataclass
class _Room:
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


class TooManyPolls(Exception):
    """No further room can be opened now."""


class Polls:
    """All rooms of this process; nothing is written to disk.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._rooms: dict[str, _Room] = {}  # by host
        self._lock = threading.Lock()

    def open(self, host: str, address: str) -> str:
        """Open a room and return its code; the host's earlier room ends.

        Raises:
            TooManyPolls: the limit of rooms, in total or of this network address, is reached.
        """
        with self._lock:
            self._forget_old()
            self._rooms.pop(host, None)
            now = self._clock()
            own = [room for room in self._rooms.values() if room.address == address]
            silent = min(own, key=lambda room: room.heard, default=None)
            if len(own) >= MAX_ROOMS_PER_ADDRESS and silent is not None and now - silent.heard > SILENT_S:
                del self._rooms[silent.host]
                own.remove(silent)
            if len(self._rooms) >= MAX_ROOMS or len(own) >= MAX_ROOMS_PER_ADDRESS:
                raise TooManyPolls
            room = _Room(secrets.token_urlsafe(CODE_BYTES), host, address, now, now)
            self._rooms[host] = room
            return room.code

    def ask(self, code: str, host: str, question: str, order: Sequence[int], *, is_revealed: bool) -> Poll | None:
        """Show a question; None if this is not the host's room. Earlier votes and answers are kept."""
        with self._lock:
            room = self._hosted(code, host)
            if room is None:
                return None
            if question not in room.votes and len(room.votes) >= MAX_QUESTIONS:
                oldest = next(iter(room.votes))
                del room.votes[oldest]
                room.before.pop(oldest, None)
                room.revealed.discard(oldest)
            room.heard = self._clock()
            room.question, room.order = question, tuple(order[:MAX_CHOICES])
            room.votes.setdefault(question, {})
            if is_revealed:
                room.revealed.add(question)
            return self._seen(room)

    def join(self, code: str, session: str) -> Joined:
        """Admit a session to a room."""
        with self._lock:
            room = self._found(code)
            if room is None:
                return "unknown"
            if session not in room.members and not room.is_open:
                return "closed"
            if session not in room.members and len(room.members) >= MAX_MEMBERS:
                longest, asked = min(room.members.items(), key=lambda member: member[1])
                if self._clock() - asked < AWAY_S:
                    return "full"
                del room.members[longest]
                for votes in room.votes.values():
                    votes.pop(longest, None)
            room.members[session] = self._clock()
            return "joined"

    def look(self, code: str, session: str) -> Poll | None:
        """The room as a member sees it; None if it has ended, or for no member."""
        with self._lock:
            room = self._found(code)
            if room is None or session not in room.members:
                return None
            room.members[session] = self._clock()
            return self._seen(room, session)

    def state(self, code: str, session: str) -> str:
        """A text that changes with what the room's host or a member sees; empty for others, and when it has ended."""
        with self._lock:
            room = self._found(code)
            if room is None:
                return ""
            if room.host == session:
                room.heard = self._clock()
                seen = self._seen(room)
                return f"{seen.question} {seen.is_revealed} {seen.counts} {seen.num_members} {seen.seconds_left}"
            if session in room.members:
                room.members[session] = self._clock()
                seen = self._seen(room, session)
                return f"{seen.question} {seen.is_revealed} {seen.own} {bool(seen.before)} {seen.seconds_left == 0}"
            return ""

    def vote(self, code: str, session: str, question: str, choice: int) -> bool:
        """Replace a member's vote; whether it counts, which it does until the answer is shown."""
        with self._lock:
            room = self._found(code)
            if room is None or session not in room.members or question != room.question:
                return False
            if question in room.revealed or choice not in room.order or self._left(room) == 0:
                return False
            room.votes[question][session] = choice
            return True

    def vote_again(self, code: str, host: str) -> None:
        """Begin the second round of a question after a discussion; the first votes are kept beside it."""
        with self._lock:
            room = self._hosted(code, host)
            if room is not None and room.question not in room.revealed:
                room.before.setdefault(room.question, room.votes[room.question])
                room.votes[room.question] = {}
                room.ends = ("", 0.0)

    def start_timer(self, code: str, host: str) -> None:
        """Close the votes of the question after ``TIMER_S`` seconds."""
        with self._lock:
            if (room := self._hosted(code, host)) is not None:
                room.ends = (room.question, self._clock() + TIMER_S)

    def admit(self, code: str, host: str, is_open: bool) -> None:
        """Open or close the room to phones that have not joined yet."""
        with self._lock:
            if (room := self._hosted(code, host)) is not None:
                room.is_open = is_open

    def _left(self, room: _Room) -> int | None:
        question, ends = room.ends
        return max(0, math.ceil(ends - self._clock())) if question == room.question and question else None

    def close(self, code: str, host: str) -> None:
        """End a host's room and forget its votes."""
        with self._lock:
            if self._hosted(code, host) is not None:
                del self._rooms[host]

    def _found(self, code: str) -> _Room | None:
        """The room of this code, in a time that does not depend on the codes."""
        self._forget_old()
        given, found = code.encode("utf-8", "replace"), None
        for room in self._rooms.values():
            if hmac.compare_digest(room.code.encode(), given):
                found = room
        return found

    def _hosted(self, code: str, host: str) -> _Room | None:
        room = self._found(code)
        return room if room is not None and room.host == host else None

    def _forget_old(self) -> None:
        now = self._clock()
        for room in list(self._rooms.values()):
            if now - room.opened > LONGEST_S or now - room.heard > IDLE_S:
                del self._rooms[room.host]

    def _seen(self, room: _Room, session: str = "") -> Poll:
        votes = room.votes.get(room.question, {})
        counts, before = Counter(votes.values()), Counter(room.before.get(room.question, {}).values())
        since = self._clock() - HERE_S
        return Poll(
            question=room.question,
            order=room.order,
            is_revealed=room.question in room.revealed,
            num_members=sum(asked >= since for asked in room.members.values()),
            counts=tuple(counts[choice] for choice in range(len(room.order))),
            own=votes.get(session),
            before=tuple(before[choice] for choice in range(len(room.order))) if room.question in room.before else (),
            seconds_left=self._left(room),
            is_open=room.is_open,
        )


_SHARED = Polls()
PATH, COOKIE = "/api/polls", "lab_poll_member"


async def state(request: Request) -> JSONResponse:
    """The state of a room, for the host or a member in the header."""
    code, _, member = request.headers.get("x-lab-watch", "").partition(" ")
    found = JSONResponse({"state": shared_polls().state(code, member)}, headers={"Cache-Control": "no-store"})
    if shared_polls().look(code, member) is not None:  # a phone that opens the link again is the same member
        found.set_cookie(COOKIE, member, max_age=int(LONGEST_S), httponly=True, samesite="strict")
    return found


ROUTE = Route(PATH, state, methods=["GET"])


def shared_polls() -> Polls:
    """The polls of this process."""
    return _SHARED
