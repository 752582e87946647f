"""One selected run in full, or several overlaid in one figure with their differences."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

from linearity_lab.charts.axes import beginning
from linearity_lab.charts.chart import Chart, ComparedAxis, Comparison, Values, comparison_of
from linearity_lab.charts.choices import Choice
from linearity_lab.charts.figure import main_chart, shown_result
from linearity_lab.charts.lines import Axis as SweepAxis
from linearity_lab.charts.lines import Dot, Line
from linearity_lab.charts.style import Style, network_style, nth_style
from linearity_lab.charts.sweep import left_out, mean_rows, sweep, takeaway
from linearity_lab.charts.training import Curve, Row, along_training
from linearity_lab.dashboard.chart import Figures, choose, show_chart
from linearity_lab.dashboard.explain import provenance_footer, words_table
from linearity_lab.dashboard.export_menu import Taken, export_menu
from linearity_lab.dashboard.jobs.profile import profile
from linearity_lab.dashboard.pages.results.run_list import title_of
from linearity_lab.dashboard.pages.results.stored_runs import file_of_runs, shared_store
from linearity_lab.experiments.own_model.point import (
    OwnModelResult,
    found_words,
    layer_rows,
    verdict,
)
from linearity_lab.runs import ResultValue
from linearity_lab.words.markdown import plain
from linearity_lab.words.run_words import LETTERS, differing, labels


def own_run(figures: Figures, run: str) -> None:
    """Show verdict, figure, layers, check and origin of a custom model; nothing for other runs."""
    result = _light_result(run)
    if not isinstance(result, OwnModelResult) or not result.points:
        return
    spec = result.spec
    first = result.points[0]
    st.subheader(plain(f"{spec.file}:{spec.function}"), anchor=False)
    st.markdown(plain(beginning(verdict(result.points))))
    if len(result.points) > 1:
        show_chart(replace(figures, specs=[spec]), main_chart(shown_result(result)))
    words_table(layer_rows(first), f"Layers and routes at width {first.width:,}")
    st.caption(plain(found_words(first)))
    provenance_footer(result)
    st.caption(
        plain(
            f"The file's SHA-256 is {spec.sha256}. It was run by the command line; nothing here "
            "can run it."
        )
    )


def stored_numbers(page: str, run: str) -> None:
    """Show the numbers of a run whose settings this version cannot read; nothing for other runs."""
    store = shared_store()
    if sum(store.stored_bytes(run).values()) > profile().max_result_bytes:
        return
    known = store.known_run(run)
    if known is None:
        return
    st.info(plain(known.sentence))
    rows = [
        {"Value": f"{key} {name}", "As stored": str(value)}
        for key, name, value in itertools.islice(known.values(), MOST_VALUES)
    ]
    words_table(rows, f"The first {len(rows)} values" if len(rows) == MOST_VALUES else "Values")
    name = f"run-{run[:8]}.csv"
    st.download_button("Download all values (CSV)", known.csv(), name, key=f"{page}.stored-numbers")


def _light_result(run: str) -> ResultValue | None:
    """Return a stored result without the arrays beside its points.

    It is None if its size may not be shown here.
    """
    return shared_store().result(run, arrays=False, max_bytes=profile().max_result_bytes)


Runs = Sequence[tuple[str, ResultValue]]
LineKey = tuple[object, ...]  # a run's values of the columns that name a line
MOST_LINES = 8
MOST_VALUES = 200  # of a run of another version, in its table


def lines_of(runs: Runs, how: Comparison) -> list[LineKey]:
    """Return the lines, those of most runs first."""
    found: dict[LineKey, int] = {}
    for _, result in runs:
        for line in dict.fromkeys(tuple(row[name] for name in how.lines) for row in result.rows()):
            found[line] = found.get(line, 0) + 1
    return sorted(found, key=lambda line: -found[line])


def measures_of(runs: Runs, how: Comparison) -> list[str]:
    """Return the measures that occur in the runs."""
    rows = [row for _, result in runs for row in result.rows()]
    occurring = []
    for name in how.measures:
        if any(_is_number(row.get(name)) for row in rows):
            occurring.append(name)
    return occurring


def every_line(
    runs: Runs, how: Comparison, axis: ComparedAxis
) -> list[tuple[str, ResultValue, LineKey]]:
    """(title, result, line) of each line of each run, at most ``MOST_LINES``.

    Runs of one line keep their labels.
    """
    found = []
    for label, result in runs:
        own = [
            line for line in lines_of([(label, result)], how) if _rows_on(result, how, axis, line)
        ]
        found += [
            (f"{label}, {how.line_words(line)}" if len(own) > 1 else label, result, line)
            for line in own
        ]
    return found[:MOST_LINES]


def overlay(runs: Runs, axis: ComparedAxis, measure: str, line: LineKey | None) -> Chart:
    """Draw one measure of each run: means over converged seeds, or one curve per seed.

    Without a ``line``, draw all lines of every run by name.
    """
    how = comparison_of(runs[0][1].spec)
    drawn = (
        every_line(runs, how, axis)
        if line is None
        else [(label, result, line) for label, result in runs]
    )
    styles = _styles(drawn, how)
    found = []
    for style, (_, result, own) in zip(styles, drawn, strict=True):
        rows_on = _rows_on(result, how, axis, own)
        found.append((style, [row for row in rows_on if _is_number(row.get(measure))]))
    title = how.measures[measure]
    values = [row[measure] for _, rows in found for row in rows]
    is_log = bool(values) and min(values) > 0
    lines = [
        Line(style, [_dot(row, axis.column, measure) for row in rows], fit=not axis.along_time)
        for style, rows in found
    ]
    swept = SweepAxis(axis.title, axis.letter, column=axis.column, values_name=axis.values_name)
    if not axis.along_time:
        chart = sweep(lines, swept, title, measure, is_log=is_log, of="run", name="compared")
        return replace(chart, caption=[chart.takeaway, *chart.caption])
    curves = []
    for style, rows in found:
        by_seed: dict[int | None, list[Values]] = {}
        for row in rows:
            by_seed.setdefault(row["seed"], []).append(row)
        for seed, of_seed in by_seed.items():
            x = [row[axis.column] for row in of_seed]
            y = [row[measure] for row in of_seed]
            curves.append(Curve(style, x, y, title, seed))
    figure = along_training(
        curves, (Row(title, "log" if is_log else "linear"),), axis.title, log_x=False
    )
    words = takeaway(lines, swept, title)
    rows = mean_rows(lines, swept, measure, "run")
    return Chart(figure, words, rows, [words, *left_out(lines, swept)], "compared")


def _styles(drawn: Sequence[tuple[str, ResultValue, LineKey]], how: Comparison) -> list[Style]:
    """Style different networks as everywhere; runs of one network get the styles of runs."""
    networks = [
        (
            getattr(getattr(result.spec, "architecture", None), "kind", ""),
            str(dict(zip(how.lines, own, strict=False)).get("output", "linear")),
        )
        for _, result, own in drawn
    ]
    if len(set(networks)) < 2 or ("", "linear") in networks:
        return [nth_style(index, label, "run") for index, (label, *_) in enumerate(drawn)]
    return [
        network_style(*network, label, networks[:index].count(network))
        for index, (network, (label, *_)) in enumerate(zip(networks, drawn, strict=True))
    ]


def _rows_on(
    result: ResultValue, how: Comparison, axis: ComparedAxis, line: LineKey
) -> list[Values]:
    found = []
    for row in result.rows():
        is_of_line = tuple(row[name] for name in how.lines) == line
        if is_of_line and axis.keep(row, result) and _is_number(row[axis.column]):
            found.append(row)
    return found


def _dot(row: Values, column: str, measure: str) -> Dot:
    counts = row.get("outcome") in (None, "converged") and row.get("converged") in (None, True)
    outcome = row.get("outcome") if not counts and row.get("outcome") != "converged" else ""
    why = "" if counts else "did not converge"
    return Dot(row[column], row[measure], row.get("seed", 0), why, outcome=outcome or "")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def compared_runs(figures: Figures, digests: Sequence[str]) -> None:
    """Show the figure of these runs, or why there is none."""
    if len(digests) == 1:
        own_run(figures, digests[0])
        stored_numbers(figures.page, digests[0])
    if not 2 <= len(digests) <= len(LETTERS):
        if len(digests) > len(LETTERS):
            st.caption("Up to four runs of one experiment are compared in a figure.")
        return
    found = [_light_result(digest) for digest in digests]
    results = [result for result in found if result is not None and result.points]
    if len(results) < len(digests):
        names = ", ".join(
            digest[:8] for digest, result in zip(digests, found, strict=True) if result is None
        )
        st.caption(
            plain(
                f"A run without a result cannot be compared ({names or 'no points'}): open it and "
                "press Run."
            )
        )
        return
    experiments = {result.spec.experiment for result in results}
    ways = [comparison_of(result.spec) for result in results]
    if len(experiments) > 1 or any(way != ways[0] for way in ways):
        st.caption("Only runs with the same measure can share a figure.")
        return
    _figure(figures, results)


def export_chosen(digests: Sequence[str], charts: Mapping[str, Chart]) -> None:
    """Offer exports of the chosen runs, and of their figure if they are few."""
    few = digests if len(digests) <= len(LETTERS) else ()
    found = [result for result in map(_light_result, few) if result is not None]
    taken = [
        Taken(f"run-{letter}", result.spec, result, f"Run {letter}")
        for letter, result in zip(LETTERS, found, strict=False)
    ]
    stored = partial(file_of_runs, list(digests)) if digests else None
    export_menu("chosen-runs", "Runs compared", taken, charts, stored)


def _figure(figures: Figures, results: Sequence[ResultValue]) -> None:
    runs = list(zip(labels([result.spec for result in results]), results, strict=True))
    how = comparison_of(results[0].spec)
    axes = list(how.axes)
    all_lines = lines_of(runs, how)
    of_each = [lines_of([run], how) for run in runs]
    # A line that only some runs have would hide the others.
    of_all = set(all_lines).intersection(*of_each)
    lines: list[LineKey | None] = [line for line in all_lines if line in of_all]
    if len(all_lines) > 1:
        lines.append(None)

    def choices() -> list[str | Choice]:
        return [
            f"{title_of(results[0].spec.experiment)} compared",
            Choice("measure", "Measure", measures_of(runs, how), how.measures.__getitem__, 260),
            Choice(
                "line",
                "Line",
                lines,
                lambda line: "all lines" if line is None else how.line_words(line),
                260,
            ),
            *(
                [Choice("axis", "Against", axes, lambda each: each.title, 180)]
                if len(axes) > 1
                else []
            ),
        ]

    (chosen,) = choose(figures, [choices]).values()
    measure, line, *others = chosen
    chart = overlay(runs, others[0] if others else axes[0], measure, line)
    show_chart(replace(figures, specs=[result.spec for _, result in runs]), chart)
    imported = [
        letter for letter, result in zip(LETTERS, results, strict=False) if result.num_imported
    ]
    if imported:
        st.caption(f"Imported from a file, not computed here: run {', '.join(imported)}.")
    # Below, so that the figure is complete on the first screen.
    rows = []
    specs = [result.spec for result in results]
    for title, texts in differing(specs).items():
        values = [text or "–" for text in texts]
        rows.append({"Setting": title} | dict(zip(LETTERS, values, strict=False)))
    words_table(rows, "Settings that differ")
