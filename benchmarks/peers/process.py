"""A separate environment and a warm process for each peer.

Peers do not share an environment with this project: neural-tangents needs a JAX of 2023, and
PyTorch would be a large requirement for a comparison alone. A process reads one JSON request per
line and answers one JSON line.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Self, cast

import numpy as np

from benchmarks.measure import Competitor, Measured, Row, Settings

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parents[1] / ".peers"
NAMES = ("neural-tangents", "torch", "torchax")


def interpreter(name: str, python: str = sys.executable) -> str:
    """Return the Python of a peer's environment, installed or updated.

    Raises:
        subprocess.CalledProcessError: if the installation fails.
    """
    folder = ENVIRONMENTS / name
    made = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    uv = [sys.executable, "-m", "uv"]
    subprocess.run(
        [*uv, "venv", "--quiet", "--allow-existing", "--python", python, str(folder)], check=True
    )
    subprocess.run(
        [*uv, "pip", "install", "--quiet", "--python", made, "-r", requirements(name)], check=True
    )
    return str(made)


def requirements(name: str) -> Path:
    """Return the pinned packages of a peer's environment."""
    return HERE / f"{name.replace('-', '_')}.txt"


class Peer:
    """One warm process of a peer's environment."""

    def __init__(self, name: str, python: str, **variables: str):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = Path(self._folder.name)
        command = [python, str(HERE / f"{name.replace('-', '_')}_side.py")]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **variables},
        )

    def ask(self, request: Row, arrays: Mapping[str, np.ndarray] | None = None) -> Row:
        """Return the answer to one request; arrays travel in a file.

        Raises:
            RuntimeError: if the process has ended; its error is on stderr.
        """
        if arrays is not None:
            request = {**request, "file": str(self.folder / "arrays.npz")}
            np.savez(request["file"], **arrays)  # type: ignore[arg-type]
        to = cast(IO[str], self._process.stdin)
        answers = cast(IO[str], self._process.stdout)
        try:
            to.write(json.dumps(request) + "\n")
            to.flush()
            line = answers.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise RuntimeError(f"the peer's process ended at {json.dumps(request)[:200]}")
        answer: Row = json.loads(line)
        return answer

    def competitor(self, name: str) -> Competitor:
        """Return the calls of this name, timed in the peer's process."""

        def call(weigh: bool) -> Measured:
            answer = self.ask({"time": name, "weigh": weigh})
            return Measured(answer["s"], answer.get("added_bytes"), answer)

        return call

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with self._process:  # closes its stdin, which ends it, and waits
            pass
        self._folder.cleanup()


class Peers(dict[str, Peer]):
    """Warm peers by name, those whose environments exist."""

    def packages(self) -> Row:
        """Return versions of every peer's dependencies."""
        return {name: peer.ask({"packages": True}) for name, peer in self.items()}

    def competitors(
        self,
        name: str,
        request: Row,
        arrays: Mapping[str, np.ndarray] | None = None,
        title: str = "{}",
    ) -> dict[str, Competitor]:
        """Return the calls that a peer prepares, by title; none without it."""
        if name not in self:
            return {}
        calls = self[name].ask(request, arrays)["calls"]
        return {title.format(call): self[name].competitor(call) for call in calls}


@contextmanager
def peers(settings: Settings, *names: str, **variables: str) -> Iterator[Peers]:
    """Start these peers with environment variables, where their environments exist."""
    with ExitStack() as stack:
        at = settings.interpreters
        yield Peers(
            {
                name: stack.enter_context(Peer(name, at[name], **variables))
                for name in names
                if name in at
            }
        )
