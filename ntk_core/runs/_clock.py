"""Progress of a whole run, from each point's estimated seconds and the time that the work so far has taken."""

import time
from collections.abc import Mapping

TRUST_S = 1.0  # seconds of work after which measurement counts as much as expectation (our choice)


class Clock:
    """How far a run is; several points may be under way.

    Args:
        expected: estimated seconds of each point, by key.
    """

    def __init__(self, expected: Mapping[str, float]):
        self._expected = dict(expected)
        self._done: dict[str, float] = {}  # share of each point
        self._skipped = 0.0
        self._began: float | None = None

    def skip(self, key: str) -> None:
        """A point that need not be computed."""
        self._done[key] = 1.0
        self._skipped += self._expected[key]

    def advance(self, key: str, fraction: float) -> None:
        """A point is as far as this: 0 when it begins, 1 when it is done, or given up."""
        self._began = time.monotonic() if self._began is None else self._began
        self._done[key] = fraction

    def fraction(self) -> float:
        """Share of the whole run that is done."""
        return min(1.0, self._expected_done() / sum(self._expected.values()))

    def remaining(self) -> float | None:
        """Expected remaining seconds at the speed so far; None until there has been some.

        The first fractions of a second say little of the speed (a compile before anything is done, or none at all
        where a program is at hand), so expectation counts for as much as ``TRUST_S`` of work.
        """
        measured = self._expected_done() - self._skipped
        if self._began is None or measured <= 0:
            return None
        left = sum(self._expected.values()) - self._expected_done()
        return max(0.0, left * (time.monotonic() - self._began + TRUST_S) / (measured + TRUST_S))

    def _expected_done(self) -> float:
        return sum(self._expected[key] * share for key, share in self._done.items())
