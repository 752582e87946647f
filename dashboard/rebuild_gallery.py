"""Compute the results that are shown before anything is run: ``python -m dashboard.rebuild_gallery [NAME …]``.

Every preset, and both networks of every pair of the page that compares two; or only those that are named. Interrupted,
it resumes. Exit codes as of ``python -m ntk_core``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from dashboard.comparison import PAIRS, PARTS
from dashboard.gallery import GALLERY, pair_name
from ntk_core.cli import BAD_INPUT, COMPLETED, FAILED, INTERRUPTED
from ntk_core.events import Ended, PointFinished
from ntk_core.experiments import run
from ntk_core.papers import PRESETS
from ntk_core.run_directory import RunDirectory, write_whole
from ntk_core.specs import Spec, digest


def gallery_specs() -> dict[str, Spec]:
    """Name in the gallery → what is computed for it."""
    pairs = {pair_name(name, part): pair.spec.spec(part) for name, pair in PAIRS.items() for part in PARTS}
    return {**{name: preset.spec for name, preset in PRESETS.items()}, **pairs}


def main(names: Sequence[str]) -> int:
    """Rebuild these entries, all without names; the exit code."""
    specs = gallery_specs()
    unknown = [name for name in names if name not in specs]
    if unknown:
        print(f"{', '.join(unknown)} is not allowed; allowed: {', '.join(specs)}.", file=sys.stderr)
        return BAD_INPUT
    try:
        for name in names or specs:
            if not _rebuild(name, specs[name]):
                return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return COMPLETED


def _rebuild(name: str, spec: Spec) -> bool:
    """One entry; whether it was completed."""
    # By its digest: what another version of the spec left behind must not stand in the way.
    points = RunDirectory(GALLERY / ".runs" / f"{name}-{digest(spec)[:16]}").begin(spec)
    for event in run(spec, points=points):
        if isinstance(event, PointFinished):
            print(f"{name}: {event.key} finished, {event.fraction:.0%}", file=sys.stderr)
        elif isinstance(event, Ended):
            if event.result is None or event.status != "completed":
                print(f"{name}: {event.status} {event.reason}", file=sys.stderr)
                return False
            write_whole(GALLERY / f"{name}.json", event.result.model_dump_json() + "\n", "gallery")
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
