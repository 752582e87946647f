"""The cheapest point of every figure in the gallery, recomputed to its end with all its seeds and compared.

Run: ``python -m benchmarks.drills.gallery [NAME …]`` (all: ten minutes on two quiet cores).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import cyclopts

from benchmarks.drills.report import conclude
from benchmarks.measure import Row
from linearity_lab.components.gallery import gallery_result
from ntk_core.runs import PRESETS, run
from ntk_core.runs.events import PointFinished

# Times and origins differ from run to run; they are no result.
LEFT_OUT = {"runtime_s", "provenance"}
# Training in float32 for thousands of steps magnifies the last digit; on another processor by more.
RELATIVE = 1e-2


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """All numbers and words of a point, by their place."""
    if isinstance(value, dict):
        for name, part in value.items():
            if name not in LEFT_OUT:
                yield from leaves(part, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield from leaves(part, f"{path}.{index}")
    else:
        yield path, value


def differs(new: Any, old: Any) -> bool:
    """Whether two leaves are not the same, up to the rounding of training."""
    if isinstance(new, float) and isinstance(old, float):
        return not (new == old or (math.isnan(new) and math.isnan(old)) or math.isclose(new, old, rel_tol=RELATIVE))
    return bool(new != old)


def again(name: str) -> Row:
    """Compute the cheapest point of this entry; how many of its numbers are as shown."""
    result = gallery_result(name)
    assert result is not None
    shown = result.points[0]
    began = time.monotonic()
    for event in run(PRESETS[name].spec):
        if isinstance(event, PointFinished):
            break
    else:
        raise RuntimeError(f"{name}: no point was finished")
    new, old = dict(leaves(event.point.model_dump())), dict(leaves(shown.model_dump()))
    wrong = [
        path for path in new.keys() | old.keys() if path not in new or path not in old or differs(new[path], old[path])
    ]
    equal = sum(path in old and (new[path] == old[path]) for path in new)
    row = {"point": event.key, "same_point": event.key == shown.key, "numbers": len(new), "equal": equal}
    return {
        **row,
        "outside": len(wrong),
        "for_example": sorted(wrong)[:3],
        "took_s": round(time.monotonic() - began, 1),
    }


def main(*names: str) -> None:
    """Recompute one point of these figures in the gallery, or of all."""
    rows = {}
    for name in names or PRESETS:
        rows[name] = again(name)
        print(name, rows[name], flush=True)
    claims = {
        "every entry has been recomputed at one point": all(row["same_point"] for row in rows.values()),
        f"99 % of the numbers of each agree within {RELATIVE:.0%}": all(
            row["outside"] <= 0.01 * row["numbers"] for row in rows.values()
        ),
    }
    conclude("gallery", {"relative_tolerance": RELATIVE, "entries": rows}, claims)


if __name__ == "__main__":
    cyclopts.run(main)
