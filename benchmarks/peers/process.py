"""An environment of its own for each peer, and one warm process in it for each comparison.

The peers do not share an environment with this project: neural-tangents needs a JAX of 2023, and PyTorch would be a
large requirement for a comparison alone. A process reads one JSON request per line and answers one JSON line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, cast

from benchmarks.measure import Competitor, Measured

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parents[1] / ".peers"
NAMES = ("neural-tangents", "torch", "torchax")


def interpreter(name: str, python: str = sys.executable) -> str:
    """The Python of a peer's environment, which is made on first use from its pinned requirements.

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
    """The pinned packages of a peer's environment."""
    return HERE / f"{name.replace('-', '_')}.txt"


class Peer:
    """One warm process of a peer's environment."""

    def __init__(self, python: str, script: str, variables: Mapping[str, str] | None = None):
        self._process = subprocess.Popen(
            [python, str(HERE / script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(variables or {})},
        )

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one request.

        Raises:
            RuntimeError: when the process has ended; what it complained about is on stderr.
        """
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
        """Versions of the peer's dependencies."""
        return self.ask({"packages": True})

    def competitor(self, name: str, answers: dict[str, dict[str, Any]]) -> Competitor:
        """Calls of this name, timed in the peer's process; ``answers`` keeps what the last call found."""

        def call(weigh: bool) -> Measured:
            answers[name] = self.ask({"time": name, "weigh": weigh})
            return Measured(answers[name]["s"], answers[name].get("added_bytes"))

        return call

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.__exit__(kind, error, trace)  # closes its stdin, at which it ends, and waits for that
