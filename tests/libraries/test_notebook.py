"""The notebook on fine-tuning runs; its text agrees with its numbers (make torch)."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("torchax", reason="make torch installs it")
nbformat = pytest.importorskip("nbformat", reason="make torch installs it")

from tests.examples.notebooks import WITH_TORCH, executed, shown_in  # noqa: E402


def measured(book) -> list[tuple[float, float]]:
    """(output error, ΔK) of small rate, large rate and adapter, as printed."""
    printed = book.cells[-2].outputs[0].text
    return [(float(a), float(b)) for a, b in re.findall(r"output error ([\d.]+), ΔK ([\d.]+)", printed)]


def test_its_text_agrees_with_its_numbers(tmp_path):
    book = nbformat.read(WITH_TORCH[0], as_version=4)
    committed = measured(book)
    computed = executed(book, tmp_path)
    for small, large, adapter in (committed, measured(computed)):
        assert small[0] < 0.1
        assert min(large[0], adapter[0]) > 0.5
        assert adapter[1] > large[1] > small[1]
    assert measured(computed)[0] == pytest.approx(committed[0], rel=0.05)
    assert "num_params=192," in str(computed.cells[-4].outputs[-1].data["text/plain"])
    verdicts = [re.search(r"<p[^>]*>(\w+(?: \w+)*):", each) for each in shown_in(computed, "text/html")]
    assert [each[1] for each in verdicts if each] == ["Linear", "Not linear", "Not linear"]
