"""Explanations of a figure.

A visible formula, "About this figure" with words and measurements, tables of words.
"""

import html
import re
from collections.abc import Mapping, Sequence

import streamlit as st

from linearity_lab.charts.axes import readable
from linearity_lab.charts.chart import Chart
from linearity_lab.charts.reading import how_to_read
from linearity_lab.citation import provenance_sentence
from linearity_lab.page_modules import page_script
from linearity_lab.runs import ResultValue
from linearity_lab.words.markdown import plain
from linearity_lab.words.pages import (
    CHANGES,
    FINITE,
    MEASURED,
    SHOWS,
    figure_words,
    glossary,
    has_prose,
    titled,
    titled_prose,
    try_links,
    veiled_words,
)
from ntk_core.markup import without_marks

ABOUT = "About this figure"
OPENED = "about"  # key.OPENED: whether this figure's explanation is open
TRIED = "tried"  # the page opened by one of these links, which may run immediately


def formula(key: str) -> None:
    """Show the formula of the figure's quantity, if it has one."""
    if text := figure_words(key).formula:
        st.caption(text)


def about(page: str, chart: Chart, *, with_page: bool = False) -> None:
    """Show how to read a figure, or else the words of its page.

    Effects of finite width, terms and numbers follow.

    Pages show how to read a figure below it.
    """
    key = f"{page}.{chart.name}"
    words = veiled_words(key) if chart.is_veiled else figure_words(key)
    panel = st.popover(
        ABOUT,
        icon=":material/info:",
        type="tertiary",
        width="content",
        key=f"{page}.{chart.key}.{OPENED}",
        on_change="rerun",
    )
    if not panel.open:
        return
    with panel:
        for heading in (SHOWS, MEASURED, CHANGES) if with_page else ():
            if has_prose(page, heading):
                st.markdown(titled_prose(page, heading))
        if not with_page:
            st.markdown(titled(words.heading, how_to_read(words, chart, in_app=True)))
        st.markdown(titled(FINITE, words.finite_width))
        with st.container(horizontal=True, gap="small"):
            for name in words.terms:
                st.page_link(
                    "pages/glossary.py", label=glossary()[name].title, query_params={"term": name}
                )
        st.markdown("**The numbers**")
        st.dataframe(readable(chart.rows), hide_index=True, alt=without_marks(chart.takeaway))


def things_to_try(page: str) -> None:
    """Show links that change settings of this page or open the next one.

    The open figure is not among them. Short runs start immediately.
    """
    shown = st.query_params.to_dict().items()
    links = {}
    for number, link in enumerate(try_links(page)):
        is_open = link.page == page and link.query.items() <= shown
        if not is_open:
            links[number] = link
    if not links:
        return
    st.markdown("**Try**")
    for number, link in links.items():
        # Not links: inside a fragment, Streamlit drops the query of links to the same page.
        if st.button(
            link.label,
            key=f"{page}.try.{number}",
            type="tertiary",
            icon=":material/arrow_forward:",
        ):
            open_and_run(link.page, link.query)


def open_and_run(page: str, query: Mapping[str, str]) -> None:
    """Open a page with these settings; a short run starts immediately."""
    st.session_state[TRIED] = page
    st.switch_page(page_script(page), query_params=query)


def page_answers(page: str) -> None:
    """Show the page's texts on its figures and on the effects of finite width."""
    for column, heading in zip(st.columns(2, gap="medium"), (SHOWS, CHANGES), strict=True):
        column.markdown(titled_prose(page, heading))


def provenance_footer(result: ResultValue) -> None:
    """Show the provenance below a page's figures."""
    st.caption(plain(provenance_sentence(result)))


def words_table(rows: Sequence[Mapping[str, str]], caption: str) -> None:
    """Show rows, with the first column as their names.

    Every cell names its column, ``m^{−1/2}`` has a superscript.
    """
    if not rows:
        return
    head = "".join(f'<th scope="col">{_raised(name)}</th>' for name in rows[0])
    body = []
    for row in rows:
        (_, first), *others = row.items()
        cells = "".join(
            f'<td data-label="{html.escape(name)}"><span>{_raised(text)}</span></td>'
            for name, text in others
        )
        body.append(f'<tr><th scope="row">{_raised(first)}</th>{cells}</tr>')
    st.html(
        f'<table class="words"><caption>{html.escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table>"
    )


def _raised(text: str) -> str:
    return re.sub(r"\^\{([^}]*)\}", r"<sup>\1</sup>", html.escape(text))
