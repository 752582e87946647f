"""The notebooks of examples/ run, show what they promise, and come with outputs that are small and their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tests.examples.notebooks import NOTEBOOKS, ROOT, as_if_installed, executed, html_of

PROMISED = {
    "first_figure": ("<svg", "KernelChangeSpec", "Completed: 4 of 4 widths", "of memory for the largest"),
    "held_against_the_paper": ("<svg", "HessianSpec", "Completed: "),
    "own_model": ("Residual", "∝ m^", "FullyConnected", "parameters"),
}


def test_their_outputs_are_there_small_and_without_errors():
    assert [path.stem for path in NOTEBOOKS] == sorted(PROMISED)
    for path in NOTEBOOKS:
        assert path.stat().st_size <= 200_000
        book = nbformat.read(path, as_version=4)
        nbformat.validate(book)
        code = [cell for cell in book.cells if cell.cell_type == "code"]
        assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
        assert not [
            each
            for cell in code
            for each in cell.outputs
            if each.output_type in ("error", "stream") and each.get("name") != "stdout"
        ]
        shown = html_of(book)
        assert [words for words in PROMISED[path.stem] if words not in shown] == []
        assert "<script" not in shown
        assert str(ROOT) not in path.read_text(encoding="utf-8")


@pytest.mark.slow
def test_they_run_and_show_what_they_promise(tmp_path):
    for path in NOTEBOOKS:
        shown = html_of(executed(path, tmp_path))
        assert [words for words in PROMISED[path.stem] if words not in shown] == []


@pytest.mark.slow
def test_the_marimo_notebook_runs_as_a_program(tmp_path):
    command = [sys.executable, str(Path(ROOT) / "examples" / "marimo_width.py")]
    ended = subprocess.run(
        command, cwd=tmp_path, env=as_if_installed(tmp_path), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
