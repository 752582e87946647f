"""Both networks of a pair, drawn, with their sizes."""

from __future__ import annotations

from functools import partial

import streamlit as st

from dashboard.components.chart import chart
from dashboard.components.once import once
from dashboard.views.architectures.network_drawing import drawn, short_title, size_rows
from ntk_core.pairs import PARTS, ArchitecturePair


def networks(page: str, pair: ArchitecturePair) -> None:
    """Both networks as boxes, and how large they are at each width."""
    for part, column in zip(PARTS, st.columns(2, gap="medium"), strict=True):
        drawing, words, rows = once(f"{page}.drawing", pair, partial(drawn, pair), part, max(pair.widths))
        with column:
            st.subheader(f"{part.upper()}: {short_title(pair, part)}", anchor=False)
            chart(drawing, f"{page}.drawing_{part}", words, rows)
    rows = size_rows(pair)
    in_thousands = {name: st.column_config.NumberColumn(format="localized") for row in rows[:1] for name in row}
    words = "Parameters and smallest width of both networks, at each width"
    st.dataframe(rows, hide_index=True, column_config=in_thousands, alt=words)
