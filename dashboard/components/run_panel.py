"""Start a job, follow it, stop it; a reload or a second browser follows it by the job id in the URL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import streamlit as st

from dashboard import session
from dashboard.forms import SpecForm
from dashboard.gallery import gallery_result
from dashboard.jobs import Snapshot, shared_jobs
from dashboard.sentences import amount, duration, plain
from dashboard.settings import differences, settings
from ntk_core.errors import InvalidInput
from ntk_core.experiments import estimate
from ntk_core.results import DriftPoint, DriftResult
from ntk_core.specs import Spec, digest

REFRESH_S = 0.5


@dataclass(frozen=True)
class Shown:
    """What a page's figures show at one moment.

    Attributes:
        points: finished points, in the order of the widths.
        result: the whole, None until the job has ended.
        origin: computed beforehand, or by a job of this server.
    """

    spec: Spec
    points: tuple[DriftPoint, ...]
    result: DriftResult | None
    origin: Literal["precomputed", "job"]

    @property
    def identity(self) -> tuple[str, str, tuple[int, ...]]:
        """Equal for equal figures: points of one spec never change, they only become more."""
        return self.origin, digest(self.spec), tuple(point.width for point in self.points)

    def point(self, width: int) -> DriftPoint:
        """The point of this width."""
        return next(point for point in self.points if point.width == width)


def attach(page: str, address: Mapping[str, str] | None) -> Spec | None:
    """Follow the job that the URL names; its spec, or None when no such job is known."""
    if address is None:
        return None
    job_id = address.get("job")
    snapshot = shared_jobs().snapshot(job_id, session.viewer()) if job_id else None
    session.follow_job(page, job_id if snapshot else None)
    return snapshot.spec if snapshot else None


def run_bar(page: str, form: SpecForm) -> None:
    """Presets, Run and what the run will cost."""
    snapshot = _snapshot(page)
    runs_already = (
        snapshot is not None and snapshot.active and snapshot.spec == form.spec and not session.is_detached(page)
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        form.preset_chooser()
        form.paper_size()
        pressed = st.button(
            "Run",
            key=f"{page}.run",
            type="primary",
            icon=":material/play_arrow:",
            disabled=form.spec is None or runs_already,
            shortcut="ctrl+enter",
            help="Compute these settings; equal settings that were computed before come back at once.",
        )
        st.caption(_cost_words(form.spec), width="content")
    if form.spec is None:
        st.error("Run waits for these settings: " + plain(" ".join(form.sentences.values())))
    elif pressed:
        _start(page, form.spec)


def live_panel(page: str, form: SpecForm, draw: Callable[[Shown], None]) -> None:
    """The followed job's progress and figures, drawn again while it runs; without a job, the precomputed figure."""
    first = _snapshot(page)
    live = first is not None and first.active and not session.is_detached(page)

    @st.fragment(run_every=REFRESH_S if live else None)
    def panel() -> None:
        now = _snapshot(page)
        if live and (now is None or not now.active or session.is_detached(page)):
            st.rerun()
        shown = _precomputed(form) if now is None else _followed(page, now)
        if shown is None:
            return
        if not live:
            _say_if_stale(form, shown.spec)
        draw(shown)

    panel()


def _snapshot(page: str) -> Snapshot | None:
    job_id = session.followed_job(page)
    if job_id is None:
        return None
    return shared_jobs().snapshot(job_id, "" if session.is_detached(page) else session.viewer())


def _cost_words(spec: Spec | None) -> str:
    if spec is None:
        return ""
    cost = estimate(spec)
    count = f"{cost.num_points} width" + ("s" if cost.num_points > 1 else "")
    return f"{count}, about {duration(cost.seconds)} here, {amount(cost.peak_bytes)} of memory"


def _start(page: str, spec: Spec) -> None:
    try:
        job_id = shared_jobs().submit(spec, session.viewer())
    except InvalidInput as error:
        st.error(plain(f"{error}."))
        return
    session.follow_job(page, job_id)
    st.rerun()


def _precomputed(form: SpecForm) -> Shown | None:
    result = gallery_result(form.preset.name)
    if result is None:
        st.info("Press Run: the points appear here one by one.")
        return None
    st.badge("Precomputed figure", icon=":material/inventory_2:", color="gray")
    return Shown(result.spec, result.points, result, "precomputed")


def _followed(page: str, now: Snapshot) -> Shown | None:
    _progress(page, now)
    for failure in now.failures:
        st.warning(plain(f"{failure.key.replace('=', ' ')}: {failure.reason}."))
    if not now.points:
        if now.active:
            st.info("The first point is on its way.")
        return None
    return Shown(now.spec, now.points, now.result, "job")


def _say_if_stale(form: SpecForm, shown: Spec) -> None:
    """Name the settings in which the form differs from the figure."""
    if form.spec is None or form.spec == shown:
        return
    titles = {setting.name: setting.title for setting in settings(type(shown))}
    named = ", ".join(titles[name] for name in differences(form.spec, shown) | differences(shown, form.spec))
    st.info(f"The figure belongs to other settings than the form ({plain(named)}). Press Run for yours.")


def _progress(page: str, now: Snapshot) -> None:
    if session.is_detached(page) and now.active:
        st.info("Somebody else follows this run too, so it goes on. Press Run to follow it again.")
        return
    if now.active:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.progress(now.fraction, plain(_progress_words(now)))
            st.button("Stop", key=f"{page}.stop", icon=":material/stop:", on_click=_stop, args=(page, now.job_id))
    elif now.status == "failed":
        st.error(plain(f"{now.reason}."))
    elif now.status == "cancelled":
        done = f"{len(now.points)} of {len(now.spec.widths)} widths are done"
        st.info(f"Stopped: {done}. Run goes on from there.", icon=":material/stop_circle:")


def _progress_words(now: Snapshot) -> str:
    if now.status == "queued":
        return f"Waiting, place {now.position} in the queue"
    done = f"{len(now.points)} of {len(now.spec.widths)} widths"
    left = "" if now.remaining_s is None else f", {duration(now.remaining_s)} left"
    return f"{done}{left} · {now.message}"


def _stop(page: str, job_id: str) -> None:
    if not shared_jobs().stop(job_id, session.viewer()):
        session.detach(page)
