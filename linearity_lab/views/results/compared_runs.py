"""Two to four runs of one experiment in one figure."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.comparison import comparison_of
from linearity_lab.components.chart import Choice, choose, show_chart, shown_charts
from linearity_lab.components.export import Taken, export_menu
from linearity_lab.components.words_table import words_table
from linearity_lab.views.results.own_run import own_run
from linearity_lab.views.results.run_cards import title_of
from linearity_lab.views.results.run_comparison import lines_of, measures_of, overlay
from linearity_lab.views.results.stored_runs import file_of_runs, shared_store
from linearity_lab.words.markdown import plain
from linearity_lab.words.run_words import LETTERS, differing, labels
from ntk_core.runs import ResultValue


def compared_runs(page: str, digests: Sequence[str]) -> None:
    """The figure of these runs, or why there is none; a single one where no page shows it."""
    if len(digests) == 1:
        own_run(page, digests[0])
    if not 2 <= len(digests) <= len(LETTERS):
        if len(digests) > len(LETTERS):
            st.caption("Up to four runs of one experiment are compared in a figure.")
        return
    found = [shared_store().result(digest) for digest in digests]
    results = [result for result in found if result is not None and result.points]
    if len(results) < len(digests):
        names = ", ".join(digest[:8] for digest, result in zip(digests, found, strict=True) if result is None)
        st.caption(plain(f"A run without a result cannot be compared ({names or 'no points'}): open it and press Run."))
        return
    experiments = {result.spec.experiment for result in results}
    ways = [comparison_of(result.spec) for result in results]
    if len(experiments) > 1 or any(way != ways[0] for way in ways):
        st.caption("Only runs with the same measure can share a figure.")
        return
    _figure(page, results)


def export_chosen(digests: Sequence[str], charts: Mapping[str, Chart]) -> None:
    """The chosen runs as a file; and, where there are few, each of them and the figure that compares them."""
    few = digests if len(digests) <= len(LETTERS) else ()
    found = [result for result in map(shared_store().result, few) if result is not None]
    taken = [
        Taken(f"run-{letter}", result.spec, result, f"Run {letter}")
        for letter, result in zip(LETTERS, found, strict=False)
    ]
    stored = partial(file_of_runs, list(digests)) if digests else None
    export_menu("chosen-runs", "Runs compared", taken, charts, stored)


def _figure(page: str, results: Sequence[ResultValue]) -> None:
    runs = list(zip(labels([result.spec for result in results]), results, strict=True))
    how = comparison_of(results[0].spec)
    axes = list(how.axes)
    common = [line for line in lines_of(runs, how) if all(line in lines_of([run], how) for run in runs)]
    several: list[Any] = [None] if len(lines_of(runs, how)) > 1 else []
    lines = [*common, *several] if common else several  # one line that only some runs have would hide the others
    with st.container(horizontal=True, vertical_alignment="center"):
        measure, line, *others = choose(
            page,
            f"{title_of(results[0].spec.experiment)} compared",
            Choice("measure", "Measure", measures_of(runs, how), how.measures.__getitem__, 260),
            Choice("line", "Line", lines, lambda line: "all lines" if line is None else how.line_words(line), 260),
            *([Choice("axis", "Against", axes, lambda each: each.title, 180)] if len(axes) > 1 else []),
        )
    with shown_charts(result.spec for _, result in runs):
        show_chart(page, overlay(runs, others[0] if others else axes[0], measure, line))
    _differences(results)  # below, so that the figure is complete on the first screen


def _differences(results: Sequence[ResultValue]) -> None:
    """The settings in which the runs differ, a column per run."""
    found = differing([result.spec for result in results])
    rows = [
        {"Setting": title} | dict(zip(LETTERS, (each or "–" for each in texts), strict=False))
        for title, texts in found.items()
    ]
    words_table(rows, "Settings that differ")
