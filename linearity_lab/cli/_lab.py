"""Commands for uploaded data, the dashboard and the static site."""

import csv
import importlib
import importlib.util
import json as json_format
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from linearity_lab.cli._complaints import complain
from linearity_lab.cli._targets import Flag
from linearity_lab.cli.run_directory import file_errors, write_whole
from linearity_lab.data import uploads
from linearity_lab.exit_codes import FAILED
from linearity_lab.installation import TOP, command_name
from ntk_core.errors import InvalidInput
from ntk_core.machine import how_to_install
from ntk_core.markup import printable

# Local files may be larger than a server accepts.
_LIMITS = replace(
    uploads.DEFAULT_LIMITS, max_bytes=256 * 2**20, max_unpacked_bytes=1024 * 2**20, max_values=2**27
)
_DEFAULT_POINTS = 60
_CLASSES_PRESET = "liu-fig1-left"
_REGRESSION_PRESET = "curves-in-one-dimension"
_SITE = "linearity_lab.site"  # named, not imported: the core works without it
_NEEDED = ("streamlit", "plotly", "pandas", "segno")  # main packages of the extra


def data(
    file: str,
    /,
    *,
    target: str | None = None,
    features: str | None = None,
    task: uploads.Task | None = None,
    classes: str | None = None,
    drop_missing: Flag = False,
    raw_targets: Flag = False,
    side: int | None = None,
    gray: Flag = False,
    tokens: Flag = False,
    background: str | None = None,
    header: bool | None = None,
    json: Flag = False,
) -> None:
    """Keep a CSV, npz or zip of image folders as data for experiments.

    Args:
        file: The file.
        target: Column or array to learn.
        features: Input columns, A,B, or the array of inputs.
        task: Classes (one-hot) or regression.
        classes: Classes to keep, A,B; all by default.
        drop_missing: Drop rows with missing values.
        raw_targets: Keep regression targets as they are.
        side: Scale images to squares of this many pixels; 0: as they are.
        gray: One channel instead of three.
        tokens: An array (n, T, d) holds T tokens each, no gray images.
        background: White or black behind transparent images, which are refused by default.
        header: Whether the first row of a table names the columns; by default compared
            with the rows below.
        json: Print the kept data's digest and shape as JSON.
    """
    try:
        candidate = uploads.parse_upload(_read(Path(file)), _LIMITS, header)
    except InvalidInput as error:
        if error.field != "header":
            raise
        allowed = f"{error.allowed}: --header or --no-header"
        raise InvalidInput("header", error.given, allowed) from None
    suggested = uploads.suggested_choices(candidate)
    choices = replace(
        suggested,
        target=suggested.target if target is None else target,
        task=suggested.task if task is None else task,
        side=suggested.side if side is None else side,
        features=suggested.features if features is None else _names(features),
        classes=suggested.classes if classes is None else _names(classes),
        drop_missing=drop_missing,
        scale_targets=not raw_targets,
        gray=suggested.gray or gray,
        tokens=tokens,
        background=background or "",
    )
    if features is None:  # suggested features may contain the chosen target
        choices = replace(
            choices, features=tuple(name for name in choices.features if name != choices.target)
        )
    cleaned = uploads.clean_upload(candidate, choices, _LIMITS)
    _report(cleaned, uploads.keep_upload(cleaned), uploads.described(candidate, choices), json)


def _names(text: str) -> tuple[str, ...]:
    """Split names at commas; a name with a comma is written in double quotes."""
    parts = next(csv.reader([text], skipinitialspace=True), [])
    return tuple(part.strip() for part in parts if part.strip())


def app(*options: str, port: int | None = None, host: str | None = None) -> int:
    """Start the dashboard.

    Args:
        options: After --: options of streamlit run.
        port: Port to listen on (default: 8501, or the next free one).
        host: 0.0.0.0 allows access from other machines (default: localhost).
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        complain(
            f"The dashboard needs more packages (missing: {', '.join(missing)}): "
            f"{how_to_install('app')}"
        )
        return FAILED
    flags = [f"--server.port={port}"] if port is not None else []
    flags += [f"--server.address={host}"] if host is not None else []
    # -P: do not import modules from the working directory.
    command = [
        sys.executable,
        "-P",
        "-m",
        "streamlit",
        "run",
        str(TOP / "app.py"),
        *flags,
        *options,
    ]
    if os.name != "posix":
        return subprocess.call(command)
    os.execv(sys.executable, command)


def site(*, out: str, docs: Flag = False) -> None:
    """Write the lecture, Live and every figure as static files.

    Args:
        out: A new or empty directory, or one with an earlier site, whose files are replaced.
        docs: Link to the documentation, built by make docs in docs/ there.
    """
    folder = Path(out)
    if folder.exists() and not (
        folder.is_dir() and (not any(folder.iterdir()) or (folder / "site.js").is_file())
    ):
        raise InvalidInput("--out", out, "a new or empty folder, or one with an earlier site")
    try:
        made = importlib.import_module(_SITE)
    except ImportError as error:
        need = f"an installation with the dashboard: {how_to_install('app')}"
        raise InvalidInput("site", error.name or "", need) from None
    written: set[Path] = set()

    def write(path: Path, text: str) -> None:
        write_whole(path, text, "--out")
        written.add(path)

    for part in made.write_site(folder, write, documentation=docs):
        complain(f"Written: {part}.")
    for earlier in {*folder.glob("data/*.js"), *folder.glob("figures/*.html")} - written:
        earlier.unlink()


def _read(path: Path) -> bytes:
    with file_errors("FILE", path), path.open("rb") as stream:
        return stream.read(_LIMITS.max_bytes + 1)  # one byte too many is refused by its size


def _report(cleaned: uploads.Cleaned, digest: str, decided: tuple[str, ...], as_json: bool) -> None:
    if as_json:
        facts = {
            "digest": digest,
            "num_samples": len(cleaned.x),
            "input_shape": list(cleaned.input_shape),
            "num_outputs": cleaned.num_outputs,
            "classes": cleaned.counts,
            "decided": decided,
        }
        print(json_format.dumps(facts))
        return
    for sentence in decided:
        print(printable(sentence))
    shape = " × ".join(map(str, cleaned.input_shape))
    print(f"{len(cleaned.x):,} samples, inputs {shape}, {cleaned.num_outputs} outputs")
    for name, count in cleaned.counts.items():
        print(f"  {printable(name)}: {count:,}")
    total = len(cleaned.x)
    num_samples = min(_DEFAULT_POINTS, total)
    if not cleaned.class_names:  # this experiment needs test points
        num_samples = min(num_samples, total - max(1, total // 5))
    settings = [
        "dataset.name=upload",
        f"dataset.digest={digest}",
        f"dataset.num_samples={num_samples}",
        "dataset.standardize=standard",
    ]
    preset = _CLASSES_PRESET
    if not cleaned.class_names:
        preset = _REGRESSION_PRESET
        num_test = min(_DEFAULT_POINTS, total - num_samples)
        settings += ["outputs=linear", "loss=square", f"num_test={num_test}"]
    print(
        f"\nStored as {digest}. For example:\n{command_name()} run {preset} --set "
        f"{' '.join(settings)}"
    )
