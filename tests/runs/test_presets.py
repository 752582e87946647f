"""Presets as tables beside their experiment: changes from the defaults, and the paper's sizes."""

from __future__ import annotations

import pytest

from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.runs._table import presets_beside
from ntk_core.settings.grammar import InvalidSpec

TABLES = """
our_choice = "All of it."

[one]
title = "One"
claim = "It falls."
source = "A paper, Fig. 1"

[one.spec]
widths = [30, 100]
architecture = { kind = "bottleneck", depth = 3 }

[one.paper]
architecture = { depth = 5 }
"""


def beside(tmp_path, text):
    (tmp_path / "presets.toml").write_text(text, encoding="utf-8")
    return presets_beside(str(tmp_path / "__init__.py"), KernelChangeSpec)


def test_preset_states_differences_from_defaults_and_paper(tmp_path):
    (one,) = beside(tmp_path, TABLES)
    assert (one.name, one.title, one.claim, one.source) == ("one", "One", "It falls.", "A paper, Fig. 1")
    assert one.our_choice == "All of it."
    assert one.spec.widths == one.paper_spec.widths == (30, 100)
    assert (one.spec.architecture.depth, one.paper_spec.architecture.depth) == (3, 5)
    assert one.paper_spec.architecture.kind == "bottleneck"


def test_an_unknown_setting_and_missing_words_are_refused(tmp_path):
    with pytest.raises(InvalidSpec, match="wdths: "):
        beside(tmp_path, TABLES.replace("widths", "wdths"))
    with pytest.raises(TypeError, match="claim"):
        beside(tmp_path, TABLES.replace('claim = "It falls."', ""))
