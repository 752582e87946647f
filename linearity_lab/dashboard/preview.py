"""First answers that start by themselves.

A small run of the picked settings, ended by the next pick.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

import streamlit as st

from linearity_lab.dashboard import session
from linearity_lab.dashboard.forms import AnySpec, Follow, SpecForm
from linearity_lab.dashboard.gallery import first_answer
from linearity_lab.dashboard.jobs import shared_jobs
from linearity_lab.dashboard.run_panel import submit
from linearity_lab.runs import Spec


@dataclass(frozen=True)
class Preview(Generic[AnySpec]):
    """How a page answers without Run.

    Attributes:
        follow: changed settings → settings that follow them.
        of: spec → the part of it that is computed at once.
        in_full: spec → the run of the button.
    """

    follow: Follow
    of: Callable[[AnySpec], AnySpec]
    in_full: Callable[[AnySpec], AnySpec]


_STARTED = "preview"  # page.STARTED: id of the preview that this session started last


def start_preview(page: str, form: SpecForm[AnySpec], preview: Preview[AnySpec]) -> None:
    """Follow the first answer of the form's settings.

    A run with these picks, a saved one, or a new preview.
    """
    spec = form.spec
    if spec is None or st.context.is_embedded:
        return
    small = preview.of(spec)
    form.answers = (spec, small, preview.in_full(spec))
    followed = _followed_spec(page)
    if followed is not None and followed in form.answers:
        return
    _end_earlier(page)
    if first_answer(spec) is not None:
        session.follow_job(page, None)
        return
    if submit(page, small, is_preview=True):
        st.session_state[f"{page}.{_STARTED}"] = session.followed_job(page)


def _followed_spec(page: str) -> Spec | None:
    """Return the settings of the followed job, unless it has failed or was stopped."""
    job_id = session.followed_job(page)
    now = shared_jobs().snapshot(job_id, session.viewer()) if job_id else None
    if now is None or not (now.active or now.status == "completed"):
        return None
    return now.spec


def _end_earlier(page: str) -> None:
    """End the preview of an earlier pick, unless someone else follows it."""
    earlier = st.session_state.pop(f"{page}.{_STARTED}", None)
    if earlier is not None:
        shared_jobs().stop(earlier, session.viewer(), session.visitor())
