"""The section of docs/benchmarks.md on intervals that hold."""

from __future__ import annotations

from benchmarks.coverage import EXPONENT
from benchmarks.words import Data, table


def coverage(data: Data) -> str:
    regimes = list(dict.fromkeys(row["regime"] for row in data["rows"]))
    methods = list(data["rows"][0]["methods"])
    rows = []
    for method in methods:
        cells = [_span(data, regime, method, "covers") for regime in regimes]
        kept = _span(data, regimes[-1], method, "covers_of_kept")
        name = f"**{method}**" if method == data["chosen"] else method
        rows.append([name, *cells, kept, *(_width(data, method, methods[0], seeds) for seeds in _seeds(data))])
    bends = [row["said_to_bend"] for row in data["rows"]]
    sizes = ", ".join(dict.fromkeys(f"{row['widths']}" for row in data["rows"]))
    seeds = ", ".join(map(str, _seeds(data)))
    moved = [row["exponent_of_kept"] - EXPONENT for row in data["rows"] if row["regime"] == regimes[-1]]
    return "\n\n".join(
        [
            "## Intervals that hold",
            f"How many of {data['trials']:,} simulated 95 % intervals hold the true exponent −{-EXPONENT:g}, the "
            f"least and the most over {seeds} seeds and {sizes} widths of two decades "
            f"(`benchmarks/coverage.py`; a share has a standard error of {(0.05 * 0.95 / data['trials']) ** 0.5:.1%}). "
            "In bold what every exponent of the lab has. Last, the mean width of the intervals on independent runs "
            "against that of ordinary least squares.",
            table(
                ["interval", *regimes, f"{regimes[-1]}, exponent of the runs kept"]
                + [f"width, {number} seeds" for number in _seeds(data)],
                rows,
            ),
            f"Where runs are dropped by their value, the exponent of those kept is itself off by {min(moved):.3f} to "
            f"{max(moved):.3f}, and no interval made from them can know: theirs is conditional on the runs that count, "
            "and both exponents are shown. A straight line is called bending in "
            f"{min(bends):.1%} to {max(bends):.1%} of sweeps.",
        ]
    )


def _seeds(data: Data) -> list[int]:
    return list(dict.fromkeys(row["seeds"] for row in data["rows"]))


def _span(data: Data, regime: str, method: str, name: str) -> str:
    found = [row["methods"][method][name] for row in data["rows"] if row["regime"] == regime]
    return f"{min(found):.1%} – {max(found):.1%}"


def _width(data: Data, method: str, against: str, seeds: int) -> str:
    first = data["rows"][0]["regime"]
    rows = [row["methods"] for row in data["rows"] if row["regime"] == first and row["seeds"] == seeds]
    ratios = [row[method]["half_width"] / row[against]["half_width"] for row in rows]
    return f"{sum(ratios) / len(ratios):.2f} ×"
