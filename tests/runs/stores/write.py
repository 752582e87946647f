"""Write the stores, exports and directories of the current version, which later versions must read.

``python -m tests.runs.stores.write`` writes ``tests/runs/stores/VERSION``. The release
process calls it once per version; the files of a released version never change afterwards.
README.md describes them.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sqlite3
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from linearity_lab.cli import main
from linearity_lab.cli.run_directory import RunDirectory
from linearity_lab.experiments.linearity_report.point import LinearityReportSpec
from linearity_lab.experiments.own_model.compute import computed_by
from linearity_lab.experiments.own_model.point import OwnModelSpec
from linearity_lab.model_files import load_model
from linearity_lab.runs import (
    EXPERIMENTS,
    Computation,
    ExperimentSpec,
    Spec,
    canonical_json,
    run,
    spec_digest,
)
from linearity_lab.runs.events import Ended, PointFinished
from linearity_lab.runs.store import Mark, Store, UnfinishedJob
from linearity_lab.settings.grammar import with_settings
from ntk_core._version import __version__
from tests.smallest import smallest

HERE = Path(__file__).parent
WIDTH, LARGER_WIDTH = 6, 10  # even, for symmetric starts
STORE, EXPORT, RUNS = "runs.sqlite", "runs.jsonl", "runs.json"
MODEL = '''"""A user's model."""

import jax
import jax.numpy as jnp


def model(width, key):
    w = jax.random.normal(key, (10, width))
    v = jax.random.normal(key, (width, 3))
    return lambda p, x: jnp.tanh(x @ p["w"] / 3) @ p["v"] / width**0.5, {"w": w, "v": v}
