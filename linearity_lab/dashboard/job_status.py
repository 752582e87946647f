"""Progress of running jobs, which the browser polls.

A bar in place of Run, a tray on every page, reruns on news.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from linearity_lab.dashboard import session
from linearity_lab.dashboard.components import component
from linearity_lab.dashboard.jobs import shared_jobs
from linearity_lab.dashboard.jobs.profile import NEWS_S, news_every_s, profile
from linearity_lab.dashboard.server import visitor_of
from linearity_lab.page_modules import has_page_module, page_module
from ntk_core.markup import JSON
from ntk_core.numbers import duration

if TYPE_CHECKING:
    from linearity_lab.dashboard.jobs import Snapshot
    from linearity_lab.runs import Spec


_mount_news = component("news", Path(__file__).with_name("news.js"))


def rerun_on_news(key: str, path: str, watch: str, seen: str, every_s: float) -> None:
    """Rerun the enclosing fragment when the state at ``path`` differs from ``seen``.

    Args:
        path: answers ``{"state": "…"}``, such as ``/api/polls``.
        watch: header value that names the watched object and the client.
    """
    data = {"url": address(path), "watch": watch, "seen": seen, "every_s": every_s}
    _mount_news(key=key, data=data, on_news_change=lambda: None)


def address(path: str) -> str:
    """Return a path of this server below its base path."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}{path}" if base else path


API = "/api/jobs"
HEADER = "x-lab-session"  # other sites cannot set this header
# Seconds between two requests of a browser while its jobs wait, but for previews; our choice.
WAITING_S = 1.5
MAX_LISTED = 8
_mount = component("jobs", Path(__file__).with_name("job_status.js"))


def routes() -> list[Route]:
    """Serve the jobs of one session as JSON, and Stop.

    Both run in threads, since both may wait for a lock.
    """
    return [
        Route(API, _list_jobs, methods=["GET"]),
        Route(f"{API}/{{job_id}}/stop", _stop_job, methods=["POST"]),
    ]


def _list_jobs(request: Request) -> Response:
    viewer = request.headers.get(HEADER, "")
    found = _followed(viewer, _visitor(request)) if viewer else []
    has_news_soon = any(
        job["active"] and (job["status"] == "running" or job["is_preview"]) for job in found
    )
    alone_s = NEWS_S if has_news_soon else WAITING_S
    every_s = news_every_s(shared_jobs().num_viewers(), alone_s)
    return JSONResponse({"every_s": every_s, "jobs": found}, headers={"Cache-Control": "no-store"})


def _stop_job(request: Request) -> Response:
    """Stop a job of this visitor; if another one started it too, only remove it from the list."""
    viewer = request.headers.get(HEADER, "")
    job_id = request.path_params["job_id"]
    visitor = _visitor(request)
    if not viewer or job_id not in {job["id"] for job in _followed(viewer, visitor) if job["mine"]}:
        return JSONResponse({"reason": "no job of this session"}, status_code=404)
    return JSONResponse({"stopped": shared_jobs().stop(job_id, viewer, visitor)})


def _visitor(request: Request) -> str:
    """Return the owner of this request's runs, as ``session.visitor``."""
    if not profile().is_shared:
        return ""
    return visitor_of(request.cookies) or request.headers.get(HEADER, "")


def _followed(viewer: str, visitor: str) -> list[JSON]:
    return [entry(each, visitor) for each in shared_jobs().followed(viewer)[:MAX_LISTED]]


def is_mine(now: Snapshot, visitor: str) -> bool:
    """Whether this visitor may stop the job.

    All on a local server, else those that the visitor started.
    """
    return not profile().is_shared or visitor in now.owners


def entry(now: Snapshot, visitor: str) -> JSON:
    """Describe a job for the browser; ``seen`` changes when there is something new to draw."""
    return {
        "mine": is_mine(now, visitor),
        "id": now.job_id,
        "page": now.spec.experiment,
        "points": count_points(now.spec),
        "status": now.status,
        "active": now.active,
        "is_preview": now.is_preview,
        "fraction": round(now.fraction, 4),
        "words": _status_words(now),
        "seen": f"{len(now.points)} {now.grown} {len(now.failures)} "
        f"{'' if now.active else now.status}",
    }


def bar(page: str, now: Snapshot) -> None:
    """Show the progress of the followed job, without reruns of the page."""
    _mount(
        key=f"{page}.progress",
        data={"kind": "bar", "jobs": [entry(now, session.visitor())], **_where()},
    )


def watch(page: str, now: Snapshot) -> None:
    """Rerun the enclosing fragment when the followed job has something new to draw; invisible."""
    with st.container(key=f"{page}.watched"):
        data = {"kind": "watch", "jobs": [entry(now, session.visitor())], **_where()}
        _mount(key=f"{page}.watch", data=data, on_news_change=lambda: None)


def tray(pages: Mapping[str, tuple[str, str]]) -> None:
    """Show the session's jobs in the header, with Open and Stop.

    ``pages`` maps experiments to title and script.
    """
    if st.context.is_embedded:
        return
    followed = _followed(session.viewer(), session.visitor())
    jobs = [job for job in followed if job["page"] in pages]
    data = {
        "kind": "tray",
        "jobs": jobs,
        "titles": {name: title for name, (title, _) in pages.items()},
        **_where(),
    }
    with st.container(key="job_tray"):
        found = _mount(key="job_tray.list", data=data, on_open_change=lambda: None)
    opened = next((job for job in jobs if job["id"] == found.get("open")), None)
    if opened is not None:
        st.switch_page(pages[opened["page"]][1], query_params={"job": opened["id"]})


def _where() -> dict[str, str]:
    return {"url": address(API), "session": session.viewer()}


def _status_words(now: Snapshot) -> str:
    """Progress and present activity of a job, or how it ended."""
    if not now.active:
        done = (
            ""
            if now.status == "completed"
            else f", {len(now.points)} of {count_points(now.spec)} done"
        )
        return {"completed": "finished", "cancelled": "stopped"}.get(now.status, now.status) + done
    if now.status == "queued":
        return f"Waiting, place {now.position}{_ahead_words(now) or ' in the queue'}"
    left = "" if now.remaining_s is None else f", {duration(now.remaining_s)} left"
    late = f" (slower than the {duration(now.late_s)} estimated)" if now.late_s else ""
    return f"{len(now.points)} of {count_points(now.spec)}{left}{late} · {now.message}"


def _ahead_words(now: Snapshot) -> str:
    """Name the running experiments and their expected time, without their visitors and settings."""
    parts = []
    for experiment, left_s, most_s in now.ahead:
        title = page_module(experiment).PAGE.title if has_page_module(experiment) else experiment
        if left_s is not None:
            parts.append(f"{title}, {duration(left_s)} left")
        elif profile().is_shared:
            parts.append(f"{title}, slower than estimated, at most {duration(most_s)} left")
        else:  # the limit of a local server is a week
            parts.append(f"{title}, slower than estimated")
    return f" · running: {'; '.join(parts)}" if parts else ""


def count_points(spec: Spec) -> str:
    """``1 width``, ``6 widths``."""
    count = len(spec.point_keys())
    return f"{count} {spec.point_words[count != 1]}"
