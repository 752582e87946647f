"""Polls of classes, in the memory of this process alone: rooms with unguessable codes, their members and votes."""

import hmac
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from linearity_lab.server._sessions import AllowanceByLine

CODE_BYTES = 12  # 96 bits
MAX_ROOMS, MAX_ROOMS_OF_LINE = 40, 10
MAX_MEMBERS, MAX_QUESTIONS, MAX_CHOICES = 120, 40, 9
# Of one network address, which may be that of a whole school; what is guessed counts like what is known.
JOINED_AT_ONCE, JOINED_PER_S = 60.0, 0.5
LONGEST_S, IDLE_S = 4 * 3600.0, 3600.0  # of a room, and of its teacher's silence
SILENT_S = 600.0  # after that a room makes way for another one of the same address, where that has its share
HERE_S = 10.0  # so long ago a phone that is here has asked at most
AWAY_S = 120.0  # after that a member makes room for another one
Joined = Literal["joined", "unknown", "full"]


@dataclass(frozen=True)
class Poll:
    """What a page shows of a room.

    Attributes:
        question: what is asked.
        order: the choices as they stand in the room.
        is_revealed: whether the answer is shown, so that no vote changes any more.
        num_members: phones that are here.
        counts: votes for each choice.
        own: the vote of whoever looks.
    """

    question: str
    order: tuple[int, ...]
    is_revealed: bool
    num_members: int
    counts: tuple[int, ...]
    own: int | None = None

    @property
    def num_votes(self) -> int:
        """How many have answered."""
        return sum(self.counts)


@dataclass
class _Room:
    code: str
    host: str
    line: str
    opened: float
    heard: float
    question: str = ""
    order: tuple[int, ...] = ()
    revealed: set[str] = field(default_factory=set)
    members: dict[str, float] = field(default_factory=dict)  # session → when it asked last
    votes: dict[str, dict[str, int]] = field(default_factory=dict)  # question → session → choice


class TooManyPolls(Exception):
    """No room can be opened now."""


class Polls:
    """All rooms of this process. Sessions are known by the names that the server has for them; nothing is written down.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._rooms: dict[str, _Room] = {}  # by host, who holds one
        self._joins = AllowanceByLine(JOINED_AT_ONCE, JOINED_PER_S, clock)
        self._lock = threading.Lock()

    def open(self, host: str, line: str) -> str:
        """The code of a new room; a host's earlier one ends.

        Raises:
            TooManyPolls: as many as there may be are open, in all or from this network address.
        """
        with self._lock:
            self._forget_old()
            self._rooms.pop(host, None)
            now = self._clock()
            own = [room for room in self._rooms.values() if room.line == line]
            silent = min(own, key=lambda room: room.heard, default=None)
            if len(own) >= MAX_ROOMS_OF_LINE and silent is not None and now - silent.heard > SILENT_S:
                del self._rooms[silent.host]  # whose page was closed or loaded anew
                own.remove(silent)
            if len(self._rooms) >= MAX_ROOMS or len(own) >= MAX_ROOMS_OF_LINE:
                raise TooManyPolls
            room = _Room(secrets.token_urlsafe(CODE_BYTES), host, line, now, now)
            self._rooms[host] = room
            return room.code

    def ask(self, code: str, host: str, question: str, order: Sequence[int], *, is_revealed: bool) -> Poll | None:
        """Show a question to the room; what a host sees. None where this is no room of the host's.

        Votes of an earlier question are there when it is asked again. What has been revealed stays so.
        """
        with self._lock:
            room = self._found(code)
            if room is None or room.host != host:
                return None
            if question not in room.votes and len(room.votes) >= MAX_QUESTIONS:
                oldest = next(iter(room.votes))
                del room.votes[oldest]
                room.revealed.discard(oldest)
            room.heard = self._clock()
            room.question, room.order = question, tuple(order[:MAX_CHOICES])
            room.votes.setdefault(question, {})
            if is_revealed:
                room.revealed.add(question)
            return self._seen(room)

    def join(self, code: str, session: str, line: str) -> Joined:
        """Let a session into a room; how often a network address may try is limited, whatever it tries."""
        with self._lock:
            if self._joins.of(line).wait_or_refuse() is None:
                return "full"
            room = self._found(code)
            if room is None:
                return "unknown"
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
        """What a member sees; None where the room has ended, or for no member."""
        with self._lock:
            room = self._found(code)
            if room is None or session not in room.members:
                return None
            room.members[session] = self._clock()
            return self._seen(room, session)

    def vote(self, code: str, session: str, question: str, choice: int) -> bool:
        """A member's vote, in place of an earlier one; whether it counts: not after the answer, nor elsewhere."""
        with self._lock:
            room = self._found(code)
            if room is None or session not in room.members or question != room.question:
                return False
            if question in room.revealed or choice not in room.order:
                return False
            room.votes[question][session] = choice
            return True

    def close(self, code: str, host: str) -> None:
        """End a host's room: nothing of it is kept."""
        with self._lock:
            room = self._found(code)
            if room is not None and room.host == host:
                del self._rooms[host]

    def _found(self, code: str) -> _Room | None:
        """The room of this code, in a time that tells nothing of the codes that there are."""
        self._forget_old()
        given, found = code.encode("utf-8", "replace"), None
        for room in self._rooms.values():
            if hmac.compare_digest(room.code.encode(), given):
                found = room
        return found

    def _forget_old(self) -> None:
        now = self._clock()
        for room in list(self._rooms.values()):
            if now - room.opened > LONGEST_S or now - room.heard > IDLE_S:
                del self._rooms[room.host]

    def _seen(self, room: _Room, session: str = "") -> Poll:
        votes = room.votes.get(room.question, {})
        counts = Counter(votes.values())
        since = self._clock() - HERE_S
        return Poll(
            question=room.question,
            order=room.order,
            is_revealed=room.question in room.revealed,
            num_members=sum(asked >= since for asked in room.members.values()),
            counts=tuple(counts[choice] for choice in range(len(room.order))),
            own=votes.get(session),
        )


_SHARED = Polls()


def shared_polls() -> Polls:
    """The polls of this process."""
    return _SHARED
