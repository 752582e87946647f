"""Start a job, follow it, stop it; a reload or a second browser follows it by the job id in the URL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.components import session
from dashboard.components.chart import shown_charts
from dashboard.components.export import export_menu
from dashboard.components.forms import SpecForm
from dashboard.components.gallery import gallery_result
from dashboard.components.provenance import provenance_footer
from dashboard.jobs import Snapshot, shared_jobs
from dashboard.words.sentences import amount, duration, plain
from ntk_core.errors import InvalidInput
from ntk_core.runs import Spec, digest, estimate
from ntk_core.settings.fields import Part, differences, settings
from ntk_core.settings.part import SpecPart

REFRESH_S = 0.5
# Looks of those who wait cost those who work; nothing but a place in the queue changes while a job waits.
WAITING_REFRESH_S = 1.5
# So many may look twice a second: a look takes some 40 ms of the one process that serves all pages.
CROWD = 8
# A job ends within this time after Stop, so that the page that comes back shows it stopped.
STOP_S = 0.3


@dataclass(frozen=True)
class Shown:
    """What a page's figures show at one moment; the page knows of which experiment.

    Attributes:
        points: finished points, in the order of the spec's keys, then one that grows.
        result: the whole, None until the job has ended.
        origin: computed beforehand, or by a job of this server.
        version: that of the job while a point grows, else 0.
    """

    spec: Any
    points: tuple[Any, ...]
    result: Any
    origin: Literal["precomputed", "job"]
    version: int = 0

    @property
    def identity(self) -> tuple[str, str, tuple[str, ...], int]:
        """Equal for equal figures: finished points of one spec never change, they only become more."""
        return self.origin, digest(self.spec), tuple(point.key for point in self.points), self.version

    def point(self, width: int) -> Any:
        """The point of this width."""
        return next(point for point in self.points if point.width == width)


def attach(page: str, address: Mapping[str, str] | None, kind: type[Part]) -> Part | None:
    """Follow the job that the URL names; its spec, or None when no job of this kind is known by that name."""
    if address is None:
        return None
    job_id = address.get("job")
    snapshot = shared_jobs().snapshot(job_id, session.viewer()) if job_id else None
    spec = snapshot.spec if snapshot else None
    found = spec if isinstance(spec, kind) else None
    _follow(page, job_id if found else None)
    return found


def run_bar(page: str, form: SpecForm[Any]) -> None:
    """Presets, Run and what the run will cost."""
    snapshot = snapshot_of(page)
    runs_already = (
        snapshot is not None and snapshot.active and snapshot.spec == form.spec and not session.is_detached(page)
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        form.preset_chooser()
        form.paper_size()
        pressed = run_button(page, disabled=form.spec is None or runs_already)
        st.caption(cost_words([form.spec] if form.spec else []), width="content")
    if form.spec is None:
        st.error("Run waits for these settings: " + plain(" ".join(form.sentences.values())))
    elif pressed and submit(page, form.spec):
        st.rerun()


def run_button(page: str, *, disabled: bool) -> bool:
    """Run; whether it was pressed."""
    return st.button(
        "Run",
        key=f"{page}.run",
        type="primary",
        icon=":material/play_arrow:",
        disabled=disabled,
        shortcut="ctrl+enter",
        help="Compute these settings; equal settings that were computed before come back at once.",
    )


def live_panel(page: str, title: str, form: SpecForm[Any], draw: Callable[[Shown], None]) -> None:
    """The followed job's progress and figures, drawn again while it runs; without a job, the precomputed figure.

    Above the figures stands what can be taken along of them, below them where they come from.
    """
    first = snapshot_of(page)
    live = first is not None and first.active and not session.is_detached(page)
    every_s = refresh_s([first]) if first is not None and live else None

    @st.fragment(run_every=every_s)
    def panel() -> None:
        now = snapshot_of(page)
        if live and (now is None or not now.active or session.is_detached(page) or refresh_s([now]) != every_s):
            st.rerun()
        shown = _precomputed(form) if now is None else _followed(page, now)
        if shown is None:
            return
        if not live:
            say_if_stale(form.spec, shown.spec)
        above = heading(shown)
        with shown_charts() as figures:
            draw(shown)
        with above:
            export_menu(page.replace("_", "-"), title, shown.spec, shown.result, figures)
        if shown.result is not None:
            provenance_footer(shown.result)

    panel()


def refresh_s(snapshots: Iterable[Snapshot]) -> float:
    """How often to look at jobs that are under way, in seconds: the more look, the less often each of them."""
    waiting = all(now.status == "queued" for now in snapshots)
    rarer = 1
    while shared_jobs().num_viewers() > CROWD * rarer:  # in steps, since a page that changes its pace is run anew
        rarer *= 2
    return rarer * (WAITING_REFRESH_S if waiting else REFRESH_S)


def heading(shown: Shown) -> DeltaGenerator:
    """A row above the figures, for the export; it says when they were computed beforehand."""
    row = st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute")
    with row:
        if shown.origin == "precomputed":
            st.badge("Precomputed figure", icon=":material/inventory_2:", color="gray")
    return row


def snapshot_of(page: str) -> Snapshot | None:
    """The job that the page follows, as it is now."""
    job_id = session.followed_job(page)
    if job_id is None:
        return None
    return shared_jobs().snapshot(job_id, "" if session.is_detached(page) else session.viewer())


def cost_words(specs: Sequence[Spec]) -> str:
    """What computing these specs will take; they share their points' keys."""
    if not specs:
        return ""
    costs = [estimate(spec) for spec in specs]
    seconds, peak = sum(cost.seconds for cost in costs), max(cost.peak_bytes for cost in costs)
    return f"{count_points(specs[0])}, about {duration(seconds)} here, {amount(peak)} of memory"


