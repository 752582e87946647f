"""The cheapest point of every gallery figure, recomputed and compared.

Run: ``python -m benchmarks.drills.gallery [NAME …]`` (all: seven minutes on two quiet cores).
"""

import math
import time
from collections.abc import Iterator

import cyclopts

from benchmarks.drills.report import conclude
from benchmarks.measure import Row
from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.runs import PRESETS, run
from linearity_lab.runs.events import PointFinished

# Times, origins, and where an iteration stopped differ from run to run; they are no result.
LEFT_OUT = {"runtime_s", "provenance", "residual", "num_matvecs"}
# Training in float32 for thousands of steps magnifies the last digit; on another processor by more.
# The latter of sums that vanish.
RELATIVE = 1e-2
ROUNDING = 1e-15


def leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield all numbers and words of a point with their place."""
    if isinstance(value, dict):
        for name in value.keys() - LEFT_OUT:
            yield from leaves(value[name], f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield from leaves(part, f"{path}.{index}")
    else:
        yield path, value


def agrees(new: object, old: object) -> bool:
    """Return whether two leaves are equal up to the rounding of training."""
    if isinstance(new, float) and isinstance(old, float):
        return (math.isnan(new) and math.isnan(old)) or math.isclose(
            new, old, rel_tol=RELATIVE, abs_tol=ROUNDING
        )
    return new == old


def again(name: str) -> Row:
    """Recompute the cheapest point of an entry; count its numbers that agree."""
    result = gallery_result(name)
    assert result is not None
    shown = result.points[0]
    began = time.monotonic()
    finished = next(
        (event for event in run(PRESETS[name].spec) if isinstance(event, PointFinished)), None
    )
    if finished is None:
        raise RuntimeError(f"{name}: no point was finished")
    new = dict(leaves(finished.point.model_dump()))
    old = dict(leaves(shown.model_dump()))
    both = new.keys() & old.keys()
    wrong = sorted(
        new.keys() ^ old.keys() | {path for path in both if not agrees(new[path], old[path])}
    )
    equal = sum(new[path] == old[path] for path in both)
    row = {
        "point": finished.key,
        "same_point": finished.key == shown.key,
        "numbers": len(new),
        "equal": equal,
    }
    return {
        **row,
        "outside": len(wrong),
        "for_example": wrong[:3],
        "took_s": round(time.monotonic() - began, 1),
    }


def main(*names: str) -> None:
    """Recompute one point of these figures in the gallery, or of all."""
    rows = {name: again(name) for name in names or PRESETS}
    few = all(row["outside"] <= 0.01 * row["numbers"] for row in rows.values())
    claims = {
        "every entry has been recomputed at one point": all(
            row["same_point"] for row in rows.values()
        ),
        f"99 % of the numbers of each agree within {RELATIVE:.0%}": few,
    }
    conclude("gallery", {"relative_tolerance": RELATIVE, "entries": rows}, claims)


if __name__ == "__main__":
    cyclopts.run(main)
