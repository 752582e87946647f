"""Where the points of a run are computed: in this process, or on a dask cluster. A site tells how they come along."""

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

from ntk_core.environment import settings
from ntk_core.errors import InvalidInput
from ntk_core.runs._values import PointValue, Provenance

SCHEDULER_VARIABLE = "LINEARITY_LAB_SCHEDULER"
_ADDRESS = re.compile(r"(tcp|tls)://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")


@dataclass(frozen=True)
class Started:
    """The computation of a point has begun."""

    key: str


@dataclass(frozen=True)
class Advanced:
    """A point goes on; ``point`` as far as it is, where its curves are drawn while they grow."""

    key: str
    fraction: float
    message: str
    point: PointValue | None = None


@dataclass(frozen=True)
class Finished:
    """A point is done; it tells its provenance."""

    key: str
    point: PointValue


@dataclass(frozen=True)
class Failed:
    """A point could not be computed, for a reason in one sentence."""

    key: str
    reason: str


Report = Started | Advanced | Finished | Failed


class SiteFailure(Exception):
    """Nothing more can be computed there; ``str`` is one sentence for people."""


class Site(Protocol):
    """What computes the points of one spec."""

    def reports(self, keys: Sequence[str]) -> Generator[Report | None, None, None]:
        """Compute these points; several may be under way at once. Closing the generator stops the work.

        None says that nothing has happened for a moment.

        Raises:
            SiteFailure: when the site is, or becomes, of no use.
        """

    def provenance(self) -> Provenance | None:
        """On what points are computed there; None where only finished points tell."""


def scheduler_address(given: str | None = None) -> str | None:
    """The address of the dask scheduler to use: ``given``, or that of the environment; None to compute here.

    Raises:
        InvalidInput: when it is not an address.
    """
    field = SCHEDULER_VARIABLE if given is None else "scheduler"
    address = settings().scheduler if given is None else given
    if not address:
        return None
    found = _ADDRESS.fullmatch(address)
    if found is None or not 1 <= int(found[3]) <= 65_535:
        raise InvalidInput(field, address, "the address of a dask scheduler, such as tcp://192.168.0.10:8786")
    return address
