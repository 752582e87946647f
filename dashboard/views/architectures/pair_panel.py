"""Two networks, one job each: run, follow and stop them together."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from dashboard.components import session
from dashboard.components.chart import shown_charts
from dashboard.components.export import Taken, export_several
from dashboard.components.forms import SpecForm
from dashboard.components.gallery import gallery_result, pair_name
from dashboard.components.provenance import provenance_footer
from dashboard.components.run_panel import (
    Shown,
    attach,
    cost_words,
    heading,
    progress_words,
    refresh_s,
    run_button,
    say_end,
    say_if_stale,
    say_trouble,
    snapshot_of,
    stop,
    submit,
)
from dashboard.jobs import Snapshot
from dashboard.words.sentences import plain
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.pairs import PARTS, ArchitecturePair, pair_of
from ntk_core.runs import Spec

PairShown = Mapping[str, Shown]


def attach_pair(
    page: str, address: Mapping[str, str] | None
) -> tuple[Mapping[str, str] | None, ArchitecturePair | None]:
    """Follow the jobs that the URL names (``a.job``, ``b.job``).

    Returns:
        The rest of the URL, with ``job`` where a job is not known, and the pair that the jobs compute.
    """
    if address is None:
        return None, None
    named = {part: address[f"{part}.job"] for part in PARTS if f"{part}.job" in address}
    rest = {name: text for name, text in address.items() if name.removesuffix(".job") not in PARTS}
    specs = {
        part: attach(_slot(page, part), {"job": named[part]} if part in named else {}, KernelChangeSpec)
        for part in PARTS
    }
    unknown = [job for part, job in named.items() if specs[part] is None]
    if unknown:
        rest["job"] = unknown[0]
    a, b = specs["a"], specs["b"]
    return rest, pair_of(a, b) if a and b and not unknown else None


def job_query(page: str) -> dict[str, str]:
    """The part of the URL that names the followed jobs."""
    followed = {part: session.followed_job(_slot(page, part)) for part in PARTS}
    return {f"{part}.job": job_id for part, job_id in followed.items() if job_id}


def pair_bar(page: str, form: SpecForm[ArchitecturePair]) -> None:
    """Presets, Run and what both runs will cost."""
    pair = form.spec
    specs = {part: pair.spec(part) for part in PARTS} if pair else {}
    run_already = bool(specs) and all(
        now is not None and now.spec == specs[part] and _is_live(page, part, now)
        for part in PARTS
        for now in [snapshot_of(_slot(page, part))]
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        form.preset_chooser()
        pressed = run_button(page, disabled=pair is None or run_already)
        st.caption(cost_words(list(specs.values())), width="content")
    if pair is None:
        st.error("Fix these settings to run: " + plain(" ".join(_sentences(form))))
    elif pressed and all(submit(_slot(page, part), spec) for part, spec in specs.items()):
        st.rerun()


def _sentences(form: SpecForm[ArchitecturePair]) -> list[str]:
    """What is wrong, naming the network that it is wrong with."""
    networks = {name: name.partition(".")[0] for name in form.sentences}
    return [
        f"Network {networks[name].upper()}, {sentence}" if networks[name] in PARTS else sentence
        for name, sentence in form.sentences.items()
    ]


def live_pair(page: str, title: str, form: SpecForm[ArchitecturePair], draw: Callable[[PairShown], None]) -> None:
    """Progress of both jobs and their figures, drawn again while one of them runs, between export and origin."""
    every_s = _refresh_s(page)
    live = every_s is not None

    @st.fragment(run_every=every_s)
    def panel() -> None:
        if live and _refresh_s(page) != every_s:
            st.rerun()
        now = _snapshots(page)
        if not now:
            precomputed = _precomputed(form)
            if precomputed:
                _say_if_stale(form.spec, {part: of_part.spec for part, of_part in precomputed.items()})
                _draw_both(page, title, precomputed, draw)
            return
        _progress(page, now)
        shown = {part: Shown(job.spec, job.points, job.result, "job") for part, job in now.items() if job.points}
        if not shown:
            if live:
                st.info("Computing the first point…")
            return
        if not live and len(now) == len(PARTS):
            _say_if_stale(form.spec, {part: job.spec for part, job in now.items()})
        _draw_both(page, title, shown, draw)

    panel()


def _precomputed(form: SpecForm[ArchitecturePair]) -> PairShown:
    """Both networks of the chosen pair as the gallery has them; nothing where one is missing."""
    results = {part: gallery_result(pair_name(form.preset.name, part)) for part in PARTS}
    if not all(results.values()):
        st.info("Press Run: the points of both networks appear here one by one.")
        return {}
    return {part: Shown(result.spec, result.points, result, "precomputed") for part, result in results.items()}


def _draw_both(page: str, title: str, shown: PairShown, draw: Callable[[PairShown], None]) -> None:
    above = heading(next(iter(shown.values())))
    with shown_charts() as figures:
        draw(shown)
    with above:
        runs = [
            Taken(f"{page}-{part}", of_part.spec, of_part.result, f"Network {part.upper()}")
            for part, of_part in shown.items()
        ]
        export_several(page, title, runs, figures)
    for of_part in shown.values():
        if of_part.result is not None:
            provenance_footer(of_part.result)


def _slot(page: str, part: str) -> str:
    """Under which name the session remembers the job of one network."""
    return f"{page}.{part}"


def _snapshots(page: str) -> dict[str, Snapshot]:
    found = {part: snapshot_of(_slot(page, part)) for part in PARTS}
    return {part: now for part, now in found.items() if now is not None}


def _is_live(page: str, part: str, now: Snapshot) -> bool:
    return now.active and not session.is_detached(_slot(page, part))


def _any_live(page: str, snapshots: Mapping[str, Snapshot]) -> bool:
    return any(_is_live(page, part, now) for part, now in snapshots.items())


def _refresh_s(page: str) -> float | None:
    """How often to look; None when nothing is under way."""
    live = [now for part, now in _snapshots(page).items() if _is_live(page, part, now)]
    return refresh_s(live) if live else None


def _stop_both(page: str) -> None:
    first, second = (_slot(page, part) for part in PARTS)
    stop(first, wait_s=0)  # both end at the same time
    stop(second)


def _progress(page: str, snapshots: Mapping[str, Snapshot]) -> None:
    """One line per network, and one Stop for both."""
    if _any_live(page, snapshots):
        with st.container(horizontal=True, vertical_alignment="center"):
            with st.container():
                for part, now in snapshots.items():
                    if _is_live(page, part, now):
                        st.progress(now.fraction, plain(f"{part.upper()}: {progress_words(now)}"))
            st.button("Stop", key=f"{page}.stop", icon=":material/stop:", on_click=_stop_both, args=(page,))
    for part, now in snapshots.items():
        prefix = f"Network {part.upper()}: "
        if now.active and session.is_detached(_slot(page, part)):
            st.info(f"{prefix}someone else is following this run too, so it continues. Press Run to follow it again.")
        say_end(now, prefix)
        say_trouble(now, prefix)


def _say_if_stale(wanted: ArchitecturePair | None, specs: Mapping[str, Spec]) -> None:
    shown = pair_of(specs["a"], specs["b"])
    if wanted is not None and shown is not None:
        say_if_stale(pair_of(wanted.spec("a"), wanted.spec("b")), shown)
