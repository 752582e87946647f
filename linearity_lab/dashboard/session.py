"""State of one browser session: client, requested URL, followed job."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from linearity_lab.dashboard.jobs.profile import profile
from linearity_lab.dashboard.server import visitor_of
from linearity_lab.words.markdown import plain
from ntk_core.errors import InvalidInput

if TYPE_CHECKING:
    from linearity_lab.settings.part import Values

_SEEN = "seen_jobs"
# For about this long, the browser of a busy server may still send the previous address with a
# click.
LATE_S = 5.0


def viewer() -> str:
    """Return the name of this browser session, for lists of viewers; empty outside a session."""
    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context is not None else ""


def visitor() -> str:
    """Return the owner of runs that this session starts, by the lab's cookie.

    Empty on a local server.

    Browsers withhold the cookie from pages inside a frame of another site; there the session
    itself is the owner.
    """
    if not profile().is_shared:
        return ""
    return visitor_of(st.context.cookies) or viewer()


def network_address() -> str:
    """Return the client address, IPv6 by its /64 network; empty for the server's own machine.

    With a proxy in front it is the browser's only where the server trusts the proxy,
    see docs/hosting.md.
    """
    try:
        found = ipaddress.ip_address(st.context.ip_address or "")
    except ValueError:
        return ""
    if isinstance(found, ipaddress.IPv6Address):
        return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))
    return str(found)


def new_address(page: str) -> dict[str, str] | None:
    """Return the URL's query after a user changed it (link, reload, back button), else None.

    An empty query on an open page means a return through the menu, so the page keeps its
    state. So does a query that was just replaced, since it arrived late with a click and would
    undo the last setting. The back button asks for an earlier query on purpose.
    """
    query = st.query_params.to_dict()
    known = st.session_state.get(f"{page}.address")
    if known is None:
        return query
    is_late = query in [each for each, _ in _replaced(page)] and not _is_from_history()
    return None if query == known or not query or is_late else query


def _is_from_history() -> bool:
    """Whether the back or forward button caused this run, instead of a click on the page."""
    context = get_script_run_ctx(suppress_warning=True)
    return context is not None and context.is_history_navigation


def _replaced(page: str) -> list[tuple[Mapping[str, str], float]]:
    """Recently replaced addresses of this page, with the time of replacement."""
    since = time.monotonic() - LATE_S
    return [each for each in st.session_state.get(f"{page}.replaced", ()) if each[1] > since]


def read_address(
    address: Mapping[str, str], readers: Mapping[str, Callable[[str], object]]
) -> tuple[Values, dict[str, str]]:
    """Parsed values by part of the URL, and errors by part."""
    found = {}
    notes = {}
    for name, text in address.items():
        try:
            if name not in readers:
                known = " and ".join(
                    filter(None, [", ".join(list(readers)[:-1]), list(readers)[-1]])
                )
                raise InvalidInput(name, text, f"only {known}")
            found[name] = readers[name](text)
        except InvalidInput as error:
            notes[name] = f"In the URL, {error}."
    return found, notes


def noted_address(page: str, readers: Mapping[str, Callable[[str], object]]) -> Values | None:
    """Return the parsed values of a URL that a user changed, else None.

    Keep sentences about the others.
    """
    address = new_address(page)
    if address is None:
        return None
    found, notes = read_address(address, readers)
    st.session_state[f"{page}.notes"] = list(notes.values())
    return found


def show_notes(page: str) -> None:
    """Show the sentences about the URL of this page."""
    warn_once(st.session_state.get(f"{page}.notes", ()))


def warn_once(sentences: Sequence[str]) -> None:
    """Show one warning, with a list if there are several sentences."""
    texts = [plain(each) for each in sentences]
    if len(texts) == 1:
        st.warning(texts[0])
    elif texts:
        st.warning("\n".join(f"- {text}" for text in texts))


def show_address(page: str, query: Mapping[str, str]) -> None:
    """Write the state of the page to the URL, for sharing and reloading.

    The session knows the address before the browser does. A click can stop this run at any line,
    and the next run must recognize whichever address the browser sends with it.
    """
    wanted = dict(query)
    known = st.session_state.get(f"{page}.address", wanted)
    if known != wanted:
        st.session_state[f"{page}.replaced"] = [*_replaced(page), (known, time.monotonic())]
    st.session_state[f"{page}.address"] = wanted
    if st.query_params.to_dict() != wanted:
        st.query_params.from_dict(wanted)


def followed_job(page: str) -> str | None:
    """Return the job whose points the page shows, or None."""
    return st.session_state.get(f"{page}.job")


def follow_job(page: str, job_id: str | None) -> None:
    """Show this job's points on the page."""
    st.session_state[f"{page}.job"] = job_id
    st.session_state[f"{page}.detached"] = False


def seen_jobs() -> frozenset[str]:
    """Return the reports that this session opened by their links; it alone lists private ones."""
    return frozenset(st.session_state.get(_SEEN, ()))


def see_jobs(job_ids: Iterable[str]) -> None:
    """Record that this session opened these reports."""
    st.session_state.setdefault(_SEEN, set()).update(job_ids)


def is_detached(page: str) -> bool:
    """Whether this session pressed Stop on a job that others still follow."""
    return bool(st.session_state.get(f"{page}.detached"))


def detach(page: str) -> None:
    """Unfollow the current job; keep its points."""
    st.session_state[f"{page}.detached"] = True


def job_query(page: str) -> dict[str, str]:
    """The URL parameter of the followed job."""
    job_id = followed_job(page)
    return {"job": job_id} if job_id else {}
