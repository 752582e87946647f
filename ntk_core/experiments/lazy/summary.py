"""``lazy`` as text: κ, kernel change and distances along width and scale, with fitted exponents."""

from collections.abc import Callable, Sequence
from functools import partial

from ntk_core.experiments.lazy.result import COLUMNS, LazyPoint, LazyRun
from ntk_core.experiments.lazy.spec import LazySpec
from ntk_core.fits import PowerLaw, fit_runs
from ntk_core.networks.choices import OUTPUTS
from ntk_core.runs import law_words, outcome_notes
from ntk_core.runs.columns import converged, text_table

Of = Callable[[LazyRun], float]
MEASURES = [column for column in COLUMNS if column.role == "measure" and column.format]


def lazy_summary(spec: LazySpec, points: Sequence[LazyPoint]) -> str:
    """The table of means over the seeds, then the exponents of every measure along each."""
    exponents = [
        f"{OUTPUTS[output].title}, {start} start, {column.title}{place}: {_exponent(law, letter)}"
        for output in spec.outputs
        for start in spec.starts
        for column in MEASURES
        for of in [partial(column.value, None)]
        for place, letter, law in (
            ("", "α", along_scales(points, output, start, of)),
            ("", "m", along_widths(points, output, start, of)),
            *((f" at ρ = {rho:g}", "m", along_widths(points, output, start, of, rho)) for rho in spec.richness),
        )
    ]
    missed = [spec.almost_everywhere] if spec.almost_everywhere else []
    return "\n".join([*text_table(COLUMNS, points), "", *missed, *outcome_notes(points), *exponents])


def along_scales(points: Sequence[LazyPoint], output: str, start: str, of: Of) -> PowerLaw | None:
    """The power law in α at the smallest width, over converged runs."""
    narrow = min((point.width for point in points), default=0)
    along = [(point.scale, point) for point in points if point.width == narrow and not point.richness]
    return _fit(along, output, start, of)


def along_widths(
    points: Sequence[LazyPoint], output: str, start: str, of: Of, richness: float = 0.0
) -> PowerLaw | None:
    """The power law in m at scale 1 and this richness, over converged runs."""
    along = [(point.width, point) for point in points if point.scale == 1 and point.richness == richness]
    return _fit(along, output, start, of)


def _fit(along: Sequence[tuple[float, LazyPoint]], output: str, start: str, of: Of) -> PowerLaw | None:
    return fit_runs([(value, run) for value, point in along for run in point.of(output, start)], of, converged)


def _exponent(law: PowerLaw | None, letter: str) -> str:
    return f"no exponent in {letter} fitted" if law is None else f"∝ {law_words(law, letter)}"
