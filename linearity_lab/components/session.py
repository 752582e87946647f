"""What one browser session remembers: who is looking, the URL it was given, the job it follows."""

import ipaddress
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from ntk_core.errors import InvalidInput

_SEEN = "seen_jobs"
# A browser that has not yet heard of the new address sends an earlier one with the next click, for about so long.
LATE_S = 2.0


def viewer() -> str:
    """The name of this browser session, so that a job knows who still looks at it; empty outside of one."""
    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context is not None else ""


def is_connected(viewer: str) -> bool:
    """Whether the browser of this session is there: a closed or reloaded page is not, one in the background is."""
    return not runtime.exists() or runtime.get_instance().is_active_session(viewer)


def network_address() -> str:
    """Where this browser session comes from, an IPv6 network of 64 bits as one; empty for the server's own machine.

    With a proxy in front it is the browser's only where the server trusts the proxy, see docs/hosting.md.
    """
    try:
        found = ipaddress.ip_address(st.context.ip_address or "")
    except ValueError:
        return ""
    if isinstance(found, ipaddress.IPv6Address):
        return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))
    return str(found)


def new_address(page: str) -> dict[str, str] | None:
    """The query of the URL when a person (a link, a reload, the back button) changed it, else None.

    An empty query on a page that was open before is the way back by the menu: the page goes on as it was left. So it
    does for an address that it has just replaced: that came with a click, and would take back what was set last.
    """
    query = st.query_params.to_dict()
    known = st.session_state.get(f"{page}.address")
    if known is not None and (query == known or not query or query in [each for each, _ in _replaced(page)]):
        return None
    return query


def _replaced(page: str) -> list[tuple[Mapping[str, str], float]]:
    """Addresses that this page showed until a moment ago, and when they were replaced."""
    since = time.monotonic() - LATE_S
    return [each for each in st.session_state.get(f"{page}.replaced", ()) if each[1] > since]


def read_address(
    address: Mapping[str, str], readers: Mapping[str, Callable[[str], Any]]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Part of a URL → what its reader makes of it, and → the sentence that says why it cannot be used."""
    found, notes = {}, {}
    for name, text in address.items():
        try:
            if name not in readers:
                known = " and ".join(filter(None, [", ".join(list(readers)[:-1]), list(readers)[-1]]))
                raise InvalidInput(name, text, f"only {known}")
            found[name] = readers[name](text)
        except InvalidInput as error:
            notes[name] = f"In the URL, {error}."
    return found, notes


def show_address(page: str, query: Mapping[str, str]) -> None:
    """Make the URL say what the page shows, so that it can be shared and reloaded."""
    wanted = dict(query)
    if st.query_params.to_dict() != wanted:
        st.query_params.from_dict(wanted)
    known = st.session_state.get(f"{page}.address", wanted)
    if known != wanted:
        st.session_state[f"{page}.replaced"] = [*_replaced(page), (known, time.monotonic())]
    st.session_state[f"{page}.address"] = wanted


def followed_job(page: str) -> str | None:
    """The job whose points the page shows; None when it shows no job."""
    return st.session_state.get(f"{page}.job")


def follow_job(page: str, job_id: str | None) -> None:
    """Show this job's points on the page from now on."""
    see_jobs([job_id] if job_id is not None else [])
    st.session_state[f"{page}.job"] = job_id
    st.session_state[f"{page}.detached"] = False


def seen_jobs() -> frozenset[str]:
    """The jobs that this session has started or opened: private ones are listed for it alone."""
    return frozenset(st.session_state.get(_SEEN, ()))


def see_jobs(job_ids: Iterable[str]) -> None:
    """Note that this session knows these jobs."""
    st.session_state.setdefault(_SEEN, set()).update(job_ids)


def is_detached(page: str) -> bool:
    """Whether this session pressed Stop on a job that others go on following."""
    return bool(st.session_state.get(f"{page}.detached"))


def detach(page: str) -> None:
    """Look no longer at the job that is followed; its points so far stay."""
    st.session_state[f"{page}.detached"] = True


def job_query(page: str) -> dict[str, str]:
    """The part of the URL that names the followed job."""
    job_id = followed_job(page)
    return {"job": job_id} if job_id else {}
