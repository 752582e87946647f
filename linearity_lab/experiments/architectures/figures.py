"""Networks side by side: kernel change, distance to infinite width, kernels and their spectra."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from linearity_lab.charts.axes import beginning, drawn_values, finish, log_ticks, rate_words
from linearity_lab.charts.chart import Chart
from linearity_lab.charts.choices import Choice, output_choice
from linearity_lab.charts.figure import Figure, Shown
from linearity_lab.charts.labels import MOST_CURVES, hide
from linearity_lab.charts.lines import GROWN_AXES, Axis, Line, RunNumber, trained_dot, width_axis
from linearity_lab.charts.style import FONT_SIZE, GUIDE_COLOR, Style, compared_styles, distinct
from linearity_lab.charts.sweep import sweep
from linearity_lab.experiments.architectures.point import (
    MAX_KEPT_SAMPLES,
    ArchitecturesPoint,
    ArchitecturesSpec,
)
from linearity_lab.experiments.kernel_change.linear_model import LINEAR_MODEL_TITLE
from linearity_lab.experiments.kernel_change.point import (
    KernelChangeRun,
    KernelChanges,
    KernelSnapshot,
)
from linearity_lab.networks.differences import differences
from linearity_lab.networks.spec import grown_size
from ntk_core.numbers import number, width_label

Runs = Shown[ArchitecturesSpec, ArchitecturesPoint]

PointsOfNetworks = Mapping[str, Sequence[KernelChanges]]  # by the networks' letters
Snapshots = Mapping[str, KernelSnapshot]
Styles = Mapping[str, Style]
HEATMAP_HEIGHT = 300
WIDTH_IS = {
    "num_heads": "m heads",
    "head_dim": "head dimension m",
    "mlp_width": "m neurons in its MLPs",
    "rank": "rank m",
}
INFINITE = "infinite"
MEASURES = {
    "change": RunNumber[KernelChangeRun]("kernel change ΔK", "ΔK", lambda run: run.sup_change),
    "distance": RunNumber[KernelChangeRun](
        "‖K(w<sub>0</sub>) − K<sub>∞</sub>‖ / ‖K<sub>∞</sub>‖",
        "distance to K∞",
        lambda run: run.infinite_distance,
        before_training=True,
    ),
}


def against_width(
    points: PointsOfNetworks,
    output: str,
    widths: Sequence[int],
    styles: Styles,
    measure: str = "change",
    grown: str = "",
) -> Chart:
    """Draw a measure of every network against its width or grown size.

    Name unmeasured networks below.
    """
    wanted = MEASURES[measure]
    lines = []
    for letter, found in points.items():
        runs = [(point.width, run) for point in found for run in point.of(output)]
        parameters: dict[float, dict[str, object]] = {
            point.width: {"trained parameters p": point.num_params} for point in found
        }
        dots = wanted.dots(runs, lambda run: f"η = {rate_words([run.learning_rate])}")
        lines.append(Line(styles[letter], dots, more=parameters))
    if output == "softmax" and measure == "change":
        lines += _linear_model_lines(points, styles)
    missing = [
        letter
        for letter, found in points.items()
        if measure not in measures({letter: found}, output)
    ]
    return sweep(
        lines,
        replace(GROWN_AXES.get(grown, width_axis()), values=widths),
        wanted.title,
        wanted.symbol,
        slopes=(-0.5,) if wanted.before_training else (-0.5, -1.0),
        of="network",
        caption=[
            f"Network {letter}: no infinite-width kernel is known or requested."
            for letter in missing
        ],
    )


def _linear_model_lines(points: PointsOfNetworks, styles: Styles) -> list[Line]:
    """Return ΔK of softmax(f_lin) of every trained network.

    Its own kernel is constant.
    """
    lines = []
    for letter, found in points.items():
        dots = [
            trained_dot(point.width, run.linear_model_sup, run, "")
            for point in found
            for run in point.of("softmax")
            if run.linear_model_change
        ]
        style = styles[letter]
        title = f"{style.title}, {LINEAR_MODEL_TITLE}"
        if dots:
            lines.append(Line(replace(style, title=title, dash="longdashdot"), dots))
    return lines


def measures(points: PointsOfNetworks, output: str) -> tuple[str, ...]:
    """Return the measures to draw against width; the distance only if it was measured."""
    runs = [run for found in points.values() for point in found for run in point.of(output)]
    return tuple(
        name for name, measure in MEASURES.items() if name == "change" or measure.has(runs)
    )


def kept_at(points: PointsOfNetworks, output: str) -> dict[int, dict[str, KernelSnapshot]]:
    """Map ascending widths to kernels by network.

    Every network has a stored kernel at these widths.
    """
    kept: dict[int, dict[str, KernelSnapshot]] = {}
    for letter, found in points.items():
        for point in found:
            for snapshot in point.snapshots:
                if snapshot.output == output:
                    kept.setdefault(point.width, {})[letter] = snapshot
    return {width: kept[width] for width in sorted(kept) if len(kept[width]) == len(points)}


def heatmaps(snapshot: KernelSnapshot, letter: str, width: int) -> Chart:
    """Draw K before and after training and at infinite width, each divided by its mean diagonal.

    Numbers state the size of each kernel; a common color scale shows its shape.
    """
    matrices = {"before": np.asarray(snapshot.initial), "after": np.asarray(snapshot.final)}
    if snapshot.infinite is not None:
        matrices[INFINITE] = np.asarray(snapshot.infinite)
    words = _kernel_words(matrices, letter, width)
    rows = [_kernel_row(name, matrix) for name, matrix in matrices.items()]
    label = f"Tangent kernel of network {letter} at width {width:,}"
    figure = _heatmap_panels(matrices, letter)
    return Chart(figure, words, rows, [words], f"kernel_{letter.lower()}", label=label)


Matrices = Mapping[str, np.ndarray]  # name of a kernel → its entries, (n, n)


def _heatmap_panels(matrices: Matrices, letter: str) -> go.Figure:
    """Draw each kernel, divided by its mean diagonal, in one color scale."""
    scales = {name: max(_mean_diagonal(matrix), 1e-30) for name, matrix in matrices.items()}
    titles = [f"{letter} {name}<br>× {number(scale)}" for name, scale in scales.items()]
    figure = make_subplots(
        rows=1, cols=len(matrices), subplot_titles=titles, horizontal_spacing=0.03
    )
    for column, (name, matrix) in enumerate(matrices.items(), start=1):
        figure.add_heatmap(
            z=matrix / scales[name],
            customdata=matrix,
            coloraxis="coloraxis",
            hovertemplate=f"{name}<br>samples %{{y}} and %{{x}}<br>K = "
            f"%{{customdata:,.3~r}}<extra></extra>",
            row=1,
            col=column,
        )
        below = "" if column == 1 else str(column)
        figure.update_yaxes(
            scaleanchor=f"x{below}", autorange="reversed", constrain="domain", row=1, col=column
        )
        figure.update_xaxes(constrain="domain", row=1, col=column)
    figure.update_xaxes(showticklabels=False, ticks="")
    figure.update_yaxes(showticklabels=False, ticks="", constraintoward="top")
    figure.update_annotations(font_size=FONT_SIZE - 1)
    scaled = np.concatenate([(matrix / scales[name]).ravel() for name, matrix in matrices.items()])
    bar = {"thickness": 10, "tickfont": {"size": 11}, "nticks": 4, "tickformat": ".2~g"}
    figure.update_layout(
        height=HEATMAP_HEIGHT,
        modebar={"color": GUIDE_COLOR},
        margin={"l": 4, "r": 4, "t": 76, "b": 4},
        # A few extreme samples would leave one color to all others.
        coloraxis={
            "colorscale": "Cividis",
            "colorbar": bar,
            "cmin": float(np.percentile(scaled, 1)),
            "cmax": float(np.percentile(scaled, 99)),
        },
    )
    return figure


def _mean_diagonal(matrix: np.ndarray) -> float:
    return float(np.trace(matrix)) / len(matrix)


def _kernel_words(matrices: Matrices, letter: str, width: int) -> str:
    """Describe the kernels of a network, and how far apart they are."""
    before = matrices["before"]
    change = float(np.linalg.norm(matrices["after"] - before) / np.linalg.norm(before))
    words = (
        f"Tangent kernel of network {letter} at width {width:,} before and after training. It is "
        "averaged over outputs and divided by the mean diagonal entry (printed above). Samples are "
        f"ordered by class. Undivided, it changed by {number(change)} of its norm."
    )
    limit = matrices.get(INFINITE)
    if limit is None:
        return words
    distance = float(np.linalg.norm(before - limit) / np.linalg.norm(limit))
    return (
        f"{words} Before training it is {number(distance)} from the infinite-width kernel, "
        "relative to its norm."
    )


def _kernel_row(name: str, matrix: np.ndarray) -> dict[str, object]:
    """Return the table row of a kernel."""
    num_samples = len(matrix)
    num_pairs = max(num_samples * (num_samples - 1), 1)
    return {
        "kernel": "infinite width" if name == INFINITE else name,
        "mean on the diagonal": _mean_diagonal(matrix),
        "mean off the diagonal": float(matrix.sum() - np.trace(matrix)) / num_pairs,
        "Frobenius norm": float(np.linalg.norm(matrix)),
    }


def spectra(snapshots: Snapshots, styles: Styles) -> Chart:
    """Draw descending eigenvalues of K.

    They are before training (open, thin), after it (filled), and of infinite width (dashed).

    Eigenvalues at rounding level, below 10⁻⁷ of the largest in single precision, are left out.
    """
    figure = go.Figure()
    rows: list[dict[str, object]] = []
    for letter, snapshot in snapshots.items():
        limit = _infinite_eigenvalues(snapshot)
        _add_spectra(figure, snapshot, limit, styles[letter])
        pairs = zip(snapshot.initial_eigenvalues, snapshot.final_eigenvalues, strict=True)
        for rank, (before, after) in enumerate(pairs):
            rows.append(
                {
                    "network": letter,
                    "index": rank + 1,
                    "before": before,
                    "after": after,
                    "infinite width": None if limit is None else float(limit[rank]),
                }
            )
    figure.update_xaxes(
        title="eigenvalue index", **log_ticks([x for trace in figure.data for x in trace.x], 0)
    )
    figure.update_yaxes(title="eigenvalue of K", **log_ticks(drawn_values(figure)))
    finish(figure)
    if len(figure.data) > MOST_CURVES:
        hide(figure, {trace.legendgroup: trace.name for trace in figure.data if trace.legendgroup})
    sentences = [
        f"Network {letter}: largest {number(kept.initial_eigenvalues[0], 3)} before and "
        f"{number(kept.final_eigenvalues[0], 3)} after, smallest "
        f"{number(kept.initial_eigenvalues[-1])} and {number(kept.final_eigenvalues[-1])}."
        for letter, kept in snapshots.items()
    ]
    words = "Eigenvalues of the tangent kernel before and after training. " + " ".join(sentences)
    label = "Eigenvalues of the tangent kernel before and after training"
    return Chart(figure, words, rows, name="spectra", label=label)


def _infinite_eigenvalues(snapshot: KernelSnapshot) -> np.ndarray | None:
    """Return the eigenvalues of K_∞ ⊗ I_C, descending: those of K_∞, each C-fold."""
    if snapshot.infinite is None:
        return None
    matrix = np.asarray(snapshot.infinite)
    num_outputs = len(snapshot.initial_eigenvalues) // len(matrix)
    symmetric = (matrix + matrix.T) / 2
    return np.repeat(np.linalg.eigvalsh(symmetric)[::-1], num_outputs)


def _add_spectra(
    figure: go.Figure, snapshot: KernelSnapshot, limit: np.ndarray | None, style: Style
) -> None:
    """Draw the eigenvalues of one network before and after training, and in the limit."""
    before = np.asarray(snapshot.initial_eigenvalues)
    after = np.asarray(snapshot.final_eigenvalues)
    # Name, eigenvalues, symbol, dash and line width.
    drawn: list[tuple[str, np.ndarray, str, str, float]] = [
        ("before", before, f"{style.symbol}-open", style.dash, 1),
        ("after", after, style.symbol, style.dash, 2),
    ]
    if limit is not None:
        drawn.append(("infinite width", limit, "", "dash", 2.5))
    for name, values, symbol, dash, thickness in drawn:
        is_resolved = values > 1e-7 * values.max()
        ranks = np.flatnonzero(is_resolved) + 1
        shown = values[is_resolved]
        title = f"{style.title} {name}"
        figure.add_scatter(
            x=ranks,
            y=shown,
            text=[number(value, 3) for value in shown],
            mode="lines+markers" if symbol else "lines",
            line={"color": style.color, "dash": dash, "width": thickness},
            marker={"color": style.color, "symbol": symbol, "size": 6} if symbol else None,
            name=title,
            legendgroup=None if symbol else title,
            hovertemplate=f"{title}<br>eigenvalue %{{x}}: %{{text}}<extra></extra>",
        )


def _points_by_network(shown: Runs) -> dict[str, list[ArchitecturesPoint]]:
    """Map the letters of networks to their points, in the order of the spec."""
    points: dict[str, list[ArchitecturesPoint]] = {}
    for letter in shown.spec.networks:
        own = [point for point in shown.points if point.network == letter]
        if own:
            points[letter] = own
    return points


def _styles(shown: Runs, output: str) -> Styles:
    """Return the styles of networks.

    Titles name what differs, and what the width is, unless the axis does.
    """
    networks = shown.spec.networks
    styles = compared_styles({letter: each.kind for letter, each in networks.items()}, output)
    is_named = bool(grown_size(shown.spec.architectures))
    for letter, network in networks.items():
        alike = [other for other in networks.values() if other.kind == network.kind]
        words = [WIDTH_IS[network.grown]] if network.grown and not is_named else []
        words += differences(network, alike, but=("width_is", "grows", network.grown))
        styles[letter] = replace(styles[letter], title=", ".join([styles[letter].title, *words]))
    return distinct(styles)


def _outputs(shown: Runs) -> list[str | Choice]:
    grown = grown_size(shown.spec.architectures)
    against = _without_symbol(GROWN_AXES[grown]) if grown in GROWN_AXES else "width"
    return [f"Against {against}, with the", output_choice(shown.spec.outputs, 160)]


def _sweep(shown: Runs, output: str, measure: str) -> list[Chart]:
    """Draw a measure against width; nothing if it was not measured with this output."""
    spec = shown.spec
    points = _points_by_network(shown)
    if measure not in measures(points, output):
        return []
    grown = grown_size(spec.architectures)
    return [against_width(points, output, spec.widths, _styles(shown, output), measure, grown)]


def _has_distance(shown: Runs) -> bool:
    points = _points_by_network(shown)
    return any("distance" in measures(points, output) for output in shown.spec.outputs)


def _kernel_widths(shown: Runs, output: str) -> list[str | Choice]:
    """Return the choice of a width with stored kernels; empty without any."""
    kept = list(kept_at(_points_by_network(shown), output))
    if not kept:
        return []
    swept = GROWN_AXES.get(grown_size(shown.spec.architectures), width_axis())
    title = beginning(swept.title)
    widths = Choice("shown_width", title, kept, width_label, 110, begins=-1, axis=swept.word)
    return [f"Kernels K at {_without_symbol(swept)}", widths]


def _without_symbol(axis: Axis) -> str:
    """Return the title of an axis without the symbol at its end."""
    return axis.title.rpartition(" ")[0]


def _points_of_width(shown: Runs, output: str, width: int = 0) -> list[ArchitecturesPoint]:
    return [point for point in shown.points if point.width == width]


def _kernels(shown: Runs, output: str, width: int = 0) -> list[Chart]:
    """Draw the stored kernels of one width and their spectra; nothing if they are missing."""
    snapshots = kept_at(_points_by_network(shown), output).get(width, {})
    if not snapshots or any(snapshot.is_apart for snapshot in snapshots.values()):
        return []
    maps = [heatmaps(snapshot, letter, width) for letter, snapshot in snapshots.items()]
    return [*maps, spectra(snapshots, _styles(shown, output))]


def _has_kernels(shown: Runs) -> bool:
    """Whether kernels are stored, or were too large to be, which the page states."""
    if shown.spec.dataset.num_samples > MAX_KEPT_SAMPLES:
        return True
    points = _points_by_network(shown)
    return any(kept_at(points, output) for output in shown.spec.outputs)


FIGURES = (
    Figure(
        "change",
        "Kernel change",
        choices=[_outputs],
        draw=lambda shown, output: _sweep(shown, output, "change"),
    ),
    Figure(
        "distance",
        "Distance to infinite width",
        choices=[_outputs],
        draw=lambda shown, output: _sweep(shown, output, "distance"),
        has_data=_has_distance,
    ),
    Figure(
        "kernels",
        "Kernels and spectra",
        choices=[_outputs, _kernel_widths],
        draw=_kernels,
        has_data=_has_kernels,
        with_arrays=_points_of_width,
    ),
)
