"""What a worker of a dask cluster does: one point of one spec, from canonical JSON to JSON.

Client and workers run the same versions; a worker answers a request of other versions with a refusal.
"""

import platform
import time
from collections.abc import Callable
from functools import lru_cache
from importlib import metadata
from typing import Literal

from distributed import get_worker

from ntk_core._version import __version__
from ntk_core.errors import InvalidInput
from ntk_core.numbers import size
from ntk_core.runs._costs import peak_bytes
from ntk_core.runs._estimate import check_data, memory_limit
from ntk_core.runs._parse import parse_spec
from ntk_core.runs._sites import Advanced, Failed, Finished, SiteFailure
from ntk_core.runs._table import Point, counts_of
from ntk_core.runs._this_process import ThisProcess, sentence
from ntk_core.runs._values import Value

TOPIC = "linearity-lab"  # one for all runs: the scheduler keeps the last messages of every topic for ever
MESSAGES_EVERY_S = 0.2
CURVES_EVERY_S = 1.0  # a point as far as it is may have many thousand numbers
DASK = ("dask", "distributed")
_PACKAGES = ("jax", "jaxlib", "numpy", "scipy", "optax", "pydantic")


class Request(Value):
    """One point to compute.

    Attributes:
        run: names the run in the messages.
        spec: canonical JSON.
        conditions: those of the client, see :func:`conditions`.
    """

    run: str
    key: str
    spec: str
    conditions: dict[str, str]


class Message(Value):
    """What a worker tells while it computes; the first one says that it has begun."""

    run: str
    key: str
    fraction: float
    message: str
    point: Point | None = None


class Reply(Value):
    """What came of a request: a point, or a reason in one sentence.

    ``failed`` concerns this point alone, ``refused`` every point of the run; ``stopped`` is heard by nobody.
    """

    outcome: Literal["finished", "failed", "refused", "stopped"]
    point: Point | None = None
    reason: str = ""


def conditions() -> dict[str, str]:
    """What client and workers must share for equal numbers: versions, and the floating-point type."""
    import jax

    return {
        "linearity-lab": __version__,
        "Python": ".".join(platform.python_version_tuple()[:2]),
        **{name: metadata.version(name) for name in (*_PACKAGES, *DASK)},
        "floating-point type": "float64" if jax.config.read("jax_enable_x64") else "float32",
    }


def compute_point(request: str) -> str:
    """A :class:`Reply` to a :class:`Request`, both in JSON; runs in a thread of a dask worker."""
    try:
        reply = _reply(Request.model_validate_json(request))
    except (InvalidInput, SiteFailure) as error:
        reply = Reply(outcome="refused", reason=str(error))
    except Exception as error:  # an exception that the client cannot unpickle would tell it nothing
        reply = Reply(outcome="failed", reason=sentence(error))
    return reply.model_dump_json()


def _reply(request: Request) -> Reply:
    differences = different(request.conditions, conditions(), "client", "worker")
    if differences:
        return Reply(outcome="refused", reason=f"The cluster computes with other versions: {differences}.")
    spec = parse_spec(request.spec)
    check_data(spec)
    required, available = peak_bytes(counts_of(spec, request.key)), memory_limit()
    if required > available:
        reason = f"it needs about {size(required)} and {size(available)} are available on its worker"
        return Reply(outcome="failed", reason=reason)
    wanted, tell = _still_wanted(), _teller(request)
    tell(Advanced(request.key, 0.0, "starting"))
    here = _here(request.spec)
    reports = here.reports([request.key])
    for report in reports:
        match report:
            case Advanced():
                tell(report)
            case Finished(_, point):
                return Reply(outcome="finished", point=point)
            case Failed(_, reason):
                return Reply(outcome="failed", reason=reason)
        if not wanted():
            break
    reports.close()
    return Reply(outcome="stopped")


@lru_cache(maxsize=1)
def _here(spec: str) -> ThisProcess:
    """The data of the run at hand are loaded once a worker."""
    return ThisProcess(parse_spec(spec))


def different(ours: dict[str, str], theirs: dict[str, str], we: str, they: str) -> str:
    """Where two sets of conditions differ, in words; empty where they do not."""
    names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    return ", ".join(
        f"{name} {ours.get(name, 'missing')} ({we}) and {theirs.get(name, 'missing')} ({they})" for name in names
    )


def _still_wanted() -> Callable[[], bool]:
    """Whether the client still waits for this task: false once it was cancelled, and once the client has died."""
    worker = get_worker()
    key = worker.get_current_task()

    def wanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state == "executing"

    return wanted


def _teller(request: Request) -> Callable[[Advanced], None]:
    """Sends progress to the client, no more often than eyes or the scheduler need."""
    worker = get_worker()
    told = drawn = -1e9

    def tell(report: Advanced) -> None:
        nonlocal told, drawn
        now = time.monotonic()
        point = report.point if now - drawn >= CURVES_EVERY_S else None
        if point is None and now - told < MESSAGES_EVERY_S:
            return
        told, drawn = now, now if point is not None else drawn
        message = Message(
            run=request.run, key=report.key, fraction=report.fraction, message=report.message, point=point
        )
        worker.log_event(TOPIC, {"run": request.run, "message": message.model_dump_json()})

    return tell
