"""A cache bounded by bytes, shared by all sessions; the least recently used values leave first."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class SizedCache(Generic[T]):
    """Values by key, with at most ``most_bytes`` in total.

    Args:
        most_bytes: a value larger than this is returned and not kept.
        num_bytes: size of a value, measured once when it is made.
    """

    def __init__(self, most_bytes: int, num_bytes: Callable[[T], int]):
        self.most_bytes = most_bytes
        self._num_bytes = num_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._held = 0

    @property
    def held_bytes(self) -> int:
        """Bytes of all kept values."""
        return self._held

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of this key; make it once, also for simultaneous callers."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._kept:
                    return self._kept[key][0]
            try:
                value = make()
                self._keep(key, value)
            finally:
                with self._lock:
                    self._making.pop(key, None)
        return value

    def clear(self) -> None:
        """Drop all values."""
        with self._lock:
            self._kept.clear()
            self._held = 0

    def _keep(self, key: Hashable, value: T) -> None:
        size = self._num_bytes(value)
        if size > self.most_bytes:
            return
        with self._lock:
            self._kept[key] = value, size
            self._held += size
            while self._held > self.most_bytes:
                _, (_, freed) = self._kept.popitem(last=False)
                self._held -= freed
