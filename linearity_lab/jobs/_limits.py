"""When one more job is refused."""

from collections.abc import Sequence
from dataclasses import dataclass

from linearity_lab.jobs._job import Job
from ntk_core.errors import InvalidInput


class QueueFull(InvalidInput):
    """Too many jobs wait already."""

    template = "{}: {} cannot be taken; try again {}"

    def __init__(self, waiting: int):
        super().__init__("run", f"one more than {waiting} waiting jobs", "in a moment, when one of them has begun")


class TooManyJobs(InvalidInput):
    """One viewer or one network address has too many unfinished jobs."""

    template = QueueFull.template

    def __init__(self, unfinished: int, whose: str):
        runs = "unfinished run" if unfinished == 1 else "unfinished runs"
        super().__init__("run", f"one more than {unfinished} {runs} of {whose}", "when one has ended or is stopped")


@dataclass(frozen=True)
class Limits:
    """Most unfinished jobs that one viewer and one network address may have asked for; None: as many as fit."""

    per_viewer: int | None = None
    per_address: int | None = None

    def check(self, unfinished: Sequence[Job], viewer: str, address: str) -> None:
        """Refuse one job too many; whoever is not named is not limited.

        Raises:
            TooManyJobs: when a limit is reached.
        """
        of_viewer = sum(job.owner == viewer for job in unfinished) if viewer else 0
        of_address = sum(job.address == address for job in unfinished) if address else 0
        if self.per_viewer is not None and of_viewer >= self.per_viewer:
            raise TooManyJobs(of_viewer, "yours")
        if self.per_address is not None and of_address >= self.per_address:
            raise TooManyJobs(of_address, "your network address")
