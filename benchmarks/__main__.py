"""All published numbers on speed and memory: ``python -m benchmarks``.

Makes the peers' environments on first use (``.peers/``, from benchmarks/peers/*.txt), runs every
part, and writes one JSON a part into benchmarks/results/. A part during which other programs kept
the machine busy does not replace committed numbers: it goes to ``.bench/``, unless ``--force`` is
given, which its JSON records.
"""

import argparse
import json
import pkgutil
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import RESULTS, ROOT, Settings, Watch, environment
from benchmarks.peers import process
from benchmarks.words import Data

JAX = ("jax", "jaxlib", "numpy")
SCIPY = ("jax", "jaxlib", "numpy", "scipy")
PAGES = ("streamlit", "plotly", "pydantic")
BROWSER = "benchmarks.browser:reason_to_skip"


class Part(NamedTuple):
    """A part of the benchmarks."""

    measure: str  # its function, in a module of this folder
    packages: tuple[str, ...] = JAX  # whose versions its numbers depend on
    peers: tuple[str, ...] = ()  # whose environments it uses
    skip: str = ""  # a function that returns why there is nothing to measure here, or None
    is_timed: bool = True  # whether a busy machine changes its numbers
    named_by: str = ""  # field that names a row, if its rows can be measured in pieces


# In this order.
PARTS = {
    "start": Part("visits:start", (*PAGES, "sqlalchemy"), skip=BROWSER),
    "dashboard": Part("dashboard:measure", ("jax", "numpy", "streamlit", "plotly"), skip=BROWSER),
    "pages": Part("pages:measure", PAGES),
    "live": Part("visits:live", ("streamlit", "playwright"), skip=BROWSER),
    "site": Part("visits:site", ("streamlit", "plotly", "playwright"), skip=BROWSER),
    "kernel": Part("kernel:measure", peers=("neural-tangents", "torch")),
    "transformer": Part("kernel:transformer"),
    "traced": Part("kernel:models_of_others", (*JAX, "flax"), ("neural-tangents",)),
    "equal_outputs": Part("kernel:equal_outputs", peers=("neural-tangents",)),
    "curvature": Part("curvature:measure", SCIPY, ("torch",)),
    "first_calls": Part("first_calls:measure", peers=("torchax",)),
    "large_n": Part("large_n:measure", SCIPY, ("neural-tangents",)),
    "hessian": Part("hessian:measure", SCIPY, ("torch",)),
    "narrow_norms": Part("hessian:narrow_norms", SCIPY),
    "hessian_failures": Part("hessian_failures:measure", SCIPY, is_timed=False),
    "trajectories": Part("training:trajectories", peers=("neural-tangents",)),
    "training": Part("training:measure"),
    "growth": Part("growth:measure"),
    "ceilings": Part("growth:shares"),
    "gpu": Part("growth:on_gpu", skip="benchmarks.growth:no_gpu"),
    "estimates": Part("estimates:measure"),
    "explore": Part("explore:measure", named_by="network"),
    "sweep": Part("whole_runs:sweep"),
    "maps": Part("whole_runs:maps"),
    "presets": Part("whole_runs:cold_presets", named_by="preset"),
    "linearity": Part("whole_runs:linearity", peers=("torchax",)),
    "generalization": Part("whole_runs:generalization", SCIPY),
    "coverage": Part("coverage:measure", ("numpy", "scipy"), is_timed=False),
}
ASIDE = ROOT / ".bench"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the requested parts, several in fresh processes."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Speed and memory against peers."
    )
    add = parser.add_argument
    add(
        "--only",
        nargs="+",
        choices=PARTS,
        default=list(PARTS),
        metavar="PART",
        help=", ".join(PARTS),
    )
    add("--quick", action="store_true", help="tiny sizes, nothing written: does everything work?")
    add("--force", action="store_true", help="write numbers of a busy machine, and say so in them")
    add("--rows", nargs="+", default=[], help="rows of one part; it keeps its other rows")
    add("--python", default=sys.executable, help="a Python up to 3.12 for the peers' environments")
    asked = parser.parse_args(arguments)
    if len(asked.only) == 1:
        (name,) = asked.only
        wanted = () if asked.quick else PARTS[name].peers
        interpreters = {peer: process.interpreter(peer, asked.python) for peer in wanted}
        if asked.rows and not PARTS[name].named_by:
            parser.error(f"--rows: {name} is measured as a whole")
        settings = Settings(asked.quick, interpreters, asked.rows)
        sys.exit(not _run(name, settings, asked.force))
    if asked.rows:
        parser.error("--rows needs --only with one part")
    # Compiled code and memory of one part must not affect the next one.
    options = [
        "--python",
        asked.python,
        *(f"--{flag}" for flag in ("quick", "force") if getattr(asked, flag)),
    ]
    commands = {
        name: [sys.executable, "-m", "benchmarks", "--only", name, *options] for name in asked.only
    }
    refused = [
        name
        for name, command in commands.items()
        if subprocess.run(command, check=False).returncode
    ]
    if refused:
        sys.exit(f"not written: {', '.join(refused)}")


def _run(name: str, settings: Settings, force: bool) -> bool:
    """Measure and write one part; return False if refused or failed."""
    part = PARTS[name]
    reason = pkgutil.resolve_name(part.skip)(settings) if part.skip else None
    if reason:
        print(f"{name}: skipped, {reason}")
        return True
    print(f"{name}: begun", flush=True)
    found = environment(part.packages)
    watch = Watch()
    try:
        data = pkgutil.resolve_name(f"benchmarks.{part.measure}")(settings)
    except Exception:
        traceback.print_exc()
        return False
    load = watch.note()
    load["high"] = load["high"] and part.is_timed
    if settings.quick:
        print(f"{name}: works, {load['took_s']:.1f} s")
        return True
    load["forced"] = load["high"] and force
    result: Data = {"environment": found, "load": load, **data}
    if settings.rows:
        result = with_earlier_rows(result, RESULTS / f"{name}.json", part.named_by)
    return keep(name, result, force)


def with_earlier_rows(result: Data, path: Path, named_by: str) -> Data:
    """Return a result with the other rows of a file, and the higher of both loads."""
    if not path.exists():
        return result
    earlier = json.loads(path.read_text(encoding="utf-8"))
    measured = {row[named_by] for row in result["rows"]}
    others = [row for row in earlier["rows"] if row[named_by] not in measured]
    loads = [earlier["load"], result["load"]]
    load = max(loads, key=lambda load: load["busy_by_others"])
    return {**result, "rows": [*others, *result["rows"]], "load": load}


def keep(name: str, result: Data, force: bool) -> bool:
    """Write a result, aside if the machine was busy."""
    load = result["load"]
    place = RESULTS if force or not load["high"] else ASIDE
    place.mkdir(exist_ok=True)
    (place / f"{name}.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    busy = f"{load['busy_by_others']:.2f} cores busy with other programs"
    loads = f"load {load['at_start']:.1f} to {load['at_end']:.1f}"
    print(f"{name}: {load['took_s']:.0f} s, {busy}, {loads} → {place.name}/")
    if place is ASIDE:
        print(
            f"{name}: too busy to be kept; run it again at a quiet time, or with --force",
            file=sys.stderr,
        )
    return place is RESULTS


if __name__ == "__main__":
    main()
