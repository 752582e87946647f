"""Execution of the notebooks.

``python -m tests.examples.notebooks`` writes their outputs into them.

The kernel's path contains a folder with the lab's entry points, so that no
installation is necessary.
"""

from __future__ import annotations

import os
import re
import tempfile
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
# For the environment of make torch.
WITH_TORCH = [
    ROOT / "examples" / "is_my_finetuning_linear.ipynb",
    ROOT / "examples" / "do_my_finetunings_add.ipynb",
]
NOTEBOOKS = sorted(set((ROOT / "examples").glob("*.ipynb")) - set(WITH_TORCH))
FIGURE = "application/vnd.plotly.v1+json"


def stated_entry_points() -> dict[str, dict[str, str]]:
    """Group → name → target of each entry point in an installation."""
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: dict[str, dict[str, str]] = stated["project"]["entry-points"]
    return found


def as_if_installed(folder: Path) -> dict[str, str]:
    """Environment in which a program finds the lab and its entry points."""
    stated = stated_entry_points()
    lines = [
        f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in each.items())
        for group, each in stated.items()
    ]
    (folder / "linearity_lab-0.dist-info").mkdir(exist_ok=True)
    (folder / "linearity_lab-0.dist-info" / "METADATA").write_text(
        "Name: linearity-lab\nVersion: 0\n"
    )
    (folder / "linearity_lab-0.dist-info" / "entry_points.txt").write_text(
        "".join(lines), encoding="utf-8"
    )
    paths = {"PYTHONPATH": os.pathsep.join((str(ROOT), str(folder))), "JUPYTER_PLATFORM_DIRS": "1"}
    places = {name: str(folder) for name in ("XDG_DATA_HOME", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR")}
    renderer = {"PLOTLY_RENDERER": "plotly_mimetype"}  # without Plotly's script of 4.7 MB
    return {
        **os.environ,
        **paths,
        **places,
        **renderer,
        "LINEARITY_LAB_STORE": str(folder / "results.sqlite"),
    }


def executed(book: nbformat.NotebookNode, folder: Path) -> nbformat.NotebookNode:
    """Execute the notebook in ``folder`` and return it with its outputs."""
    client = NotebookClient(
        book, timeout=900, record_timing=False, resources={"metadata": {"path": str(folder)}}
    )
    client.execute(env=as_if_installed(folder))
    return book


def smaller(source: str) -> str:
    """Replace a cell's settings by two small widths, one output and one network."""
    source = re.sub(r"\[\d+(, \d+)+\]", "[4, 8]", source)
    return source.replace('"networks": 2', '"networks": 1').replace(
        '"linear", "softmax"', '"linear"'
    )


def shown_in(book: nbformat.NotebookNode, mime: str) -> list[Any]:
    """All displayed outputs of this MIME type."""
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    return [output.data[mime] for output in outputs if mime in output.get("data", {})]


if __name__ == "__main__":
    for path in WITH_TORCH if find_spec("torchax") else NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            book = executed(nbformat.read(path, as_version=4), Path(folder))
        book.metadata.pop("language_info", None)
        nbformat.write(book, path)
        print(path.name, path.stat().st_size)
