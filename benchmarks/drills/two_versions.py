"""Two versions of the lab in turn on one store, each under a running server of the other.

The earlier version is the commit that wrote ``tests/runs/stores/0.2.0``, taken out of Git; its
store is the file of that folder. Two minutes.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import cyclopts
import psutil

from benchmarks.drills.report import conclude, is_intact
from benchmarks.drills.served_app import FLAGS, answer_of, free_port
from benchmarks.measure import ROOT, Row

EARLIER = "44490e24"  # version 0.2.0
FIXTURE = ROOT / "tests" / "runs" / "stores" / "0.2.0"
PATIENCE_S = 120.0
SWEEP = {
    "experiment": "kernel_change",
    "widths": [4, 5],
    "num_seeds": 1,
    "outputs": ["linear"],
    "training": {"max_steps": 5},
    "dataset": {"num_samples": 6},
}


@dataclass(frozen=True)
class Version:
    """A version of the lab on disk.

    Attributes:
        tree: its code.
        module: ``python -m`` this is its command line.
        store: the SQLite file that both versions use.
    """

    tree: Path
    module: str
    store: Path

    @property
    def _environment(self) -> dict[str, str]:
        folders = {"XDG_DATA_HOME": str(self.store.parent), "PYTHONPATH": str(self.tree)}
        return {**os.environ, **folders, "LINEARITY_LAB_STORE": str(self.store)}

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run its command line."""
        return subprocess.run(
            [sys.executable, "-m", self.module, *arguments],
            cwd=self.tree,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def num_runs(self) -> int:
        """Return the number of runs that its command line lists; −1 if it refuses the file."""
        listed = self.command("list", "--limit", "1")
        if listed.returncode != 0:
            return -1
        found = re.search(r"(\d+) runs?, ", listed.stdout)
        return int(found.group(1)) if found else 0

    def refusal(self) -> list[str]:
        """Return the lines that its command line prints when it refuses the file; else none."""
        listed = self.command("list")
        lines = [line for line in listed.stderr.splitlines() if line.strip()]
        return lines if listed.returncode else []

    @contextmanager
    def server(self) -> Iterator[str]:
        """Serve its dashboard on the file until the block ends; yield the address."""
        address = f"127.0.0.1:{free_port()}"
        port = address.rpartition(":")[2]
        command = [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}"]
        with subprocess.Popen(
            [*command, *FLAGS],
            cwd=self.tree,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                until(lambda: is_ready(address))
                yield address
            finally:
                children = psutil.Process(process.pid).children(recursive=True)
                process.terminate()
                process.wait(30)
                psutil.wait_procs(children, timeout=30)


def is_ready(address: str) -> bool:
    """Return whether the server at this address reads and writes its store."""
    try:
        return answer_of(f"http://{address}/api/ready")[0] == 200
    except OSError:
        return False


def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the server is not ready")
        time.sleep(0.5)


def take_out(revision: str, folder: Path) -> None:
    """Write the files of a commit into a folder."""
    done = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")


def is_computed(version: Version, seed: int) -> bool:
    """Run a small sweep by the command line of a version; return whether it has completed."""
    spec = version.store.with_name("spec.json")
    spec.write_text(json.dumps({**SWEEP, "seed": seed}))
    return version.command("run", str(spec), "--no-json").returncode == 0


def file_now(store: Path) -> tuple[int, int, int]:
    """Return what changes when a file is renamed or migrated: inode, layout and mark."""
    header = store.read_bytes()[:100]
    return store.stat().st_ino, int.from_bytes(header[60:64]), int.from_bytes(header[68:72])


def under_a_server(serving: Version, visiting: Version, seed: int) -> Row:
    """Serve the file by one version, and call the command line of both; return what happens."""
    with serving.server() as address:
        before = file_now(serving.store)
        first_refusal = visiting.refusal()
        done = is_computed(serving, seed)
        second_refusal = visiting.refusal()
        return {
            "layout": before[1],
            "refusals": [first_refusal, second_refusal],
            "computes_a_run": done,
            "num_runs": serving.num_runs(),
            "is_untouched": file_now(serving.store) == before,
            "server_is_ready": is_ready(address),
        }


def drill(earlier: Version, later: Version) -> Row:
    """Use the file by both versions in turn; the copy that the migration keeps, too."""
    store = earlier.store
    num_at_first = earlier.num_runs()
    earlier_serves = under_a_server(earlier, later, seed=1)
    later_serves = under_a_server(later, earlier, seed=2)
    beside = [path for path in store.parent.iterdir() if path.name.startswith(store.name)]
    copies = [path for path in beside if path.suffix.startswith(".layout-")]
    found = {"num_runs_at_first": num_at_first, "earlier_serves": earlier_serves}
    found |= {"later_serves": later_serves, "num_copies": len(copies)}
    found["set_aside"] = [path.name for path in beside if ".damaged" in path.name]
    found["store_is_intact"] = is_intact(store)
    for copy in copies:
        found["copy_under_the_earlier_version"] = under_a_server(
            replace(earlier, store=copy), replace(later, store=copy), seed=3
        )
    return found


def claims(found: Row) -> dict[str, bool]:
    """Return the claims of this drill."""
    before = found["num_runs_at_first"]
    earlier = found["earlier_serves"]
    later = found["later_serves"]
    copy = found.get("copy_under_the_earlier_version", {})
    turns = (earlier, later, copy)
    refusals = [lines for turn in turns for lines in turn.get("refusals", [[]])]
    return {
        "the other version refuses the file under a server, in one sentence": all(
            len(lines) == 1 for lines in refusals
        ),
        "it neither renames nor changes the file": all(
            turn.get("is_untouched", False) for turn in turns
        )
        and not found["set_aside"],
        "the server stays ready and computes": all(
            turn.get("server_is_ready", False) and turn["computes_a_run"] for turn in turns
        ),
        "every run is kept": (earlier["num_runs"], later["num_runs"], copy.get("num_runs"))
        == (before + 1, before + 2, before + 2),
        "the file is migrated once, and the earlier version serves the copy": found["num_copies"]
        == 1,
        "the store is intact": found["store_is_intact"],
    }


def main() -> None:
    """Use one store by version 0.2.0 and by this version, in turn."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "earlier"
        take_out(EARLIER, tree)
        store = Path(folder) / "data" / "runs.sqlite"
        store.parent.mkdir()
        shutil.copy(FIXTURE / "runs.sqlite", store)
        earlier = Version(tree, "ntk_core", store)
        found = drill(earlier, Version(ROOT, "linearity_lab", store))
    conditions = {"earlier": EARLIER, "took_s": round(time.monotonic() - began)}
    conclude("two_versions", {**conditions, **found}, claims(found))


if __name__ == "__main__":
    cyclopts.run(main)
