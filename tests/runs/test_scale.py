"""Formulas of docs/scale.md against counts, and its exponents against costs at doubled sizes."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from linearity_lab.networks.sizes import LayerSize
from linearity_lab.runs import EXPERIMENTS, Counted, counts_of, peak_bytes
from linearity_lab.runs.costs import total_work
from linearity_lab.settings.grammar import settings, with_settings

ROOT = Path(__file__).resolve().parents[2]
# Letter → setting and a value at which it dominates the costs.
GROWING: dict[str, tuple[str, object]] = {
    "n": ("dataset.num_samples", 50_000),
    "m": ("widths", (4_000_000,)),
    "L": ("architecture.depth", 8),
    "T": ("training.max_steps", 4_000_000),
}
KEPT: dict[str, object] = {
    "dataset.num_samples": 4,
    "widths": (4,),
    "architecture.depth": 2,
    "training.max_steps": 2,
    "training.num_records": 2,
    "num_seeds": 1,
}
# Experiments with other names or bounds for these settings.
OWN_KEPT: dict[str, dict[str, object]] = {
    "attribution": {"num_removed": 2, "num_test": 1},
    "depth_width": {"depths": (2,), "trained_width": 10_000_000, "hessian_depth": 0},
    "early_time": {"values": (4,), "network.depth": 2, "dataset.num_test": 10},
    "generalization": {"samples": (4,), "num_test": 1, "dataset.name": "gaussian-mixture"},
    "horizon": {"max_steps": 2, "num_test": 1},
    "learning_rate": {"max_steps": 2},
}
OWN_GROWING: dict[str, dict[str, tuple[str, object]]] = {
    "attribution": {"n": ("dataset.num_samples", 450)},
    "depth_width": {"L": ("depths", (8,))},
    "early_time": {
        "m": ("values", (500_000,)),
        "L": ("network.depth", 4),
        "T": ("training.max_steps", 500_000),
    },
    "generalization": {"n": ("samples", (200,))},
    "hessian": {"n": ("dataset.num_samples", 900)},
    "horizon": {"T": ("max_steps", 400_000)},
    "learning_rate": {"n": ("dataset.num_samples", 200), "T": ("max_steps", 50_000)},
    "optimization": {"n": ("dataset.num_samples", 150)},
}
# Sizes at which hidden layers dominate, for growing L.
WIDE = {
    "widths": (3_000,),
    "values": (3_000,),
}


def written():
    """Table of exponents: experiment → column → cell."""
    text = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"\| experiment \| n \|.*?\n\n", text, re.DOTALL)
    head, _, *rows = (
        [cell.strip() for cell in line.strip("|").split("|")] for line in block.strip().splitlines()
    )
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def test_formulas_are_what_is_counted():
    for n, C, m, L, d in ((60, 3, 1000, 1, 10), (7, 5, 30, 3, 4), (1000, 10, 200, 2, 784)):
        sizes = [LayerSize(1, fan_in, m) for fan_in in [d] + [m] * (L - 1)]
        counted = Counted([*sizes, LayerSize(1, m, C)], n, C)
        F = d * m + (L - 1) * m**2 + m * C
        assert counted.multiplications == counted.num_weights == F
        assert counted.kernel.operations == 2 * (n * C) ** 2 * (L * m + C) + 2 * n**2 * (d + L * m)
        assert counted.step.operations == 6 * n * F
        assert counted.num_seen == n * (d + 5 * L * m + 4 * C)
        assert counted.num_views == n * (d + L * m + (2 * C + 1) * (L * m + C))


@pytest.mark.parametrize(
    "name", [name for name in EXPERIMENTS if name != "architectures"]
)  # counts as kernel_change
def test_exponents_are_those_of_the_costs(name):
    cells, kept = written()[name], EXPERIMENTS[name].spec()
    known = {setting.name for setting in settings(type(kept))}
    chosen = {
        key: value for key, value in {**KEPT, **OWN_KEPT.get(name, {})}.items() if key in known
    }

    def counted(spec):
        key = spec.point_keys()[-1]
        counts = counts_of(spec, key, True)
        return total_work(counts).operations, peak_bytes(counts)

    for size, (setting, largest) in {**GROWING, **OWN_GROWING.get(name, {})}.items():
        if cells[size] == "–":
            continue
        at = {
            **chosen,
            **({key: value for key, value in WIDE.items() if key in chosen} if size == "L" else {}),
        }
        twice = tuple(2 * each for each in largest) if isinstance(largest, tuple) else 2 * largest
        pairs = zip(
            *(counted(with_settings(kept, {**at, setting: value})) for value in (largest, twice)),
            strict=True,
        )
        operations, memory = (math.log2(after / before) for before, after in pairs)
        allowed = 0.25 if size == "L" else 0.15  # of L layers, L − 1 are between hidden layers
        assert operations == pytest.approx(float(cells[size]), abs=allowed), (
            f"{name}: operations in {size}"
        )
        if cells.get(f"memory: {size}", "–") != "–":
            assert memory == pytest.approx(float(cells[f"memory: {size}"]), abs=0.15), (
                f"{name}: memory in {size}"
            )
