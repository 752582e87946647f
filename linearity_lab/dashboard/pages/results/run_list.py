"""The stored runs as cards, with filters and actions."""

import math
from collections.abc import Mapping, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from linearity_lab.charts.figure import Shown, has_figures, main_chart
from linearity_lab.charts.vector import letters, thumbnail_of
from linearity_lab.dashboard import session
from linearity_lab.dashboard.jobs import shared_jobs
from linearity_lab.dashboard.jobs.profile import error_text, profile
from linearity_lab.dashboard.jobs.sized_cache import SizedCache
from linearity_lab.dashboard.page_table import PAGES
from linearity_lab.dashboard.pages.results.stored_runs import (
    STATUS_WORDS,
    details,
    marks,
    shared_store,
    take_file,
    write_mark,
)
from linearity_lab.page_modules import has_page_module
from linearity_lab.runs import KINDS
from linearity_lab.runs.store import MAX_NAME, MAX_NOTE, MIN_PREFIX, Mark, RunList, StoredRun
from linearity_lab.settings.part import Values
from linearity_lab.words.markdown import plain
from linearity_lab.words.pages import prose
from linearity_lab.words.run_words import name_of
from ntk_core.errors import InvalidInput
from ntk_core.numbers import num_runs

PAGE = "results"
ROWS = 20
MAX_CHOSEN = 200
PICTURES_BYTES = 4 * 2**20  # of all cached pictures; our choice
MAX_PICTURE_BYTES = 5_000_000  # of a run whose points are read for its picture
_FILTERS = ("text", "experiment", "status", "favorites", "sheet")
_ENTRIES = {entry.name: entry for entry in PAGES}


def title_of(experiment: str) -> str:
    """The page of an experiment, as the menu names it."""
    return (
        _ENTRIES[experiment].title
        if experiment in _ENTRIES
        else experiment.replace("_", " ").capitalize()
    )


def _card(run: StoredRun, mark: Mark) -> None:
    box = _key(f"box.{run.digest}")
    st.session_state[box] = run.digest in chosen_runs()
    with st.container(border=True, gap="xsmall", height="stretch"):
        st.image(
            _drawn(run.digest, run.num_points, run.created, run.num_bytes), width="stretch", alt=""
        )
        name = mark.name or (name_of(run.spec) if run.spec is not None else run.digest[:8])
        st.checkbox(f"**{plain(name)}**", key=box, on_change=_tick, args=(run.digest,))
        st.caption(plain(f"{title_of(run.experiment)} · {run.swept}"))
        if mark.note:
            st.markdown(plain(mark.note))
        job = shared_jobs().snapshot(run.digest[:MIN_PREFIX]) if run.status == "started" else None
        st.caption(plain(details(run, is_active=job is not None and job.active)))
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            if run.spec is not None and run.experiment in _ENTRIES:
                query = {"job": run.digest[:MIN_PREFIX]}
                path = _ENTRIES[run.experiment].path
                st.page_link(path, label="Open", icon=":material/open_in_new:", query_params=query)
            elif run.spec is not None and has_page_module(run.experiment, "figures"):
                # Shown on this page.
                key = _key(f"open.{run.digest}")
                st.button("Open", key=key, type="tertiary", on_click=_choose, args=([run.digest],))
            star: Values = {
                "key": _key(f"star.{run.digest}"),
                "type": "tertiary",
                "help": "Favorite",
            }
            changed = (run.digest, mark.name, mark.note, not mark.favorite)
            st.button("★" if mark.favorite else "☆", on_click=_write, args=changed, **star)
            panel = st.popover(
                "Edit", type="tertiary", key=_key(f"edit.{run.digest}"), on_change="rerun"
            )
            if panel.open:
                with panel:
                    _fields(run.digest, mark, name)


def _fields(run: str, mark: Mark, shown: str) -> None:
    name, note = (_key(f"{part}.{run}") for part in ("name", "note"))

    def take() -> None:
        _write(run, st.session_state[name], st.session_state[note], mark.favorite)

    st.text_input(
        "Name", mark.name, key=name, max_chars=MAX_NAME, placeholder=shown, on_change=take
    )
    st.text_area("Note", mark.note, key=note, max_chars=MAX_NOTE, on_change=take)
    st.caption(prose(PAGE, "Kept in this session" if profile().is_shared else "Kept in the store"))