def count_points(spec: Spec) -> str:
    """``1 width``, ``6 widths``."""
    count = len(spec.point_keys())
    return f"{count} {spec.point_words[count != 1]}"


def submit(page: str, spec: Spec) -> bool:
    """Start or attach to the job of this spec and follow it; False when it was refused, which is then said."""
    try:
        job_id = shared_jobs().submit(spec, session.viewer(), session.network_address())
    except InvalidInput as error:
        st.error(plain(f"{error}."))
        return False
    _follow(page, job_id)
    return True


def _follow(page: str, job_id: str | None) -> None:
    """Show this job, and no longer look at the one before."""
    before = session.followed_job(page)
    if before is not None and before != job_id:
        shared_jobs().leave(before, session.viewer())
    session.follow_job(page, job_id)


def _precomputed(form: SpecForm[Any]) -> Shown | None:
    result = gallery_result(form.preset.name)
    if result is None:
        st.info("Press Run: the points appear here one by one.")
        return None
    return Shown(result.spec, result.points, result, "precomputed")


def _followed(page: str, now: Snapshot) -> Shown | None:
    _progress(page, now)
    say_trouble(now)
    if not now.points and not now.growing:
        if now.active:
            st.info("The first point is on its way.")
        return None
    return Shown(now.spec, (*now.points, *now.growing), now.result, "job", now.version if now.growing else 0)


def say_trouble(now: Snapshot, prefix: str = "") -> None:
    """What a worker died of, and one sentence a point that could not be computed."""
    if now.interruption:
        st.warning(plain(f"{prefix}{now.interruption}."))
    for failure in now.failures:
        st.warning(plain(f"{prefix}{failure.key.replace('=', ' ')}: {failure.reason}."))


def say_if_stale(wanted: SpecPart | None, shown: SpecPart) -> None:
    """Name the settings in which the form differs from the figure."""
    if wanted is None or wanted == shown:
        return
    titles = {setting.name: setting.full_title for setting in settings(type(shown))}
    named = ", ".join(titles[name] for name in differences(wanted, shown) | differences(shown, wanted))
    st.info(f"The figure belongs to other settings than the form ({plain(named)}). Press Run for yours.")


def _progress(page: str, now: Snapshot) -> None:
    if session.is_detached(page) and now.active:
        st.info("Somebody else follows this run too, so it goes on. Press Run to follow it again.")
        return
    if now.active:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.progress(now.fraction, plain(progress_words(now)))
            st.button("Stop", key=f"{page}.stop", icon=":material/stop:", on_click=stop, args=(page,))
    else:
        say_end(now)


def say_end(now: Snapshot, prefix: str = "") -> None:
    """Why a job ended before it was done, and what can be done."""
    if now.status == "failed":
        st.error(plain(f"{prefix}{now.reason}."))
    elif now.status == "cancelled":
        done = f"{len(now.points)} of {count_points(now.spec)} are done"
        st.info(f"{prefix}Stopped: {done}. Run goes on from there.", icon=":material/stop_circle:")


def progress_words(now: Snapshot) -> str:
    """How far a job is and what it does."""
    if now.status == "queued":
        begins = "" if now.starts_in_s is None else f", begins in about {duration(now.starts_in_s)}"
        left = "" if now.remaining_s is None else f", done in about {duration(now.remaining_s)}"
        return f"Waiting, place {now.position} in the queue{begins}{left}"
    done = f"{len(now.points)} of {count_points(now.spec)}"
    left = "" if now.remaining_s is None else f", {duration(now.remaining_s)} left"
    return f"{done}{left} · {now.message}"


def stop(page: str, wait_s: float = STOP_S) -> None:
    """Stop the followed job, or only look away when somebody else follows it."""
    job_id = session.followed_job(page)
    if job_id is not None and not shared_jobs().stop(job_id, session.viewer(), wait_s):
        session.detach(page)
