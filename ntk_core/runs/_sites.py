"""Where the points of a run are computed: in this process, or on a dask cluster."""

import re
from collections.abc import Generator, Sequence
from typing import Protocol

from ntk_core.environment import settings
from ntk_core.errors import InvalidInput
from ntk_core.runs.events import PointFailed, PointFinished, PointProgress, PointStarted

SCHEDULER_VARIABLE = "LINEARITY_LAB_SCHEDULER"
_ADDRESS = re.compile(r"(tcp|tls)://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")
# Events of points whose ``fraction`` is that of the point; ``run`` turns it into that of the run.
Report = PointStarted | PointProgress | PointFinished | PointFailed


class SiteFailure(Exception):
    """Nothing more can be computed there; ``str`` is one sentence for people."""


class Site(Protocol):
    """What computes the points of one spec."""

    def reports(self, keys: Sequence[str]) -> Generator[Report | None, None, None]:
        """Compute these points; several may run in parallel. Closing the generator stops the work.

        None means that nothing has happened for a moment.

        Raises:
            SiteFailure: when the site is, or becomes, of no use.
        """


def scheduler_address(given: str | None = None) -> str | None:
    """The address of the dask scheduler to use: ``given``, or that of the environment; None to compute here."""
    field = SCHEDULER_VARIABLE if given is None else "scheduler"
    address = settings().scheduler if given is None else given
    if not address:
        return None
    found = _ADDRESS.fullmatch(address)
    if found is None or not 1 <= int(found[3]) <= 65_535:
        raise InvalidInput(field, address, "the address of a dask scheduler, such as tcp://192.168.0.10:8786")
    return address


def sentence(error: BaseException) -> str:
    """One line for people from an error inside a computation."""
    if isinstance(error, InvalidInput):
        return str(error)
    text = str(error).strip().splitlines()
    if isinstance(error, MemoryError) or (text and "RESOURCE_EXHAUSTED" in text[0]):
        return "the computation ran out of memory; choose smaller widths or fewer seeds"
    return f"the computation failed ({type(error).__name__}: {text[0][:200] if text else 'no message'})"
