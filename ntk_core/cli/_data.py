"""``data``: a file of one's own as a data set for every experiment."""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from ntk_core.cli._printing import printable
from ntk_core.data.uploads import (
    DEFAULT_LIMITS,
    TASKS,
    Choices,
    Cleaned,
    Limits,
    clean_upload,
    keep_upload,
    parse_upload,
    suggested_choices,
)
from ntk_core.runs.run_directory import unreadable

# One's own file on one's own machine: larger than a server takes.
LIMITS = replace(DEFAULT_LIMITS, max_bytes=256 * 2**20, max_unpacked_bytes=1024 * 2**20, max_values=2**27)
DEFAULT_POINTS = 60


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser("data", help="keep a CSV, npz or zip of image folders as data for experiments")
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--target", metavar="NAME", help="column or array that is learned")
    parser.add_argument("--features", metavar="A,B", help="input columns, or the array of inputs")
    parser.add_argument("--task", choices=TASKS, help="classes (one-hot) or regression")
    parser.add_argument("--classes", metavar="A,B", help="classes to keep; all by default")
    parser.add_argument("--drop-missing", action="store_true", help="drop rows with missing values")
    parser.add_argument("--raw-targets", action="store_true", help="keep regression targets as they are")
    parser.add_argument("--side", type=int, metavar="PIXELS", help="scale images to a square; 0: as they are")
    parser.add_argument("--gray", action="store_true", help="one channel instead of three")
    parser.add_argument("--tokens", action="store_true", help="an array (n, T, d) holds T tokens each, no gray images")
    parser.add_argument("--json", action="store_true", help="print what was kept as JSON")
    parser.set_defaults(command=data)


def data(options: argparse.Namespace) -> None:
    """Read, clean and keep the file; say what a network will see and how to use it."""
    candidate = parse_upload(_read(Path(options.file), LIMITS), LIMITS)
    choices = _chosen(options, suggested_choices(candidate))
    cleaned = clean_upload(candidate, choices, LIMITS)
    digest = keep_upload(cleaned)
    if options.json:
        print(json.dumps(_facts(cleaned, digest)))
        return
    shape = " × ".join(map(str, cleaned.input_shape))
    print(f"{len(cleaned.x):,} samples, inputs {shape}, {cleaned.num_outputs} outputs")
    for name, count in cleaned.counts.items():
        print(f"  {printable(name)}: {count:,}")
    preset = "liu-fig1-left" if cleaned.class_names else "a spec of the experiment dynamics"
    count = min(DEFAULT_POINTS, len(cleaned.x))
    print(
        f"\nKept as {digest}. For example:\npython -m ntk_core run {preset} "
        f"--set dataset.name=upload dataset.digest={digest} dataset.num_samples={count} dataset.standardize=standard"
    )


def _facts(cleaned: Cleaned, digest: str) -> dict[str, Any]:
    return {
        "digest": digest,
        "num_samples": len(cleaned.x),
        "input_shape": list(cleaned.input_shape),
        "num_outputs": cleaned.num_outputs,
        "classes": cleaned.counts,
    }


def _read(path: Path, limits: Limits) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(limits.max_bytes + 1)  # one byte more than allowed is refused by its size
    except OSError as error:
        raise unreadable("FILE", path, error) from None


def _chosen(options: argparse.Namespace, first: Choices) -> Choices:
    """The suggestions, with what was said instead."""
    changes: dict[str, Any] = {"drop_missing": options.drop_missing, "scale_targets": not options.raw_targets}
    for name in ("features", "classes"):
        if getattr(options, name) is not None:
            changes[name] = tuple(part.strip() for part in getattr(options, name).split(",") if part.strip())
    for name in ("target", "task", "side"):
        if getattr(options, name) is not None:
            changes[name] = getattr(options, name)
    chosen = replace(first, **changes, gray=first.gray or options.gray, tokens=options.tokens)
    if "features" not in changes:  # a suggestion may have taken what is now the target
        chosen = replace(chosen, features=tuple(name for name in chosen.features if name != chosen.target))
    return chosen
