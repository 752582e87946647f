"""Precomputed results, one JSON file per preset, shown before the first run."""

import gzip
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from linearity_lab.charts.figure import (
    Figure,
    Shown,
    figures_of,
    name_in_url,
    shown_result,
)
from linearity_lab.dashboard.jobs.sized_cache import SizedCache
from linearity_lab.experiments.explore.pairs import pair_file, part_of
from linearity_lab.experiments.explore.point import ExploreResult
from linearity_lab.experiments.explore.spec import ExploreSpec
from linearity_lab.runs import EXPERIMENTS, PRESETS, Result, ResultValue, Spec
from linearity_lab.runs.gallery import GALLERY, gallery_beside

MAX_BYTES = 20_000_000
KEPT_BYTES = 6_000_000  # of files whose results stay in memory; our choice
_RESULT: TypeAdapter[ResultValue] = TypeAdapter(Result)
_LOG = logging.getLogger(__name__)


def gallery_result(preset: str) -> ResultValue | None:
    """Return the precomputed result of a preset; None if it is missing or unreadable."""
    return _kept_result((gallery_beside(preset) or GALLERY) / f"{preset}.json")


def _kept_result(path: Path) -> ResultValue | None:
    try:
        status = path.stat()
    except OSError:
        return None
    key = path, status.st_mtime_ns, status.st_size
    found = _results.get(key, lambda: (_read(path, status.st_size), status.st_size))
    return found[0]


def gallery_result_of(spec: Spec) -> ResultValue | None:
    """Return the precomputed result of exactly these settings, or None."""
    for name, preset in PRESETS.items():
        if preset.spec == spec:
            result = gallery_result(name)
            return (
                result
                if result is not None and result.spec == spec and result.status == "completed"
                else None
            )
    return first_answer(spec)


def first_answer(spec: Spec) -> ResultValue | None:
    """Return the precomputed first answer of *Explore* for these settings, or None.

    It can be a part of a stored one, with fewer outputs, widths or seeds.
    """
    if not isinstance(spec, ExploreSpec):
        return None
    result = _kept_result(pair_file(spec))
    return part_of(result, spec) if isinstance(result, ExploreResult) else None


def nearest_answer(spec: Spec) -> ResultValue | None:
    """Return the precomputed first answer for this network on these data, or None.

    Its other settings, such as the activation, may differ.
    """
    return _kept_result(pair_file(spec)) if isinstance(spec, ExploreSpec) else None


@dataclass(frozen=True)
class GalleryFigure:
    """A figure of a preset in the gallery."""

    name: str  # in URLs
    page: str  # page of the experiment
    title: str
    figure: Figure
    shown: Shown[Any, Any]  # the result that it is drawn from


def page_of(preset: str) -> str:
    """Return the page whose figures show this preset."""
    for name, experiment in EXPERIMENTS.items():
        if any(own.name == preset for own in experiment.presets):
            return name
    raise LookupError(f"no experiment has the preset {preset}")


def gallery_figures(preset: str) -> dict[str, GalleryFigure]:
    """Return the figures of a preset by their names; the first has that of the preset.

    Raises:
        LookupError: the gallery lacks the preset.
    """
    result = gallery_result(preset)
    if result is None:
        raise LookupError(f"the gallery has no {preset}")
    shown = shown_result(result)
    found: dict[str, GalleryFigure] = {}
    for figure, source in figures_in(shown):
        title = figure.title_of(shown)
        name = name_in_url(preset, title) if found else preset
        found[name] = GalleryFigure(name, page_of(preset), title, figure, source)
    return found


def figures_in(shown: Shown[Any, Any]) -> list[tuple[Figure, Shown[Any, Any]]]:
    """Return the figures for which a result has data, each with the result that it is drawn from.

    This is the result itself, or that of another preset, without which the figure is left out.
    """
    found: list[tuple[Figure, Shown[Any, Any]]] = []
    for figure in figures_of(shown):
        if not figure.preset:
            found.append((figure, shown))
        elif (other := gallery_result(figure.preset)) is not None:
            found.append((figure, shown_result(other)))
    return found


# With the bytes of its file; results as objects take a few times as much.
_results: SizedCache[tuple[ResultValue | None, int]] = SizedCache(
    KEPT_BYTES, lambda found: found[1]
)


def _read(path: Path, size: int) -> ResultValue | None:
    if size > MAX_BYTES:
        _LOG.warning("%s has %d bytes, more than %d: it is not shown.", path, size, MAX_BYTES)
        return None
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        return _RESULT.validate_json(content)
    except (OSError, ValidationError) as error:
        _LOG.warning("%s is not a result and is not shown: %s", path, str(error).splitlines()[0])
        return None
