"""``python -m tests.claims.confirmation [PRESET ...]`` measures claims again on seeds from 1,000 on.

Intervals were set on the runs of the gallery, which begin at seed 0. A confirmation computes the same preset with
fresh initializations and, where the data are synthetic, another data draw. Seeds and their number are fixed by
``fresh`` before anything is computed; the measurements are kept in ``confirmed.json`` with what they came from.
"""

import argparse
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ntk_core.runs import run
from ntk_core.runs._parse import spec_digest
from ntk_core.runs._table import PRESETS
from ntk_core.runs.events import Ended
from ntk_core.runs.gallery import GALLERY
from ntk_core.runs.run_directory import RunDirectory, write_whole
from ntk_core.runs.store import Store
from ntk_core.settings.grammar import with_settings
from tests.claims.claim import CONFIRMED, claims

FIRST_SEED = 1000
# Presets with one seed, too slow for eight, whose sentences compare methods.
FEWER = {"beyond-gradient-descent": 4}
# Presets with a sentence that its first confirmation contradicted: rewritten, then confirmed on the next seeds.
REWRITTEN = {"bottleneck": 2000, "catapult-map": 2000, "hu-fig1": 2000, "hu-fig4": 2000, "hu-fig4-fashion": 2000}
DRAWN = {"gaussian", "gaussian-mixture", "induction", "parity", "rademacher", "random-sequences", "single-index"}
_MIN_SEEDS, _MAX_SECONDS = 8, 240  # of one preset, by the time that the gallery took


def fresh(name: str) -> Any:
    """Return the spec of a preset with fresh seeds: at least 8 where they take at most 4 minutes, else as many."""
    spec: Any = PRESETS[name].spec
    seconds = json.loads((GALLERY / f"{name}.json").read_text(encoding="utf-8"))["runtime_s"]
    affordable = seconds * _MIN_SEEDS / spec.num_seeds <= _MAX_SECONDS
    first = REWRITTEN.get(name, FIRST_SEED)
    changes: dict[str, Any] = {"seed": first}
    if name in FEWER:
        changes["num_seeds"] = FEWER[name]
    elif affordable:
        changes["num_seeds"] = max(_MIN_SEEDS, spec.num_seeds)
    if spec.dataset.name in DRAWN:
        changes["dataset.seed"] = first
    return with_settings(spec, changes)


def confirm(name: str, result: Any) -> dict[str, Any]:
    """Return the measurements of all claims of a preset on a fresh result, with its provenance."""
    return {
        "spec": spec_digest(result.spec),
        "seeds": [result.spec.seed, result.spec.num_seeds],
        "data_seed": result.spec.dataset.seed,
        "started_at": result.provenance.started_at,
        "versions": dict(result.provenance.versions),
        "claims": {
            claim.name: {"measure": claim.fingerprint, "measured": asdict(claim.reading.measure(result))}
            for claim in claims()
            if claim.preset == name
        },
    }


def _computed(name: str, folder: Path | None) -> Any:
    spec = fresh(name)
    if folder is not None:
        result = RunDirectory(folder / name, "--from").result()
        if spec_digest(result.spec) != spec_digest(spec):
            raise SystemExit(f"{folder / name} has other settings than the confirmation of {name}")
        return result
    store = Store(GALLERY / ".runs" / "confirmation.sqlite")
    for event in run(spec, points=store.points(spec)):
        if isinstance(event, Ended) and event.status == "completed":
            return event.result
    raise SystemExit(f"{name} did not complete")


def main() -> None:
    """Confirm the named presets, or all that have no confirmation of their present measures."""
    parser = argparse.ArgumentParser(prog="python -m tests.claims.confirmation")
    parser.add_argument("presets", nargs="*", choices=[[], *PRESETS], metavar="PRESET")
    parser.add_argument("--from", dest="folder", type=Path, help="directory with finished runs, one folder per preset")
    given = parser.parse_args()
    for name in given.presets or PRESETS:
        kept = json.loads(CONFIRMED.read_text(encoding="utf-8")) if CONFIRMED.exists() else {}
        measures = {claim.name: claim.fingerprint for claim in claims() if claim.preset == name}
        if not given.presets and measures == {
            k: v["measure"] for k, v in kept.get(name, {"claims": {}})["claims"].items()
        }:
            continue
        if given.folder is not None and not (given.folder / name / "done").exists():
            continue
        kept[name] = confirm(name, _computed(name, given.folder))
        text = json.dumps(dict(sorted(kept.items())), indent=1, ensure_ascii=False, default=_plain, allow_nan=True)
        write_whole(CONFIRMED, text + "\n", "confirmed.json")


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else float(value)


if __name__ == "__main__":
    main()
