"""Two networks side by side: what they look like, how far their kernels move, and towards what."""

import plotly.graph_objects as go
import streamlit as st

from dashboard.charts.style import output_title, pair_styles
from dashboard.components import session
from dashboard.components.chart import chart, chooser
from dashboard.components.forms import Group, SpecForm
from dashboard.components.once import once
from dashboard.views.architectures import figures as figures
from dashboard.views.architectures.comparison import check_both
from dashboard.views.architectures.kernels import kernels
from dashboard.views.architectures.networks import networks
from dashboard.views.architectures.pair_panel import PairShown, attach_pair, job_query, live_pair, pair_bar
from dashboard.words.pages import CHANGES, SHOWS, says
from dashboard.words.sentences import typeset
from ntk_core.pairs import PAIRS, PARTS

PAGE = "architectures"
TITLE = "Which architectures become linear?"
SHARED = ("widths", "outputs", "num_seeds", "seed", "infinite_width")
GROUPS = (
    *(Group(f"Network {part.upper()}", (f"{part}.",)) for part in PARTS),
    Group("Widths and seeds", SHARED, expanded=False),
    Group("Training", ("training.",), expanded=False),
    Group("Data", ("dataset.",), expanded=False),
)


def draw(shown: PairShown) -> None:
    """Sweeps, kernels and spectra of both networks, each with its words and numbers."""
    points = {part: of_part.points for part, of_part in shown.items()}
    first = next(iter(shown.values()))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("Against width, behind the", anchor=False, width="content")
        output = chooser("Output φ", first.spec.outputs, output_title, key=f"{PAGE}.output", pixels=160, last=False)
    kinds = {part: of_part.spec.architecture.kind for part, of_part in shown.items()}
    identity = tuple(of_part.identity for of_part in shown.values())
    measures, rows = figures.measures(points, output), figures.against_width_rows(points, output)
    styles = pair_styles(kinds, output)

    def sweeps(output: str) -> list[go.Figure]:
        return [figures.against_width(points, output, first.spec.widths, styles, each) for each in measures]

    drawings = once(f"{PAGE}.sweeps", identity, sweeps, output)
    for column, measure, figure in zip(st.columns(2, gap="medium"), measures, drawings, strict=False):
        with column:
            words = figures.takeaway(points, output, measure)
            chart(figure, f"{PAGE}.{measure.name}", words, rows, figures.caption(points, output, measure))
    for column, heading in zip(st.columns(2, gap="medium"), (SHOWS, CHANGES), strict=True):
        column.markdown(says(PAGE, heading))
    kernels(PAGE, identity, points, output, styles, first.spec.dataset.num_samples)


def show() -> None:
    """The page."""
    address, job_pair = attach_pair(PAGE, session.new_address(PAGE))
    form = SpecForm(PAGE, tuple(PAIRS), address, job_pair, presets=PAIRS, check=check_both)
    with st.sidebar:
        form.widgets(GROUPS)
    st.title(TITLE, anchor=False)
    st.markdown(f"{typeset(form.preset.claim)} *{form.preset.source}.*", help=form.preset.our_choice)
    form.notes_elsewhere()
    pair_bar(PAGE, form)
    session.show_address(PAGE, {**form.query(), **job_query(PAGE)})
    if form.spec is not None:
        networks(PAGE, form.spec)
    live_pair(PAGE, TITLE, form, draw)
