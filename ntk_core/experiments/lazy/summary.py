"""``lazy`` as text: κ, kernel change and distances along width and scale, with fitted exponents."""

from collections.abc import Callable, Sequence

from ntk_core.experiments.lazy.result import LazyPoint, LazyRun
from ntk_core.experiments.lazy.spec import LazySpec
from ntk_core.fits import PowerLaw, fit_runs
from ntk_core.networks.choices import OUTPUTS
from ntk_core.runs import aligned, law_words, marks, outcome_notes, with_error

_COLUMNS: dict[str, Callable[[LazyRun], float]] = {
    "κ": lambda run: run.kappa,
    "ΔK": lambda run: run.sup_change,
    "‖w−w₀‖₂": lambda run: run.distance,
    "‖w−w₀‖_∞": lambda run: run.largest_distance,
    "|Δh|": lambda run: run.mean_hidden_change,
}


def lazy_summary(spec: LazySpec, points: Sequence[LazyPoint]) -> str:
    """A table of means over the seeds, then the exponents of every column along each."""
    kinds = [(output, start) for output in spec.outputs for start in spec.starts]
    head = ("width", "scale", "ρ", "output", "start", *_COLUMNS, "")
    lines = aligned([head, *(_row(point, *kind) for point in points for kind in kinds)])
    exponents = [
        f"{OUTPUTS[output].title}, {start} start, {title}{place}: {_exponent(law, letter)}"
        for output, start in kinds
        for title, of in _COLUMNS.items()
        for place, letter, law in (
            ("", "α", along_scales(points, output, start, of)),
            ("", "m", along_widths(points, output, start, of)),
            *((f" at ρ = {rho:g}", "m", along_widths(points, output, start, of, rho)) for rho in spec.richness),
        )
    ]
    missed = [spec.almost_everywhere] if spec.almost_everywhere else []
    return "\n".join([*lines, "", *missed, *outcome_notes(points), *exponents])


def along_scales(
    points: Sequence[LazyPoint], output: str, start: str, of: Callable[[LazyRun], float]
) -> PowerLaw | None:
    """The power law in α at the smallest width, over converged runs."""
    narrow = min((point.width for point in points), default=0)
    along = [(point.scale, point) for point in points if point.width == narrow and not point.richness]
    return _fit(along, output, start, of)


def along_widths(
    points: Sequence[LazyPoint], output: str, start: str, of: Callable[[LazyRun], float], richness: float = 0.0
) -> PowerLaw | None:
    """The power law in m at scale 1 and this richness, over converged runs."""
    along = [(point.width, point) for point in points if point.scale == 1 and point.richness == richness]
    return _fit(along, output, start, of)


def _fit(
    along: Sequence[tuple[float, LazyPoint]], output: str, start: str, of: Callable[[LazyRun], float]
) -> PowerLaw | None:
    runs = [(value, run) for value, point in along for run in point.of(output, start)]
    return fit_runs(runs, of, lambda run: run.outcome == "converged")


def _exponent(law: PowerLaw | None, letter: str) -> str:
    return f"no exponent in {letter} fitted" if law is None else f"∝ {law_words(law, letter)}"


def _row(point: LazyPoint, output: str, start: str) -> tuple[str, ...]:
    runs = point.of(output, start)
    done = [run for run in runs if run.outcome == "converged"]
    cells = [with_error([of(run) for run in done]) for of in _COLUMNS.values()]
    return (f"{point.width:,}", f"{point.scale:g}", f"{point.richness:g}", output, start, *cells, marks(runs))
