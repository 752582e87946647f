"""What only one browser session may ever read, and who has read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence


class Secrets:
    """Texts that belong to one session each, looked for in everything that the server sends to any of them.

    Attributes:
        leaks: what reached a session that it does not belong to.
        own: how many of the texts have reached the session that they belong to: what is never sent cannot leak, and a
            drill that sees none has looked at nothing.
    """

    def __init__(self) -> None:
        self._owners: dict[bytes, int] = {}
        self._arrived: set[bytes] = set()
        self.leaks: list[str] = []

    def add(self, owner: int, texts: Sequence[str]) -> None:
        """From now on these belong to this session."""
        self._owners |= {text.encode(): owner for text in texts}

    def listener(self, session: int) -> Callable[[bytes], None]:
        """What looks at the messages that this session gets."""

        def listen(raw: bytes) -> None:
            for text, owner in self._owners.items():
                if text in raw:
                    if owner == session:
                        self._arrived.add(text)
                    else:
                        self.leaks.append(f"session {session} was sent {text.decode()} of session {owner}")

        return listen

    @property
    def own(self) -> int:
        return len(self._arrived)

    def __len__(self) -> int:
        return len(self._owners)
