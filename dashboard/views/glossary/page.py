"""The glossary as a page shows it: the word that the URL names first, then those that are searched for."""

import streamlit as st

from dashboard.components import session
from dashboard.views.navigation import PAGES
from dashboard.words.glossary import Entry, entry_of, search
from dashboard.words.sentences import plain

PAGE = "glossary"
_TITLES = {entry.name: entry.title for entry in PAGES}
LONGEST_SEARCH = 100


def show() -> None:
    """A field to search in, and the entries that are found."""
    address = session.new_address(PAGE)
    if address is not None:
        _read(address)
    st.title("Glossary", anchor=False)
    for note in st.session_state.get(f"{PAGE}.notes", ()):
        st.warning(plain(note))
    chosen: str = st.session_state.get(f"{PAGE}.term", "")
    # The field is away while another page is open; what was searched for is kept.
    st.session_state.setdefault(f"{PAGE}.search", st.session_state.get(f"{PAGE}.searched", ""))
    text = st.text_input(
        "Search", key=f"{PAGE}.search", placeholder="kernel, κ, Theorem 3.1, …", max_chars=LONGEST_SEARCH, width=420
    )
    st.session_state[f"{PAGE}.searched"] = text
    session.show_address(PAGE, {**({"term": chosen} if chosen else {}), **({"search": text} if text else {})})
    if chosen:
        with st.container(border=True):
            _entry(entry_of(chosen))
    found = [entry for entry in search(text) if entry.name != chosen]
    st.caption(f"{len(found)} {'other ' * bool(chosen)}{'word' if len(found) == 1 else 'words'}")
    columns = st.columns(2, gap="large")
    for index, entry in enumerate(found):
        with columns[2 * index // len(found)]:  # on a phone the second column stands below the first
            _entry(entry)


def _choose(name: str) -> None:
    st.session_state[f"{PAGE}.term"] = name


def _read(address: dict[str, str]) -> None:
    readers = {"term": lambda text: entry_of(text).name, "search": lambda text: text[:LONGEST_SEARCH]}
    found, notes = session.read_address(address, readers)
    for name in readers:
        st.session_state[f"{PAGE}.{name}"] = found.get(name, "")
    st.session_state[f"{PAGE}.notes"] = list(notes.values())


def _entry(entry: Entry) -> None:
    """One word: its symbol, sentence and formula, where it is seen, and who says so."""
    symbol = f" &nbsp; ${entry.symbol}$" if entry.symbol else ""
    formula = f"\n\n${entry.formula}$" if entry.formula else ""
    st.markdown(
        f"**{plain(entry.title)}**{symbol}  \n{entry.sentence}{formula}  \n:small[:gray[{plain(entry.source)}]]"
    )
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.page_link(f"pages/{entry.page}.py", label=f"See it: {_TITLES[entry.page]}", icon=":material/visibility:")
        if st.session_state.get(f"{PAGE}.term") != entry.name:
            st.button(
                "Link",
                key=f"{PAGE}.link.{entry.name}",
                type="tertiary",
                icon=":material/link:",
                help="Put this word into the URL, to share it.",
                on_click=_choose,
                args=(entry.name,),
            )
