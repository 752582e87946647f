"""Who still looks at a job."""

import time
from collections.abc import Callable

from linearity_lab.jobs._job import Job

VIEWER_TIMEOUT_S = 5.0


class Presence:
    """Whether viewers are there: whoever knows is asked; else whoever has looked in the last seconds is."""

    def __init__(self) -> None:
        self._is_connected: Callable[[str], bool] | None = None

    def ask(self, is_connected: Callable[[str], bool]) -> None:
        """Whom to ask whether a viewer's browser is still there."""
        self._is_connected = is_connected

    def is_here(self, viewer: str, seen: float) -> bool:
        """Whether a viewer who looked last at ``seen`` is there."""
        if self._is_connected is not None:
            return self._is_connected(viewer)
        return time.monotonic() - seen < VIEWER_TIMEOUT_S

    def is_abandoned(self, job: Job) -> bool:
        """Whether everybody who waited for this job has left."""
        job.keep_viewers(self.is_here)
        return job.num_viewers == 0
