"""Kernels of both networks of a pair at one width, and their spectra."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import plotly.graph_objects as go
import streamlit as st

from dashboard.charts.style import width_label
from dashboard.components.chart import chart, chooser
from dashboard.components.once import once
from dashboard.views.architectures import figures as figures
from ntk_core.pairs import MAX_KEPT_SAMPLES


def kernels(
    page: str, identity: object, points: figures.Points, output: str, styles: figures.Styles, num_samples: int
) -> None:
    """Heatmaps before and after training and spectra at a width to choose; ``identity`` is that of the points."""
    kept = figures.kept_at(points, output)
    if not kept:
        if num_samples > MAX_KEPT_SAMPLES:
            st.caption(f"Kernels are kept and drawn for up to {MAX_KEPT_SAMPLES} training points.")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("Kernels K at width", anchor=False, width="content")
        width = chooser("Width m", list(kept), width_label, key=f"{page}.shown_width", pixels=110)
    drawn = once(f"{page}.kernels", (identity, output), partial(_drawn, kept, styles), width)
    for column, (part, snapshot) in zip(st.columns(2, gap="medium"), kept[width].items(), strict=False):
        with column:
            words = figures.heatmap_words(snapshot, part, width)
            chart(drawn[part], f"{page}.kernel_{part}", words, figures.kernel_rows(snapshot), [words])
    words = figures.spectra_words(kept[width])
    chart(drawn["spectra"], f"{page}.spectra", words, figures.spectra_rows(kept[width]))


def _drawn(kept: Mapping[int, figures.Snapshots], styles: figures.Styles, width: int) -> dict[str, go.Figure]:
    """The heatmaps by network, and the spectra."""
    heatmaps = {part: figures.heatmaps(snapshot, part) for part, snapshot in kept[width].items()}
    return {**heatmaps, "spectra": figures.spectra(kept[width], styles)}
