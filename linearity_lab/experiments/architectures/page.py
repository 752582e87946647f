"""Networks side by side: drawings, kernel change, and distance to the infinite-width kernel."""

from dataclasses import replace
from functools import partial

import streamlit as st

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.lines import GROWN_AXES
from linearity_lab.charts.style import compared_styles
from linearity_lab.dashboard.chart import WIDTH, Choice, Panel, output_choice, show_in_pairs
from linearity_lab.dashboard.experiment_page import ExperimentPage
from linearity_lab.dashboard.forms import SpecForm
from linearity_lab.dashboard.shown import Shown, drawn_once, whole_points
from linearity_lab.experiments.architectures import figures
from linearity_lab.experiments.architectures.network_drawing import drawn, size_rows
from linearity_lab.experiments.architectures.point import (
    LETTERS,
    MAX_KEPT_SAMPLES,
    ArchitecturesPoint,
    ArchitecturesSpec,
)
from linearity_lab.networks.spec import grown_size
from ntk_core.numbers import width_label

Runs = Shown[ArchitecturesSpec, ArchitecturesPoint]
WIDTH_IS = {
    "num_heads": "m heads",
    "head_dim": "head dimension m",
    "mlp_width": "m neurons in its MLPs",
    "rank": "rank m",
}
TABS = {"change": "Kernel change", "distance": "Distance to infinite width"}


def draw(shown: Runs) -> list[Panel]:
    """Draw sweeps, kernels and spectra of the networks."""
    spec = shown.spec
    points = {
        each: own
        for each in spec.networks
        if (own := [p for p in shown.points if p.network == each])
    }
    grown = grown_size(spec.architectures)
    against = GROWN_AXES[grown].title.rpartition(" ")[0] if grown in GROWN_AXES else "width"
    (output,) = shown.choose(f"Against {against}, with the", output_choice(spec.outputs, 160))
    measures = figures.measures(points, output)
    styles = compared_styles(
        {letter: network.kind for letter, network in spec.networks.items()}, output
    )
    styles |= {
        letter: replace(styles[letter], title=f"{styles[letter].title}, {WIDTH_IS[network.grown]}")
        for letter, network in spec.networks.items()
        if network.grown and not grown  # else the axis names it
    }

    def sweeps(_: Runs, output: str) -> list[Chart]:
        return [
            figures.against_width(points, output, spec.widths, styles, each, grown)
            for each in measures
        ]

    found = shown.panels(sweeps, output, titles=TABS)
    kept = figures.kept_at(points, output)
    if kept or spec.dataset.num_samples > MAX_KEPT_SAMPLES:
        found += [Panel("Kernels and spectra", partial(_kernels, shown, kept, styles, output))]
    return found


def networks(form: SpecForm[ArchitecturesSpec]) -> None:
    """Show the networks as boxes, with their sizes at each width; opened by a click."""
    spec = form.spec
    if spec is None:
        return
    with st.expander("The networks, drawn", icon=":material/account_tree:"):
        drawings = [
            drawn_once(f"{PAGE.name}.drawing", spec, partial(drawn, spec), letter)
            for letter in spec.networks
        ]
        show_in_pairs(PAGE.name, drawings)
        rows = size_rows(spec)
        in_thousands = {
            name: st.column_config.NumberColumn(format="localized")
            for row in rows[:1]
            for name in row
        }
        words = "Parameters and smallest width of the networks, at each width"
        st.dataframe(rows, hide_index=True, column_config=in_thousands, alt=words)


def _kernels(
    shown: Runs,
    kept: dict[int, dict[str, figures.KernelSnapshot]],
    styles: figures.Styles,
    output: str,
) -> list[Chart]:
    if not kept:
        st.caption(f"Kernels are stored and drawn for up to {MAX_KEPT_SAMPLES} training points.")
        return []
    widths = Choice("shown_width", "Width m", list(kept), width_label, 110, begins=-1, axis=WIDTH)
    (width,) = shown.choose("Kernels K at width", widths)

    def at(width: int, output: str) -> list[Chart]:
        # Large kernels are beside the points; only those of the drawn width are read.
        light = [point for point in shown.points if point.width == width]
        points: dict[str, list[ArchitecturesPoint]] = {}
        for point in whole_points(shown.spec, light):
            points.setdefault(point.network, []).append(point)
        snapshots = figures.kept_at(points, output)[width]
        if any(snapshot.is_apart for snapshot in snapshots.values()):
            return []  # the store has lost them
        heatmaps = [
            figures.heatmaps(snapshot, letter, width) for letter, snapshot in snapshots.items()
        ]
        return [*heatmaps, figures.spectra(snapshots, styles)]

    return shown.drawn("kernels", at, width, output)


PAGE = ExperimentPage(
    "architectures",
    draw,
    controls=("architectures.0.kind", "architectures.1.kind", "widths", "num_seeds"),
    groups={
        **{
            f"Network {letter}": (f"architectures.{index}.",)
            for index, letter in enumerate(LETTERS)
        },
        "Widths and seeds": ("architectures", "widths"),
    },
    between=networks,
)
show = PAGE.show
