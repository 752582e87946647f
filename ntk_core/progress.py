"""How far long work is, what it has found so far, and whether it shall stop.

Long work takes ``progress: Progress | None = None`` and reports between its pieces. Work that
consists of other work hands a part of its progress down, so nothing between a caller and a training
step passes reports on:

    def compute(spec, data, key, progress):
        for index, seed in enumerate(spec.seeds):
            train(..., progress=progress.part(index, len(spec.seeds)).named(f"seed {seed}"))
"""

from __future__ import annotations

from collections.abc import Callable


class Stopped(BaseException):
    """A stop was asked for; raised inside work by its next report.

    A ``BaseException``, like ``KeyboardInterrupt``: handlers of a computation's own
    errors must not catch it.
    """


class Progress:
    """Receives the reports of long work, and stops it at a report.

    >>> heard = []
    >>> progress = Progress(lambda fraction, message: heard.append((fraction, message)))
    >>> progress.part(1, 2).named("second half").report(0.5, "step 10")
    >>> heard
    [(0.75, 'second half, step 10')]
    >>> Progress(should_stop=lambda: True).report(0.5)
    Traceback (most recent call last):
        ...
    ntk_core.progress.Stopped

    Args:
        on_report: called with (finished share from 0 to 1, message), in the thread of the work. It
            may raise :class:`Stopped`.
        on_point: called with each partial result of :meth:`show`.
        should_stop: read after every report and partial result.
    """

    def __init__(
        self,
        on_report: Callable[[float, str], object] | None = None,
        on_point: Callable[[object], object] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ):
        self._on_report = on_report
        self._on_point = on_point
        self._should_stop = should_stop

    def report(self, fraction: float, message: str = "") -> None:
        """Report the finished share, from 0 to 1, and the current work in a few words.

        Raises:
            Stopped: if a stop was asked for.
        """
        if self._on_report is not None:
            self._on_report(fraction, message)
        self.check()

    def show(self, point: object) -> None:
        """Hand over what is found so far; raise :class:`Stopped` if a stop was asked for."""
        if self._on_point is not None:
            self._on_point(point)
        self.check()

    def check(self) -> None:
        """Raise :class:`Stopped` if a stop was asked for, without a report."""
        if self._should_stop is not None and self._should_stop():
            raise Stopped

    def between(self, first: float, last: float) -> Progress:
        """Return the progress of nested work.

        Its shares 0 and 1 are these shares of this work.
        """
        return _Nested(self, rescale=lambda share: first * (1 - share) + last * share)

    def part(self, index: int, count: int) -> Progress:
        """Return the progress of part ``index`` of ``count`` equal parts."""
        return self.between(index / count, (index + 1) / count)

    def named(self, words: str) -> Progress:
        """Return this progress with ``words`` before each message."""
        return _Nested(self, rename=lambda message: f"{words}, {message}" if message else words)

    def showing(self, convert: Callable[[object], object]) -> Progress:
        """Return this progress with partial results changed by ``convert``."""
        return _Nested(self, convert=convert)


def _same_share(share: float) -> float:
    return share


def _same_message(message: str) -> str:
    return message


def _same_point(point: object) -> object:
    return point


class _Nested(Progress):
    """The progress of nested work; reports, partial results and stops are those of ``outer``."""

    def __init__(
        self,
        outer: Progress,
        *,
        rescale: Callable[[float], float] = _same_share,
        rename: Callable[[str], str] = _same_message,
        convert: Callable[[object], object] = _same_point,
    ):
        super().__init__()
        self._outer = outer
        self._rescale = rescale
        self._rename = rename
        self._convert = convert

    def report(self, fraction: float, message: str = "") -> None:
        self._outer.report(self._rescale(fraction), self._rename(message))

    def show(self, point: object) -> None:
        self._outer.show(self._convert(point))

    def check(self) -> None:
        self._outer.check()
