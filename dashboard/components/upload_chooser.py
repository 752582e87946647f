"""The data that this session has brought, as one setting of a form."""

from __future__ import annotations

import streamlit as st

from dashboard.components.own_data import brought, title_of


def upload_chooser(label: str, key: str, help: str) -> None:
    """A menu of this session's data, and of that of a link; never of anybody else's."""
    given = st.session_state.get(key) or ""
    known = [data.digest for data in brought()]
    options = known if given in known else [given, *known]
    titles = {digest: title_of(digest) for digest in options}
    st.selectbox(label, options, format_func=titles.__getitem__, key=key, help=help)
    st.page_link("pages/own_data.py", label="Bring data", icon=":material/upload_file:")
