"""An environment of its own for each peer, and one warm process in it for each comparison.

The peers do not share an environment with this project: neural-tangents needs a JAX of 2023, and PyTorch would be a
large requirement for a comparison alone. A process reads one JSON request per line and answers one JSON line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Self, cast

import numpy as np

from benchmarks.measure import Competitor, Measured, Settings

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parents[1] / ".peers"
NAMES = ("neural-tangents", "torch", "torchax")


def interpreter(name: str, python: str = sys.executable) -> str:
    """Return the Python of a peer's environment, which is made on first use from its pinned requirements.

    Raises:
        subprocess.CalledProcessError: where it cannot be made.
    """
    folder = ENVIRONMENTS / name
    made = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    stamp = folder / ".installed"  # only after pip succeeded, so that an interrupted installation is resumed
    wanted = requirements(name).read_text()
    if not stamp.exists() or stamp.read_text() != wanted:
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        pip = [str(made), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", str(requirements(name))], check=True)
        stamp.write_text(wanted)
    return str(made)


def requirements(name: str) -> Path:
    """Return the pinned packages of a peer's environment."""
    return HERE / f"{name.replace('-', '_')}.txt"


class Peer:
    """One warm process of a peer's environment."""

    def __init__(self, name: str, python: str, **variables: str):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = Path(self._folder.name)
        script = HERE / f"{name.replace('-', '_')}_side.py"
        self._process = subprocess.Popen(
            [python, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **variables},
        )

    def ask(self, request: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None) -> dict[str, Any]:
        """Return the answer to one request; arrays travel in a file.

        Raises:
            RuntimeError: when the process has ended; its complaint is on stderr.
        """
        if arrays is not None:
            request = {**request, "file": str(self.folder / "arrays.npz")}
            np.savez(request["file"], **arrays)  # type: ignore[arg-type]
        to, answers = cast(IO[str], self._process.stdin), cast(IO[str], self._process.stdout)
        try:
            to.write(json.dumps(request) + "\n")
            to.flush()
            line = answers.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise RuntimeError(f"the peer's process ended at {json.dumps(request)[:200]}")
        return json.loads(line)

    def packages(self) -> dict[str, str]:
        """Return versions of the peer's dependencies."""
        return self.ask({"packages": True})

    def competitor(self, name: str) -> Competitor:
        """Return the calls of this name, timed in the peer's process."""

        def call(weigh: bool) -> Measured:
            answer = self.ask({"time": name, "weigh": weigh})
            return Measured(answer["s"], answer.get("added_bytes"), answer)

        return call

    def competitors(self, names: Sequence[str], title: str = "{}") -> dict[str, Competitor]:
        """Return several calls, each under its title."""
        return {title.format(name): self.competitor(name) for name in names}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._process.__exit__(*error)  # closes its stdin, at which it ends, and waits for that
        self._folder.cleanup()


@contextmanager
def peers(settings: Settings, *names: str, **variables: str) -> Iterator[dict[str, Peer]]:
    """A warm process of each of these peers whose environment exists, with environment variables."""
    with ExitStack() as stack:
        at = settings.interpreters
        yield {name: stack.enter_context(Peer(name, at[name], **variables)) for name in names if name in at}
