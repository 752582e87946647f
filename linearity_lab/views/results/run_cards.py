"""A run as a card: its picture, a name, what it varies, a note, a star, and the way to its page."""

import functools
from types import SimpleNamespace
from typing import Any

import streamlit as st

from linearity_lab.charts.vector import letters
from linearity_lab.jobs import shared_jobs
from linearity_lab.jobs.profile import error_text
from linearity_lab.view_modules import has_view, view_module
from linearity_lab.views.navigation import PAGES
from linearity_lab.views.results.run_marks import where_kept, write_mark
from linearity_lab.views.results.stored_runs import details, shared_store
from linearity_lab.words.markdown import plain
from linearity_lab.words.run_words import name_of
from ntk_core.errors import InvalidInput
from ntk_core.runs.store import MAX_NAME, MAX_NOTE, MIN_PREFIX, Mark, StoredRun

MAX_PICTURE_BYTES = 5_000_000  # of a run whose points are read for its picture
CARD_PIXELS = 290
_ENTRIES = {entry.name: entry for entry in PAGES}


def title_of(experiment: str) -> str:
    """The page of an experiment, as the menu names it."""
    return _ENTRIES[experiment].title if experiment in _ENTRIES else experiment.replace("_", " ").capitalize()


def picture(run: StoredRun) -> str:
    """The points of a run as its page's card draws them, as SVG; letters where there is nothing to draw yet."""
    return _drawn(run.digest, run.num_points, run.created, run.num_bytes)


def run_card(run: StoredRun, mark: Mark, box: dict[str, Any]) -> None:
    """One card.

    Args:
        box: key and callback of the box that chooses the run.
    """
    with st.container(border=True, gap="xsmall", height="stretch"):
        st.image(picture(run), width="stretch", alt="")
        name = mark.name or (name_of(run.spec) if run.spec is not None else run.digest[:8])
        st.checkbox(f"**{plain(name)}**", **box)
        st.caption(plain(f"{title_of(run.experiment)} · {run.swept}"))
        if mark.note:
            st.markdown(plain(mark.note))
        job = shared_jobs().snapshot(run.digest[:MIN_PREFIX]) if run.status == "started" else None
        st.caption(plain(details(run, is_active=job is not None and job.active)))
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            if run.spec is not None and run.experiment in _ENTRIES:
                query = {"job": run.digest[:MIN_PREFIX]}
                st.page_link(
                    _ENTRIES[run.experiment].path, label="Open", icon=":material/open_in_new:", query_params=query
                )
            elif run.spec is not None and has_view(run.experiment):  # shown on this page
                st.button(
                    "Open", key=f"results.open.{run.digest}", type="tertiary", on_click=_choose, args=(run.digest,)
                )
            star: dict[str, Any] = {"key": f"results.star.{run.digest}", "type": "tertiary", "help": "Favorite"}
            changed = (run.digest, mark.name, mark.note, not mark.favorite)
            st.button("★" if mark.favorite else "☆", on_click=_write, args=changed, **star)
            panel = st.popover("Edit", type="tertiary", key=f"results.edit.{run.digest}", on_change="rerun")
            if panel.open:
                with panel:
                    _fields(run.digest, mark, name)


def _fields(run: str, mark: Mark, shown: str) -> None:
    keys = {part: f"results.{part}.{run}" for part in ("name", "note")}

    def take() -> None:
        _write(run, st.session_state[keys["name"]], st.session_state[keys["note"]], mark.favorite)

    st.text_input("Name", mark.name, key=keys["name"], max_chars=MAX_NAME, placeholder=shown, on_change=take)
    st.text_area("Note", mark.note, key=keys["note"], max_chars=MAX_NOTE, on_change=take)
    st.caption(where_kept())


def _choose(run: str) -> None:
    st.session_state["results.chosen"] = [run]


def _write(run: str, name: str, note: str, favorite: bool) -> None:
    try:
        write_mark(run, name, note, favorite)
    except InvalidInput as error:
        st.session_state["results.notice"] = "", (f"{error_text(error)}.",)


@functools.lru_cache(maxsize=1024)
def _drawn(run: str, num_points: int, _created: float, num_bytes: int) -> str:
    listed = shared_store().listed(run)
    spec = listed.spec if listed is not None else None
    if spec is None:
        return letters("?")
    if num_points and num_bytes <= MAX_PICTURE_BYTES and has_view(spec.experiment, "figures"):
        found = shared_store().points_of(run)
        points = tuple(found[key] for key in spec.point_keys() if key in found)
        try:
            view = view_module(spec.experiment, "figures")
            return str(view.card(SimpleNamespace(spec=spec, points=points)))
        except (ValueError, LookupError, ArithmeticError):  # too few points, or none that converged
            pass
    entry = _ENTRIES.get(spec.experiment)
    return letters((entry and entry.letters) or title_of(spec.experiment))
