"""Lazy by scale and by width.

κ, kernel change and distances against the scale α and against the width m.
"""

from collections.abc import Iterable, Sequence

from linearity_lab.charts.axes import beginning
from linearity_lab.charts.chart import Chart, occurring
from linearity_lab.charts.lines import Axis, Line, RunNumber, width_axis
from linearity_lab.charts.style import Style, network_style, nth_style, output_title
from linearity_lab.charts.sweep import sweep
from linearity_lab.experiments.lazy.point import (
    COLUMNS,
    START_TITLES,
    LazyPoint,
    LazyRun,
    Swept,
    swept_points,
)
from linearity_lab.experiments.trained_sweep import along
from linearity_lab.runs.columns import table_rows
from ntk_core.numbers import num_runs, number, width_label

AXES: dict[Swept, Axis] = {"scale": Axis("scale α", "α"), "width": width_axis()}
KAPPA = RunNumber[LazyRun]("κ at w₀", "κ", lambda run: run.kappa, before_training=True)
CHANGE = RunNumber[LazyRun]("kernel change ΔK", "ΔK", lambda run: run.sup_change)
DISTANCE = RunNumber[LazyRun]("distance ‖w − w₀‖₂", "‖w − w₀‖₂", lambda run: run.distance)
LARGEST = RunNumber[LazyRun](
    "largest move ‖w − w₀‖_∞", "‖w − w₀‖<sub>∞</sub>", lambda run: run.largest_distance
)
CURVATURE = RunNumber[LazyRun](
    "curvature ‖H‖ / ‖∇F‖² at w₀",
    "‖H‖ / ‖∇F‖<sup>2</sup>",
    lambda run: run.curvature,
    before_training=True,
)
LEAST = (
    RunNumber[LazyRun]("", "least distance, all inputs", lambda run: run.least_distance[1]),
    RunNumber[LazyRun]("", "least distance, one input", lambda run: run.least_distance[0]),
)
HIDDEN = RunNumber[LazyRun]("feature change |Δh|", "|Δh|", lambda run: run.mean_hidden_change)
MEASURES = {each.title: each for each in (CHANGE, HIDDEN, KAPPA, DISTANCE, LARGEST, CURVATURE)}
BEHIND_F = RunNumber[LazyRun]("", "ΔK of α f", lambda run: run.pre_output_change)


def measure_style(measure: RunNumber[LazyRun]) -> Style:
    """Return the style of a measure among others."""
    return nth_style(
        (CHANGE, CURVATURE, HIDDEN, DISTANCE, LARGEST, KAPPA, *LEAST).index(measure), measure.symbol
    )


def nonlinear(points: Iterable[LazyPoint]) -> str:
    """Return the first nonlinear output, or the first output if all are linear."""
    outputs = occurring(points, "output")
    return next((output for output in outputs if output != "linear"), outputs[0])


def measured(points: Iterable[LazyPoint]) -> list[str]:
    """Return the titles of the measures; older results lack the change of features."""
    has_features = any(run.hidden_change for point in points for run in point.runs)
    return [title for title in MEASURES if has_features or title != HIDDEN.title]


def line(
    points: Sequence[LazyPoint],
    swept: Swept,
    output: str,
    start: str,
    measure: RunNumber[LazyRun],
    style: Style | None = None,
    richness: float = 0.0,
) -> Line:
    """Return a measure of runs against the swept setting.

    The runs have one output, start and richness.
    """
    dots = measure.dots(along(swept_points(points, swept, richness), output, start, by=swept))
    return Line(
        style or nth_style(list(START_TITLES).index(start), START_TITLES[start], "start"), dots
    )


def against(
    points: Sequence[LazyPoint], swept: Swept, output: str, measure: RunNumber[LazyRun]
) -> Chart:
    """Draw a measure of one output against the swept setting, a line for each start, log–log."""
    lines = [line(points, swept, output, start, measure) for start in occurring(points, "start")]
    caption = [f"{beginning(output_title(output))}, {_where(points, swept)}"]
    if swept == "scale":
        caption += _scaled_labels(points, output)
    return sweep(
        lines,
        AXES[swept],
        measure.title,
        measure.symbol,
        heading=f"Against {swept}",
        caption=caption,
        rows=table_rows(COLUMNS, points),
    )


def distances(points: Sequence[LazyPoint], output: str, start: str) -> Chart:
    """Draw the distances of training against width at α = 1.

    They are ‖w − w₀‖₂, its lower bound, and ‖w − w₀‖_∞; a guide has slope −1/2.
    """
    # Older results have no bound.
    is_bounded = any(run.least_distance for point in points for run in point.runs)
    measured = (DISTANCE, LARGEST, *(LEAST if is_bounded else ()))
    lines = [
        line(points, "width", output, start, measure, measure_style(measure))
        for measure in measured
    ]
    return sweep(
        lines,
        AXES["width"],
        "how far the weights move",
        names_quantities=True,
        slopes=(-0.5,),
        heading="How far the weights move",
        caption=[
            f"{beginning(output_title(output))}, {START_TITLES[start]}, {_where(points, 'width')}"
        ],
        rows=table_rows(COLUMNS, points),
    )


def same_parameters(
    points: Sequence[LazyPoint], output: str, start: str, kind: str = "fully-connected"
) -> Chart:
    """Draw ΔK of α f and of φ(α f) against width, on the same path of weights, at α = 1."""
    through = network_style(kind, output, f"kernel of φ(α f), {output_title(output)}")
    lines = [
        line(points, "width", output, start, BEHIND_F, network_style(kind, title="kernel of α f"))
    ]
    if output != "linear":
        lines.append(line(points, "width", output, start, CHANGE, through))
    return sweep(
        lines,
        AXES["width"],
        "kernel change ΔK",
        "ΔK",
        heading="Same weights, two outputs",
        caption=[f"{beginning(START_TITLES[start])}, {_where(points, 'width')}"],
        rows=table_rows(COLUMNS, points),
    )


def _scaled_labels(points: Sequence[LazyPoint], output: str) -> list[str]:
    """State how far α f on y and f on y/α end from each other; empty where not measured."""
    found = [
        run.label_difference
        for point in swept_points(points, "scale")
        for run in point.runs
        if run.output == output and run.label_difference is not None
    ]
    if not found:
        return []
    return [
        f"Trained on the labels y/α, f ends within {number(max(found))} of its move of the same "
        f"weights ({num_runs(len(found))})."
    ]


def _where(points: Sequence[LazyPoint], swept: Swept) -> str:
    narrow = min((point.width for point in points), default=0)
    return f"at width {width_label(narrow)}." if swept == "scale" else "at scale α = 1."
