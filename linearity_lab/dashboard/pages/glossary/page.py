"""Glossary page: the entry in the URL first, then search results, all open."""

import streamlit as st

from linearity_lab.dashboard import session
from linearity_lab.dashboard.page_table import PAGES
from linearity_lab.words.markdown import plain
from linearity_lab.words.pages import Entry, entry_of, search

PAGE = "glossary"
_TITLES = {entry.name: entry.title for entry in PAGES}
LONGEST_SEARCH = 100
READERS = {"term": lambda text: entry_of(text).name, "search": lambda text: text[:LONGEST_SEARCH]}


def show() -> None:
    """Show the search field and the matching entries."""
    state = st.session_state
    if (named := session.noted_address(PAGE, READERS)) is not None:
        state.update({f"{PAGE}.{name}": named.get(name, "") for name in READERS})
        state[f"{PAGE}.first"] = state[f"{PAGE}.term"]
        if first := state[f"{PAGE}.first"]:
            state[_opened(entry_of(first))] = True
    st.title("Glossary", anchor=False)
    session.show_notes(PAGE)
    first = state.get(f"{PAGE}.first", "")
    term = state.get(f"{PAGE}.term", "")
    # The search text is kept while another page is open without the field.
    state.setdefault(f"{PAGE}.search", state.get(f"{PAGE}.searched", ""))
    text = st.text_input(
        "Search",
        key=f"{PAGE}.search",
        placeholder="kernel, κ, Theorem 3.1, …",
        max_chars=LONGEST_SEARCH,
        width=420,
    )
    state[f"{PAGE}.searched"] = text
    session.show_address(
        PAGE, {**({"term": term} if term else {}), **({"search": text} if text else {})}
    )
    found = [entry for entry in search(text) if entry.name != first]
    for entry in ([entry_of(first)] if first else []) + found:
        state.setdefault(_opened(entry), True)
    if first:
        _entry(entry_of(first))
    st.caption(f"{len(found)} {'other ' * bool(first)}{'word' if len(found) == 1 else 'words'}")
    columns = [column.container(gap="xsmall") for column in st.columns(2, gap="large")]
    for index, entry in enumerate(found):
        with columns[2 * index // len(found)]:  # on phones the second column is below the first
            _entry(entry)


def _opened(entry: Entry) -> str:
    return f"{PAGE}.open.{entry.name}"


def _toggled(entry: Entry) -> None:
    st.session_state[f"{PAGE}.term"] = entry.name if st.session_state[_opened(entry)] else ""


def _entry(entry: Entry) -> None:
    symbol = f" &nbsp; ${entry.symbol}$" if entry.symbol and len(entry.title) > 1 else ""
    line = st.expander(
        f"**{plain(entry.title)}**{symbol}", key=_opened(entry), on_change=_toggled, args=(entry,)
    )
    if not line.open:
        return
    with line:
        formula = f"\n\n${entry.formula}$" if entry.formula else ""
        st.markdown(f"{entry.sentence}{formula}  \n:small[:gray[{plain(entry.source)}]]")
        st.page_link(
            f"pages/{entry.page}.py",
            label=f"See it: {_TITLES[entry.page]}",
            icon=":material/visibility:",
        )
