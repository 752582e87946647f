"""Start, follow and stop a job; after a reload or in a second browser, the URL names the job."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from linearity_lab.charts.chart import AnyPoint, Chart
from linearity_lab.charts.figure import Shown, shown_result
from linearity_lab.dashboard import export_menu, session
from linearity_lab.dashboard.chart import FIRST, Figures, link
from linearity_lab.dashboard.explain import TRIED, provenance_footer
from linearity_lab.dashboard.forms import AnySpec, SpecForm
from linearity_lab.dashboard.gallery import (
    first_answer,
    gallery_result,
    gallery_result_of,
    nearest_answer,
)
from linearity_lab.dashboard.job_status import bar, count_points, is_mine, watch
from linearity_lab.dashboard.jobs import Snapshot, shared_jobs
from linearity_lab.dashboard.jobs.profile import error_text
from linearity_lab.dashboard.smaller_runs import quick
from linearity_lab.dashboard.turns import Kind, drawing
from linearity_lab.runs import Spec, estimate, imported_words, spec_digest
from linearity_lab.settings.grammar import Part, differences, settings
from linearity_lab.settings.part import SpecPart
from linearity_lab.words.markdown import plain
from ntk_core.errors import InvalidInput
from ntk_core.numbers import duration, key_words, size

# Longer runs ask for confirmation and offer a run of this duration.
ASK_S = 120.0
SHORT_S = 30.0
# Run, Stop and their neighbors keep place and size, so that the layout does not shift.
RUN_PIXELS = 184
STATUS_PIXELS = 190
_BEFORE = "shown_before"
# Labels of the sentence above a pale figure.
COMPUTING = "Computing"
WAITING = "Waiting to compute"
EARLIER = "Found with other settings"


@dataclass(frozen=True)
class _Before:
    """Result and figures of a page before the current run; a session stores those of its last page.

    Attributes:
        figures: key → figure, as in ``Figures``.
    """

    page: str
    shown: Shown
    figures: Mapping[str, go.Figure]


def attach(page: str, address: Mapping[str, str] | None, kind: type[Part]) -> Part | None:
    """Follow the job in the URL; return its spec, or None if there is no such job of this kind."""
    if address is None:
        return None
    job_id = address.get("job")
    snapshot = shared_jobs().snapshot(job_id, session.viewer()) if job_id else None
    spec = snapshot.spec if snapshot else None
    found = spec if isinstance(spec, kind) else None
    session.follow_job(page, job_id if found else None)
    return found


def run_bar(
    page: str,
    form: SpecForm[AnySpec],
    beside: Callable[[], None],
    elsewhere: Sequence[str] = (),
    in_full: Callable[[AnySpec], AnySpec] | None = None,
) -> None:
    """Show Run, its cost, and nearby messages.

    Errors of settings that are shown ``elsewhere`` are left out.

    With ``in_full`` the page previews by itself, and Run computes the full run of the form's
    settings.
    """
    now = _snapshot_of(page)
    running = now if now is not None and now.active and not session.is_detached(page) else None
    spec = form.spec
    if spec is not None and in_full is not None:
        spec = in_full(spec)
    is_preview = in_full is not None and running is not None and running.spec != spec
    seconds, done = foreseen(spec) if spec is not None else (0.0, 0)
    notice = [sentence for name, sentence in form.sentences.items() if name not in elsewhere]
    is_followed = running is not None and running.spec == spec
    is_asked = not is_followed and spec is not None and _is_asked(page, spec)
    is_wanted = False
    with st.container(horizontal=True, vertical_alignment="center"):
        with st.container(key=f"{page}.run_place", width=RUN_PIXELS):  # contains one button
            if is_followed and running is not None:
                _stop_button(page, running)
            elif is_asked and spec is not None:
                _quick_button(page, form, spec)
            else:
                is_wanted = _run_button(page, form, spec, now, seconds, done, in_full is not None)
        if running is not None and not is_followed and not is_preview:
            _stop_button(page, running)
        with st.container(key=f"{page}.run_status", width=STATUS_PIXELS):
            if running is not None:
                bar(page, running)
            elif is_asked:
                is_wanted = _everything_button(page, seconds)
            elif now is not None and now.status == "cancelled" and now.spec == spec:
                st.caption(_stopped_words(now, seconds))
            elif spec is not None and in_full is not None:
                st.caption(_full_words(spec, seconds, done))
            elif spec is not None:
                st.caption(_cost_words(spec, seconds, done))
            elif form.sentences and not notice:
                st.caption("Fix the settings marked in red to run.")
        beside()
    if spec is None:
        if notice:
            st.error("Fix these settings to run: " + plain(" ".join(notice)))
        _offer_repair(page, form)
        return
    is_quick = st.session_state.pop(f"{page}.quick", None) == spec_digest(spec)
    is_wanted = is_wanted or is_quick or _is_asked_for(page, spec, seconds)
    if is_wanted and submit(page, spec, quick_s=SHORT_S if is_quick else math.inf):
        st.session_state.pop(_asked_key(page), None)
        # Otherwise the pending URL would be parsed again, without the job.
        session.show_address(page, {**form.query(), **session.job_query(page)})
        st.rerun()


def _run_button(
    page: str,
    form: SpecForm[AnySpec],
    spec: AnySpec | None,
    now: Snapshot | None,
    seconds: float,
    done: int,
    is_full: bool,
) -> bool:
    """Show Run, and return whether it was pressed.

    It was if the run needs no choice between quick and everything.
    """
    title = "Run in full" if is_full else "Run"
    if spec is not None and 0 < done < len(spec.point_keys()):
        title = "Resume"
    is_long = spec is not None and seconds > ASK_S
    pressed = st.button(
        title,
        key=f"{page}.run",
        type="secondary" if spec is not None and _is_drawn(form, spec, now) else "primary",
        icon=":material/play_arrow:",
        disabled=spec is None,
        shortcut="ctrl+enter",
        help="Compute these settings; saved results appear immediately.",
        width="stretch",
        on_click=_ask if is_long else None,
        args=(page, spec) if is_long else None,
    )
    return pressed and not is_long


def _asked_key(page: str) -> str:
    """Return the session entry with the digest of the long run that was asked for."""
    return f"{page}.asked"


def _ask(page: str, spec: Spec) -> None:
    st.session_state[_asked_key(page)] = spec_digest(spec)


def _is_asked(page: str, spec: Spec) -> bool:
    """Whether Run was pressed for this long run; other settings withdraw the question."""
    is_asked = st.session_state.get(_asked_key(page)) == spec_digest(spec)
    if not is_asked:
        st.session_state.pop(_asked_key(page), None)
    return is_asked


def _quick_button(page: str, form: SpecForm[AnySpec], spec: AnySpec) -> None:
    """Show the button of a smaller run in place of Run.

    Disabled if no smaller run is short enough.
    """
    shorter = quick(spec, SHORT_S)
    words = "No smaller run of these settings is short enough."
    if shorter is not None:
        titles = _titles(type(spec))
        changes = differences(shorter, spec).items()
        changed = ", ".join(f"{titles[name]} {text}" for name, text in changes)
        words = f"Runs with {plain(changed)}, and stops after {SHORT_S:.0f} s with what it has."
    st.button(
        f"Quick run ({SHORT_S:.0f} s)",
        key=f"{page}.shorter",
        type="primary",
        disabled=shorter is None,
        on_click=_start_quick,
        args=(page, form, shorter),
        help=words,
        width="stretch",
    )


def _everything_button(page: str, seconds: float) -> bool:
    """Show the button of the whole run, with its time; return whether it was pressed."""
    return st.button(
        f"Everything ({duration(seconds)})",
        key=f"{page}.run_long",
        help=f"The whole run should take about {duration(seconds)}.",
        width="stretch",
    )


def _offer_repair(page: str, form: SpecForm[AnySpec]) -> None:
    """Show a button that moves the settings that do not fit together."""
    found = form.repair()
    if found is not None:
        st.button(
            "Mend: " + plain("; ".join(found.sentences)),
            key=f"{page}.repair",
            icon=":material/healing:",
            on_click=form.put,
            args=(found.changes,),
        )


def _full_words(spec: Spec, seconds: float, done: int) -> str:
    """State seeds, largest width and time of a full run."""
    largest = (
        f"{getattr(spec, 'num_seeds', 1)} seeds to m = {max(getattr(spec, spec.swept_field)):,}"
    )
    if done >= len(spec.point_keys()):
        return f"{largest} · saved result"
    time = f"about {duration(seconds)}".replace(" ", "\u00a0")  # in one line, below the rest
    return f"{largest} · {time}"


def _is_drawn(form: SpecForm[AnySpec], spec: AnySpec, now: Snapshot | None) -> bool:
    """Whether the figure is the complete result of these settings.

    Then Run would change nothing.
    """
    result = now.result if now is not None else gallery_result(form.preset.name)
    return result is not None and result.spec == spec and (now is None or now.status == "completed")


def _start_quick(page: str, form: SpecForm[AnySpec], shorter: AnySpec) -> None:
    form.fill(shorter)
    st.session_state[f"{page}.quick"] = spec_digest(shorter)


def _is_asked_for(page: str, spec: Spec, seconds: float) -> bool:
    """Whether a link opened a short run without a saved result."""
    if st.session_state.pop(TRIED, None) != page:
        return False
    return gallery_result_of(spec) is None and seconds <= SHORT_S


def foreseen(spec: Spec) -> tuple[float, int]:
    """Return the seconds still to compute, and stored points.

    The seconds are those of points that are neither in the gallery nor stored.
    """
    if gallery_result_of(spec) is not None:
        return 0.0, len(spec.point_keys())
    try:
        return shared_jobs().foreseen(spec)
    except InvalidInput:  # submit reports it
        return estimate(spec).seconds, 0


def live_panel(page: str, draw: Callable[[Snapshot | None, bool], None]) -> None:
    """Rerun part of a page when the job followed under this name has something new to draw.

    ``draw`` receives the current job (or None), and whether it runs and is watched.
    """
    first = _snapshot_of(page)
    live = first is not None and first.active and not session.is_detached(page)
    is_of_page = True  # whether the whole page runs, which does not wait
    has_mark = False

    @st.fragment
    def panel() -> None:
        nonlocal has_mark
        kind = Kind.LATER_PICTURE if has_mark else Kind.FIRST_MARK
        with nullcontext() if is_of_page else drawing.turn(kind):
            now = _snapshot_of(page)
            if live and (now is None or not now.active or session.is_detached(page)):
                st.rerun()
            has_mark = now is not None and bool(now.points or now.growing)
            draw(now, live)

    panel()
    is_of_page = False


def figures_panel(
    page: str,
    title: str,
    form: SpecForm[AnySpec],
    draw: Callable[[Shown[AnySpec, AnyPoint], Figures], None],
    drawings: Mapping[str, Chart],
) -> None:
    """Show progress and figures of the followed job.

    They are updated while it runs. Without a job, the precomputed figure is shown.

    Exports of the figures and of ``drawings`` (key → chart above the panel) are above, and
    their provenance below.
    """

    def panel(now: Snapshot | None, live: bool) -> None:
        with st.container(key=f"{page}.run_panel"):
            _panel(page, title, form, draw, now, drawings, live=live)
            if live and now is not None and not st.context.is_embedded:
                watch(page, now)

    live_panel(page, panel)


def _panel(
    page: str,
    title: str,
    form: SpecForm[AnySpec],
    draw: Callable[[Shown[AnySpec, AnyPoint], Figures], None],
    now: Snapshot | None,
    drawings: Mapping[str, Chart],
    *,
    live: bool,
) -> None:
    """Show progress, then figures; before the first point, the previous figures."""
    notice = st.container()  # reserves its place while empty, so that figures do not move
    above = _row_above_figures(page)
    of_job = None
    if now is not None:
        with notice:
            # On a page that is not embedded, progress replaces Run.
            of_job = followed(page, now) if st.context.is_embedded else _outcome(page, now)
    before = _state_before(page)
    active = now if live else None  # the job that this page watches
    shown = of_job or _without_points(form, now, before)
    if shown is None:
        notice.container(key=f"{page}.{FIRST}").info(_words_of_nothing(active))
        return
    if not st.context.is_embedded:
        _mark_imported(above, shown)
    figures = Figures(page, [shown.spec], growing=live)
    has_points = of_job is not None
    is_stopped = _is_stopped_run_of(form, shown, now, live=live)
    replaces_earlier = not (has_points and (live or is_stopped))
    overlaid = ""
    if replaces_earlier:
        _say_what_is_shown(page, form, active, shown, figures, above, has_points=has_points)
    elif before is not None:
        overlaid = _lay_over_earlier(form, figures, shown, before)
    draw(shown, figures)
    link(figures)
    if overlaid and figures.is_laid_over:
        above.caption(f"Pale curves show the previous settings ({overlaid} changed).")
    if replaces_earlier or (is_stopped and before is None):
        drawn = {key: each.figure for key, each in figures.charts.items()}
        st.session_state[_BEFORE] = _Before(page, shown, drawn)
    _say_where_it_is_from(shown)
    if not st.context.is_embedded:
        with above:
            _export(page, title, shown, {**drawings, **figures.charts})


def _row_above_figures(page: str) -> DeltaGenerator:
    """Badges, captions and the menu of exports."""
    return st.container(
        key=f"{page}.above",
        horizontal=True,
        vertical_alignment="center",
        horizontal_alignment="distribute",
    )


def _is_stopped_run_of(
    form: SpecForm[AnySpec], shown: Shown, now: Snapshot | None, *, live: bool
) -> bool:
    """Whether the figures are those of a stopped run with the settings of the form.

    They are drawn above the previous figures, as while it ran, so that Stop redraws nothing.
    """
    if now is None or live or now.status not in ("cancelled", "stopped"):
        return False
    return not _changed(form.spec, shown.spec)


def _lay_over_earlier(
    form: SpecForm[AnySpec], figures: Figures, shown: Shown, before: _Before
) -> str:
    """Draw the previous figures pale behind those of a run.

    Return the settings in which they differ, empty if they do not.
    """
    differing = _changed(shown.spec, before.shown.spec, _picked(form, shown.spec))
    if not differing:
        return ""
    figures.ghosts = before.figures
    return differing if figures.ghosts else ""


def _mark_imported(above: DeltaGenerator, shown: Shown) -> None:
    words = imported_words(shown.points)
    if words:
        above.badge("Imported", icon=":material/upload_file:", color="orange", help=f"{words}.")


def _say_where_it_is_from(shown: Shown) -> None:
    """Show the provenance of a result; of unfinished or embedded figures only an import."""
    if not st.context.is_embedded and shown.result is not None:
        provenance_footer(shown.result)
        return
    imported = imported_words(shown.points)
    if imported:
        st.caption(f"{imported}.")


def _export(page: str, title: str, shown: Shown, charts: Mapping[str, Chart]) -> None:
    name = page.replace("_", "-")
    taken = [export_menu.Taken(name, shown.spec, shown.result)]
    export_menu.export_menu(name, title, taken, charts)


def _state_before(page: str) -> _Before | None:
    before: _Before | None = st.session_state.get(_BEFORE)
    return before if before is not None and before.page == page else None


def _without_points(
    form: SpecForm[AnySpec], now: Snapshot | None, before: _Before | None
) -> Shown | None:
    """Return what a page shows without points of a job.

    With a job the previous figures stay, if any. Otherwise it is the first answer to these
    settings if that is known, else that of the same network and data, else the gallery's figure
    of the preset.
    """
    if now is not None and before is not None:
        return before.shown
    saved = None
    if form.spec is not None:
        saved = first_answer(form.spec) or nearest_answer(form.spec)
    saved = saved or gallery_result(form.preset.name)
    return shown_result(saved) if saved is not None else None


def _words_of_nothing(active: Snapshot | None) -> str:
    """Say what happens where no figure can be shown yet."""
    if active is None:
        return "Press Run: the points appear here one by one."
    is_waiting = active.status == "queued"
    return "Waiting to begin…" if is_waiting else "Computing the first point…"


def _say_what_is_shown(
    page: str,
    form: SpecForm[AnySpec],
    active: Snapshot | None,
    shown: Shown,
    figures: Figures,
    above: DeltaGenerator,
    *,
    has_points: bool,
) -> None:
    """Label figures that are not of the running job: precomputed, or of other settings."""
    wanted: SpecPart | None = active.spec if active is not None else form.spec
    picked = _picked(form, wanted)
    changed = "" if shown.spec in form.answers else _changed(wanted, shown.spec, picked)
    if active is not None and not has_points:
        figures.kind = WAITING if active.status == "queued" else COMPUTING
        figures.instead = _first_words(active)
    elif changed:
        figures.kind = EARLIER
    can_run = active is None and not st.context.is_embedded
    if shown.origin == "precomputed" and can_run:
        above.badge("Precomputed figure", icon=":material/inventory_2:", color="gray")
    if changed:
        remedy = " Press Run to update the figure." if can_run else ""
        with above.container(key=f"{page}.earlier"):  # the style sheet makes the figures pale
            st.caption(f"Settings changed ({changed}).{remedy}")


def _first_words(now: Snapshot) -> str:
    """Say what is being computed, before there is a first point."""
    first, *others = [key_words(key) for key in now.spec.point_keys()]
    return f"{first}, then {len(others)} more" if others else first


def _snapshot_of(page: str) -> Snapshot | None:
    job_id = session.followed_job(page)
    if job_id is None:
        return None
    return shared_jobs().snapshot(job_id, "" if session.is_detached(page) else session.viewer())


def _cost_words(spec: Spec, seconds: float, done: int) -> str:
    if done >= len(spec.point_keys()):
        return f"{count_points(spec)} · saved result"
    known = f", {done} of them saved" if done else ""
    memory = size(estimate(spec).peak_bytes)
    return f"{count_points(spec)}{known}, about {duration(seconds)} here, {memory} of memory"


def submit(page: str, spec: Spec, *, is_preview: bool = False, quick_s: float = math.inf) -> bool:
    """Start or attach to the job of this spec and follow it.

    False, with a message, if it was refused.

    A quick run stops after ``quick_s``.
    """
    try:
        if (known := gallery_result_of(spec)) is not None:
            shared_jobs().adopt(known, is_preview=is_preview)
        address = session.network_address()
        job_id = shared_jobs().submit(
            spec,
            session.viewer(),
            address,
            session.visitor(),
            is_preview=is_preview,
            quick_s=quick_s,
        )
    except InvalidInput as error:
        st.error(plain(f"{error_text(error)}."))
        return False
    session.follow_job(page, job_id)
    return True


def followed(page: str, now: Snapshot) -> Shown | None:
    """Show the progress of a job, with Stop, and its errors; return its state."""
    if now.active and not session.is_detached(page):
        with st.container(horizontal=True, vertical_alignment="center"):
            _stop_button(page, now)
            bar(page, now)
        watch(page, now)
    elif now.status == "cancelled":
        st.caption(_stopped_words(now))
    return _outcome(page, now)


def _outcome(page: str, now: Snapshot) -> Shown | None:
    """Show the errors of a job; return its state."""
    if session.is_detached(page) and now.active:
        st.info(
            "Another visitor started this run too, so it continues. Press Run to follow it again."
        )
    elif now.status == "failed":
        st.error(plain(f"{now.reason}."))
    elif now.status == "stopped":
        num_saved = len(now.points) + now.num_unloaded
        done = f"{num_saved} of {count_points(now.spec)} are done and saved"
        st.warning(
            plain(f"{now.reason[:1].upper()}{now.reason[1:]}: {done}."), icon=":material/timer_off:"
        )
    for failure in now.failures:
        st.warning(plain(f"{key_words(failure.key)}: {failure.reason}."))
    if not now.points and not now.growing:
        return None
    return Shown(now.spec, (*now.points, *now.growing), now.result, "job", now.grown)


def _picked(form: SpecForm[AnySpec], wanted: SpecPart | None) -> SpecPart | None:
    """Return the settings of the form if these are of its own preview.

    A preview leaves out what takes long, which no visitor has changed.
    """
    return form.spec if wanted in form.answers else wanted


def _changed(wanted: SpecPart | None, shown: SpecPart, picked: SpecPart | None = None) -> str:
    """Return the settings that differ between figures and form; empty if there are none.

    With the settings ``picked`` by the visitor, only those of them that differ from the figures.
    """
    if wanted is None or wanted == shown:
        return ""
    names = dict(_both_ways(wanted, shown))
    if picked is not None:
        of_visitor = _both_ways(picked, shown)
        names = {name: text for name, text in names.items() if name in of_visitor}
    titles = _titles(type(shown))
    return plain(", ".join(titles[name] for name in names))


def _both_ways(one: SpecPart, other: SpecPart) -> Mapping[str, object]:
    """Return the names of the settings that differ, also of those that only one of them has."""
    return differences(one, other) | differences(other, one)


def _titles(model: type[SpecPart]) -> dict[str, str]:
    return {setting.name: setting.full_title for setting in settings(model)}


def _stopped_words(now: Snapshot, seconds: float = 0.0) -> str:
    left = f", about {duration(seconds)}" if seconds else ""
    then = "Resume continues from there" if now.points else "Run begins again"
    return f"Stopped: {len(now.points)} of {count_points(now.spec)} are done. {then}{left}."


def _stop_button(page: str, now: Snapshot) -> None:
    """Show Stop; for a run of another visitor, Leave, which changes nothing for its owner."""
    if not is_mine(now, session.visitor()):
        st.button(
            "Leave",
            key=f"{page}.leave",
            icon=":material/visibility_off:",
            on_click=session.detach,
            args=(page,),
            help="This run belongs to another visitor. You can leave it, not stop it.",
            width="stretch",
        )
        return
    st.button(
        "Stop",
        key=f"{page}.stop",
        icon=":material/stop:",
        on_click=_stop,
        args=(page,),
        width="stretch",
    )


def _stop(page: str) -> None:
    """Stop the followed job, or only unfollow it if another visitor started it too."""
    job_id = session.followed_job(page)
    if job_id is not None and not shared_jobs().stop(job_id, session.viewer(), session.visitor()):
        session.detach(page)