def _choose(runs: list[str]) -> None:
    st.session_state[_key("chosen")] = runs


def _write(run: str, name: str, note: str, favorite: bool) -> None:
    try:
        write_mark(run, name, note, favorite)
    except InvalidInput as error:
        _notify("", [f"{error_text(error)}."])


_pictures: SizedCache[str] = SizedCache(PICTURES_BYTES, len)


def _drawn(run: str, num_points: int, created: float, num_bytes: int) -> str:
    """Return the small picture of a run as SVG, cached until the run changes."""
    key = run, num_points, created, num_bytes
    return _pictures.get(key, lambda: _picture(run, num_points, num_bytes))


def _picture(run: str, num_points: int, num_bytes: int) -> str:
    if (spec := shared_store().spec(run)) is None:
        return letters("?")
    if num_points and num_bytes <= MAX_PICTURE_BYTES and has_figures(spec.experiment):
        found = shared_store().points_of(run, arrays=False, max_bytes=MAX_PICTURE_BYTES)
        points = tuple(found[key] for key in spec.point_keys() if key in found)
        try:
            return thumbnail_of(main_chart(Shown(spec, points)).figure)
        except (ValueError, LookupError, ArithmeticError):  # too few points, or none that converged
            pass
    return letters(title_of(spec.experiment))


def open_address(address: Mapping[str, str] | None) -> None:
    """Fill filters and choice from a changed URL."""
    if address is None:
        return
    for name in _FILTERS:
        st.session_state[_key(name)] = address.get(name, "")
    st.session_state[_key("favorites")] = address.get("favorites") == "1"
    for name, allowed in (("experiment", KINDS), ("status", STATUS_WORDS)):
        if st.session_state[_key(name)] not in allowed:
            st.session_state[_key(name)] = ""
    number = address.get("sheet", "1")
    st.session_state[_key("sheet")] = (
        int(number) if number.isascii() and number.isdigit() and len(number) < 7 else 1
    )
    named = [name for name in address.get("runs", "").split(",") if len(name) == MIN_PREFIX][
        :MAX_CHOSEN
    ]
    chosen = [matches[0] for matches in map(shared_store().find, named) if len(matches) == 1]
    _choose(chosen)


def address() -> dict[str, str]:
    """Return the URL of the same list and choice."""
    texts = {name: str(st.session_state.get(_key(name)) or "") for name in _FILTERS}
    texts["favorites"] = "1" if texts["favorites"] else ""
    texts["sheet"] = "" if texts["sheet"] == "1" else texts["sheet"]
    texts["runs"] = ",".join(run[:MIN_PREFIX] for run in chosen_runs())
    return {name: text for name, text in texts.items() if text}


def chosen_runs() -> list[str]:
    """Return the digests of ticked runs, in order."""
    return list(st.session_state.get(_key("chosen"), ()))


def filters() -> RunList:
    """Show the filters; return the matching runs."""
    for name in ("text", "experiment", "status"):
        st.session_state.setdefault(_key(name), "")
    with st.container(horizontal=True, vertical_alignment="bottom", key=_key("filters")):
        st.text_input(
            "Search",
            key=_key("text"),
            placeholder="a setting, a name, a note",
            on_change=_open_sheet,
        )
        st.selectbox(
            "Experiment",
            ["", *KINDS],
            key=_key("experiment"),
            on_change=_open_sheet,
            format_func=lambda name: title_of(name) if name else "All",
            width=180,
        )
        st.selectbox(
            "Status",
            ["", *STATUS_WORDS],
            key=_key("status"),
            on_change=_open_sheet,
            format_func=lambda name: STATUS_WORDS[name] if name else "All",
            width=180,
        )
        st.toggle("Favorites", key=_key("favorites"), on_change=_open_sheet)
    state = st.session_state
    marked = marks()
    # A local server lists everything; a shared one lists the visitor's own runs, others
    # open by their links.
    owner = session.visitor() if profile().is_shared else None
    page = max(1, int(state.get(_key("sheet")) or 1))
    while True:
        found = shared_store().runs(
            text=state[_key("text")],
            experiment=state[_key("experiment")],
            status=state[_key("status")],
            owner=owner,
            marked=marked,
            only_favorites=state[_key("favorites")],
            limit=ROWS,
            offset=(page - 1) * ROWS,
        )
        if found.runs or page == 1:
            break
        page = max(1, math.ceil(found.total / ROWS))  # the runs of this page have been deleted
    state[_key("sheet")] = page
    return found