'''
FLOWERS = "length,width,kind\n" + "".join(
    f"{1 + 0.1 * row},{2 - 0.05 * row},{'rose' if row % 2 else 'tulip'}\n" for row in range(20)
)


@dataclass(frozen=True)
class WrittenRun:
    """Expected facts of one stored run."""

    digest: str
    experiment: str
    status: str
    keys: tuple[str, ...]
    num_points: int
    private: bool = False


def finished_spec(name: str) -> Spec:
    """Settings of a small run of an experiment, based on its first preset."""
    spec = EXPERIMENTS[name].presets[0].spec
    return with_settings(spec, {**smallest(spec), "seed": 7})


def half_finished_spec(name: str) -> Spec:
    """Settings of a small run of an experiment with at least two points."""
    spec = EXPERIMENTS[name].spec()
    small = smallest(spec)
    small[type(spec).swept_field] = (WIDTH, LARGER_WIDTH)
    return with_settings(spec, small)


class Writer:
    """Writes runs into the store, the directories and the list of runs of one folder."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.written: list[WrittenRun] = []

    def finish(self, spec: Spec, arguments: list[str] | None = None) -> None:
        """Compute a whole run by the command line, with a directory of files."""
        file = self.folder / "spec.json"
        file.write_text(canonical_json(spec))
        directory = self.folder / "out" / spec.experiment
        command = arguments or ["run", str(file)]
        assert main([*command, "--out", str(directory), "--json"]) == 0, spec
        file.unlink()
        line = json.loads((directory / "run.jsonl").read_text())
        stored = Store().runs(limit=1).runs[0]
        assert stored.spec is not None
        keys = stored.spec.point_keys()
        assert len(line["points"]) == len(keys)
        self._add(stored.spec, "completed", len(keys))

    def half_finish(
        self, spec: Spec, *, is_cancelled: bool, computation: Computation | None = None
    ) -> None:
        """Compute the first point of a run; then cancel it, or end as after a crash."""
        points = Store().points(spec)
        finished: list[str] = []
        events = run(
            spec, points=points, should_stop=lambda: bool(finished), computation=computation
        )
        last = None
        for event in events:
            last = event
            if isinstance(event, PointFinished):
                finished.append(event.key)
                if not is_cancelled:
                    break
        if is_cancelled:
            assert isinstance(last, Ended)
            assert last.status == "cancelled", last.reason
            assert last.result is not None
            Store().save_result(last.result)
            name = (
                f"{spec.experiment}-private" if spec.is_private else f"{spec.experiment}-cancelled"
            )
            directory = RunDirectory(self.folder / "out" / name)
            directory.begin(spec)
            directory.write(last.result)
        assert 0 < len(finished) < len(spec.point_keys())
        self._add(spec, "cancelled" if is_cancelled else "started", len(finished))

    def begin(self, spec: Spec) -> None:
        """Store the settings of a run without any point."""
        Store().save_spec(spec)
        self._add(spec, "started", 0)

    def _add(self, spec: Spec, status: str, num_points: int) -> None:
        keys = spec.point_keys()
        facts = (spec_digest(spec), spec.experiment, status, keys, num_points, spec.is_private)
        self.written.append(WrittenRun(*facts))
        print(f"{spec.experiment}: {status}, {num_points} of {len(keys)} points", flush=True)


def write(folder: Path) -> None:
    """Write all files of the current version into an empty folder."""
    folder.mkdir(parents=True)
    os.environ["LINEARITY_LAB_STORE"] = str(folder.with_name("in-use.sqlite"))
    writer = Writer(folder)
    for number, name in enumerate(EXPERIMENTS):
        writer.finish(finished_spec(name))
        writer.half_finish(half_finished_spec(name), is_cancelled=number % 2 == 0)
    _write_own_models(writer)
    _write_private_run(writer)
    _write_marks(writer.written)
    _write_job(writer.written)
    assert main(["export", "--all", "--out", str(folder / EXPORT)]) == 0
    expected = [each.__dict__ for each in writer.written]
    (folder / RUNS).write_text(json.dumps(expected, indent=1) + "\n")
    _copy_store(folder / STORE)


def _write_own_models(writer: Writer) -> None:
    """Write finished and unfinished runs of the commands ``own`` and ``report``."""
    model = writer.folder / "model.py"
    model.write_text(MODEL)
    drawn = np.random.default_rng(0)
    w0 = {"w": drawn.standard_normal((10, 4)), "v": drawn.standard_normal((4, 3))}
    w1 = {name: array + 0.01 for name, array in w0.items()}
    checkpoints = []
    for name, weights in {"before": w0, "after": w1}.items():
        path = writer.folder / f"{name}.npz"
        arrays = {key: array.astype("float32") for key, array in weights.items()}
        np.savez(path, **arrays)
        checkpoints.append(str(path))
    sizes = ["--widths", "4", "--num-seeds", "1", "--num-samples", "6", "--max-steps", "2"]
    writer.finish(OwnModelSpec(), ["own", str(model), *sizes])
    options = ["--set", "width=4", "dataset.num_samples=6"]
    writer.finish(LinearityReportSpec(), ["report", str(model), *checkpoints, *options])
    finished = Store().spec(writer.written[-2].digest)
    assert isinstance(finished, OwnModelSpec)
    loaded, path, _ = load_model(str(model))
    half = with_settings(finished, {"widths": (4, 5)})
    writer.half_finish(half, is_cancelled=False, computation=computed_by(loaded, path))
    writer.begin(LinearityReportSpec(width=5))  # has one point only


def _write_private_run(writer: Writer) -> None:
    """Write a run on the uploaded data ``flowers.csv``; only their owner sees it."""
    file = writer.folder / "flowers.csv"
    file.write_text(FLOWERS)
    digest = _upload(file)
    chosen = {"dataset.name": "upload", "dataset.digest": digest, "outputs": ("linear",)}
    spec = with_settings(half_finished_spec("kernel_change"), chosen)
    writer.half_finish(spec, is_cancelled=True)


def _upload(file: Path) -> str:
    """Store an uploaded file and return its digest."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(["data", str(file)]) == 0
    return printed.getvalue().split("dataset.digest=")[1].split()[0]


def _write_marks(runs: list[WrittenRun]) -> None:
    Store().write_mark(runs[0].digest, Mark("first run", "a note\nof two lines", True))


def _write_job(runs: list[WrittenRun]) -> None:
    """Store the waiting job of the first unfinished run of a server."""
    unfinished = next(each for each in runs if each.status == "started")
    spec = Store().spec(unfinished.digest)
    assert isinstance(spec, ExperimentSpec)
    Store().write_jobs([UnfinishedJob(spec, "owner", submitted_s=1.0, spent_s=2.0, allowed_s=60.0)])


def _copy_store(file: Path) -> None:
    """Write the store as one small file, without a write-ahead log."""
    Store().back_up(file)
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("VACUUM")
        connection.execute("PRAGMA journal_mode=DELETE")


if __name__ == "__main__":
    target = HERE / __version__
    assert not target.exists(), f"{target} exists; files of a released version do not change."
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["XDG_DATA_HOME"] = scratch
        write(Path(scratch) / "written")
        shutil.move(Path(scratch) / "written", target)
