"""All published numbers on speed and memory, in one session: ``python -m benchmarks``.

Makes the peers' environments on first use (``.peers/``, from benchmarks/peers/*.txt), runs every part, and writes one
JSON a part into benchmarks/results/. A part during which other programs kept the machine busy does not replace
committed numbers: it goes to ``.bench/``, unless ``--force`` is given, which its JSON records.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import RESULTS, Settings, Watch, environment
from benchmarks.peers import process

# In this order; each is a module of this folder with ``measure(settings)``.
PARTS: dict[str, tuple[str, ...]] = {
    "start": ("streamlit", "plotly", "pydantic", "sqlalchemy"),
    "dashboard": ("jax", "numpy", "streamlit", "plotly"),
    "pages": ("streamlit", "plotly", "pydantic"),
    "live": ("streamlit", "playwright"),
    "site": ("streamlit", "plotly", "playwright"),
    "kernel": ("jax", "jaxlib", "numpy"),
    "transformer": ("jax", "jaxlib", "numpy"),
    "traced": ("jax", "jaxlib", "numpy", "flax"),
    "first_calls": ("jax", "jaxlib", "numpy"),
    "large_n": ("jax", "jaxlib", "numpy", "scipy"),
    "hessian": ("jax", "jaxlib", "numpy", "scipy"),
    "trajectories": ("jax", "jaxlib", "numpy"),
    "training": ("jax", "jaxlib", "numpy"),
    "masked_layer": ("jax", "jaxlib", "numpy"),
    "growth": ("jax", "jaxlib", "numpy"),
    "ceilings": ("jax", "jaxlib", "numpy"),
    "gpu": ("jax", "jaxlib", "numpy"),
    "estimates": ("jax", "jaxlib", "numpy"),
    "sweep": ("jax", "jaxlib", "numpy"),
    "maps": ("jax", "jaxlib", "numpy"),
    "linearity": ("jax", "jaxlib", "numpy"),
    "generalization": ("jax", "jaxlib", "numpy", "scipy"),
    "coverage": ("numpy", "scipy"),
}
LOOK = Path(__file__).parents[1] / ".bench"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the parts that are asked for, each in a process of its own unless it is the only one."""
    asked = _parser().parse_args(arguments)
    interpreters = dict(asked.peer)
    if not asked.quick and {"kernel", "large_n", "hessian", "trajectories", "traced"} & set(asked.only):
        for name in process.NAMES:
            if name == "torchax" and "traced" not in asked.only:
                continue
            if name not in interpreters and name not in asked.without:
                print(f"making the environment of {name}", flush=True)
                interpreters[name] = process.interpreter(name, asked.python)
    settings = Settings(quick=asked.quick, interpreters=interpreters)
    if len(asked.only) == 1:
        sys.exit(not _run(asked.only[0], settings, asked.force))
    # One process each: what a part has compiled and allocated must not weigh on the next one's times and memory.
    options = [f"--peer={name}={at}" for name, at in interpreters.items()]
    options += [f"--without={name}" for name in process.NAMES if name not in interpreters]
    options += [flag for flag, wanted in (("--quick", asked.quick), ("--force", asked.force)) if wanted]
    commands = {name: [sys.executable, "-m", "benchmarks", "--only", name, *options] for name in asked.only}
    refused = [name for name, command in commands.items() if subprocess.run(command, check=False).returncode]
    if refused:
        sys.exit(f"not written: {', '.join(refused)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed and memory against peers.")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="tiny sizes, nothing written: does everything work?")
    parser.add_argument("--force", action="store_true", help="write numbers of a busy machine, and say so in them")
    parser.add_argument("--python", default=sys.executable, help="a Python up to 3.12 for the peers' environments")
    parser.add_argument(
        "--peer", type=_peer, action="append", default=[], metavar="NAME=PYTHON", help="an environment that exists"
    )
    parser.add_argument("--without", action="append", default=[], choices=process.NAMES, help="leave a peer out")
    return parser


def _peer(text: str) -> tuple[str, str]:
    name, _, at = text.partition("=")
    if name not in process.NAMES or not Path(at).is_file():
        raise argparse.ArgumentTypeError(f"{text}: one of {', '.join(process.NAMES)}, =, and the path of a Python")
    return name, at


def _run(name: str, settings: Settings, force: bool) -> bool:
    """Measure one part and keep its numbers; False where they may not be kept, or it broke."""
    module = importlib.import_module(f"benchmarks.{name}")
    skip = module.reason_to_skip(settings) if hasattr(module, "reason_to_skip") else None
    if skip:
        print(f"{name}: skipped, {skip}")
        return True
    print(f"{name}: begun", flush=True)
    found, watch = environment(PARTS[name]), Watch()
    try:
        data = module.measure(settings)
    except Exception:
        traceback.print_exc()
        return False
    load = watch.note()
    # What is counted, not timed, is the same on a busy machine.
    load["high"] = load["high"] and getattr(module, "IS_TIMED", True)
    result = {"environment": found, "load": {**load, "forced": bool(load["high"] and force)}, **data}
    if settings.quick:
        print(f"{name}: works, {load['took_s']:.1f} s")
        return True
    return keep(name, result, force)


def keep(name: str, result: Mapping[str, Any], force: bool) -> bool:
    """Write a result where it belongs; one of a busy machine does not replace a committed one."""
    load = result["load"]
    place = RESULTS if force or not load["high"] else LOOK
    place.mkdir(exist_ok=True)
    (place / f"{name}.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    others = load["busy_by_others"]
    busy = "load" if others is None else f"{others:.2f} cores busy with other programs"
    print(
        f"{name}: {load['took_s']:.0f} s, {busy}, load {load['at_start']:.1f} to {load['at_end']:.1f} → {place.name}/"
    )
    if place is LOOK:
        print(f"{name}: too busy to be kept; run it again at a quiet time, or with --force", file=sys.stderr)
    return place is RESULTS


if __name__ == "__main__":
    main()