def actions() -> DeltaGenerator:
    """Show actions on the chosen runs and the import of a file.

    Return the container of the export.
    """
    good, problems = st.session_state.pop(_key("notice"), ("", ()))
    if good:
        st.success(plain(good))
    for sentence in problems:
        st.warning(plain(sentence))
    chosen = chosen_runs()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"**{len(chosen)} chosen**" if chosen else "Select runs to compare, export or delete."
        )
        if chosen:
            st.button("Clear", key=_key("clear"), on_click=_choose, args=([],), type="tertiary")
            with st.popover("Delete", icon=":material/delete:"):
                st.markdown(f"Delete {num_runs(len(chosen))} for good?")
                st.button("Yes, delete", key=_key("delete"), on_click=_delete, type="primary")
        with st.popover("Import", icon=":material/upload:"):
            _import()
        st.space("stretch")
        return st.container(width="content")


def cards(found: RunList) -> None:
    """Show a card per run, and page buttons."""
    if not found.runs:
        searched = any(
            st.session_state[_key(name)] for name in ("text", "experiment", "status", "favorites")
        )
        none = "No runs yet. Press Run on any page."
        if profile().is_shared:
            none += " This list shows the runs that you start in this browser."
        st.info("No matching runs." if searched else none)
        if not searched:
            st.page_link(
                "pages/kernel_change.py",
                label="Start with the kernel",
                icon=":material/play_arrow:",
            )
        return
    written = marks()
    with st.container(horizontal=True, key=f"{PAGE}-cards", gap="small"):  # look.css: a grid
        for run in found.runs:
            _card(run, written.get(run.digest, Mark()))
    page = st.session_state[_key("sheet")]
    last = math.ceil(found.total / ROWS)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Newer", key=_key("newer"), disabled=page == 1, on_click=_open_sheet, args=(page - 1,)
        )
        st.caption(
            f"{(page - 1) * ROWS + 1:,} to {(page - 1) * ROWS + len(found.runs):,} of "
            f"{num_runs(found.total)}"
        )
        st.button(
            "Older",
            key=_key("older"),
            disabled=page >= last,
            on_click=_open_sheet,
            args=(page + 1,),
        )


def _import() -> None:
    if profile().is_shared:
        st.caption("Not available on a shared server.")
        return
    most_mib = profile().max_upload_bytes // 2**20
    file = st.file_uploader(
        "A file of runs from Export", key=_key("file"), max_upload_size=most_mib
    )
    if file is not None and st.session_state.get(_key("taken")) != file.file_id:
        st.session_state[_key("taken")] = file.file_id
        _, good, problems = take_file(file)
        _notify(good, problems)
        st.rerun()


def _tick(run: str) -> None:
    chosen = chosen_runs()
    if run in chosen:
        chosen.remove(run)
    elif len(chosen) < MAX_CHOSEN:
        chosen.append(run)
    _choose(chosen)


def _delete() -> None:
    """Delete the chosen runs; name those that stay, running or shared."""
    store = shared_store()
    kept = {}
    chosen = chosen_runs()
    for run in chosen:
        owner = session.visitor()
        if profile().is_shared and owner not in store.owners(run):
            kept[run] = "cannot be deleted: it belongs to another visitor"
        elif profile().is_shared and store.owners(run) != {owner}:
            store.disown(run, owner)  # another visitor started it too
        elif not shared_jobs().forget(run[:MIN_PREFIX]):
            kept[run] = "is still running; stop it first"
        else:
            store.delete(run)
    _choose(list(kept))
    gone = len(chosen) - len(kept)
    _notify(
        f"{num_runs(gone)} deleted." if gone else "",
        [f"{run[:8]} {reason}." for run, reason in kept.items()],
    )


def _notify(good: str, problems: Sequence[str]) -> None:
    st.session_state[_key("notice")] = good, problems


def _open_sheet(number: int = 1) -> None:
    st.session_state[_key("sheet")] = number


def _key(name: str) -> str:
    return f"{PAGE}.{name}"
