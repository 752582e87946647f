"""The first answers of *Explore*: one spec for each network on each data set that it takes."""

from collections.abc import Mapping
from pathlib import Path

from linearity_lab.data import DATASETS
from linearity_lab.experiments.explore.point import DrawnKernel, ExploreResult, ExploreRun
from linearity_lab.experiments.explore.spec import (
    DATA,
    FIRST_SEEDS,
    FULL_SEEDS,
    IMAGE_CLASSES,
    SEQUENCES,
    ExploreSpec,
    sizes_of,
)
from linearity_lab.networks.spec import ArchitectureSpec
from linearity_lab.runs.gallery import GALLERY
from linearity_lab.runs.repairs import repaired
from linearity_lab.settings.grammar import InvalidSpec, with_settings
from linearity_lab.settings.part import Values
from ntk_core.networks.kinds import ARCHITECTURES

KIND = "architecture.kind"
DATASET = "dataset.name"
FOLDER = GALLERY / "explore"
WITHOUT_PAIRS = ("upload",)  # data that visitors bring
# The smallest numbers of layers that show what a network is: with fewer, a ResNet has no skip.
FIRST_DEPTHS = {"resnet": 3, "bottleneck": 2, "mixed": 2}


def following(picks: Mapping[str, object]) -> Values:
    """Return the settings that follow the picked network and data.

    Layers, widths, steps, classes of images.
    """
    found: Values = {}
    if KIND in picks:
        kind = str(picks[KIND])
        sizes = sizes_of(ArchitectureSpec.model_construct(kind=kind))
        found["widths"] = sizes.first
        found["training.max_steps"] = sizes.max_steps
        found["num_seeds"] = FIRST_SEEDS
        found["architecture.depth"] = FIRST_DEPTHS.get(kind, 1)
    data = DATASETS.get(str(picks.get(DATASET, "")))
    if data is not None and "classes" in data.uses:
        has_many = len(data.class_names) > IMAGE_CLASSES
        found["dataset.classes"] = tuple(range(IMAGE_CLASSES)) if has_many else None
    return found


def pair(kind: str, dataset: str) -> ExploreSpec | None:
    """Return the first answer for a network on a data set; None if it does not take these data."""
    picks = {KIND: kind, DATASET: dataset}
    found = repaired(ExploreSpec(), {**picks, **following(picks)}, (KIND, DATASET))
    if found is None or {KIND, DATASET} & found.changes.keys():
        return None
    return found.spec


def pairs() -> dict[str, ExploreSpec]:
    """Return the first answers of all pairs by name, such as ``convnet.mnist``."""
    found = {}
    for kind in ARCHITECTURES:
        for dataset in DATASETS:
            spec = None if dataset in WITHOUT_PAIRS else pair(kind, dataset)
            if spec is not None:
                found[f"{kind}.{dataset}"] = spec
    return found


def pair_file(spec: ExploreSpec, folder: Path = FOLDER) -> Path:
    """Return the file with the precomputed first answer of this network and data set."""
    return folder / f"{spec.architecture.kind}.{spec.dataset.name}.json.gz"


def part_of(result: ExploreResult, spec: ExploreSpec) -> ExploreResult | None:
    """Return the part of a result that these settings ask for; None if it has not all of it.

    A run depends on its own width, seed and output, so a part equals a run of the smaller settings.
    """
    known = result.spec
    larger = with_settings(
        spec, {"outputs": known.outputs, "widths": known.widths, "num_seeds": known.num_seeds}
    )
    has_all = (
        larger == known
        and {*spec.outputs} <= {*known.outputs}
        and {*spec.widths} <= {*known.widths}
        and spec.num_seeds <= known.num_seeds
    )
    if not has_all:
        return None
    points = []
    for point in result.points:
        if point.width not in spec.widths:
            continue
        runs: list[ExploreRun] = []
        kernels: list[DrawnKernel] = []
        for output in spec.outputs:
            runs += [run for run in point.of(output) if run.seed in spec.seeds]
            kernels += [each for each in point.kernels if each.output == output]
        kept = {"runs": tuple(runs), "kernels": tuple(kernels)}
        points.append(point.model_copy(update=kept))
    return result.model_copy(update={"spec": spec, "points": tuple(points)})


def preview_of(spec: ExploreSpec) -> ExploreSpec:
    """Return the part of a spec that is computed without Run: three widths and two seeds at most.

    It has no wider networks than a first answer. With attention it skips ‖H‖, whose
    programs compile for long.
    """
    sizes = sizes_of(spec.architecture)
    widths = [width for width in spec.widths if width <= sizes.first[-1]] or [spec.widths[0]]
    last = len(widths) - 1
    chosen = sorted({widths[0], widths[last // 2 + last % 2], widths[last]})
    changes: Values = {
        "widths": chosen,
        "num_seeds": min(spec.num_seeds, FIRST_SEEDS),
        "training.max_steps": min(spec.training.max_steps, sizes.max_steps),
    }
    if sizes is SEQUENCES:
        changes["num_inputs"] = 0
    if spec.dataset.num_points > DATA.num_samples and spec.dataset.uses("num_samples"):
        changes["dataset.num_samples"] = DATA.num_samples
    try:
        return with_settings(spec, changes)
    except InvalidSpec:  # such as more followed points than samples
        return with_settings(spec, {"num_followed": 1, "num_inputs": 0, **changes})


def in_full(spec: ExploreSpec) -> ExploreSpec:
    """Return the full run of the same picks.

    More seeds, and all widths of the architecture's range.
    """
    sizes = sizes_of(spec.architecture)
    changes = {
        "widths": sorted({*spec.widths, *sizes.full}),
        "num_seeds": max(spec.num_seeds, FULL_SEEDS),
    }
    return with_settings(spec, changes)
