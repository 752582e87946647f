"""How docs/benchmarks.md writes measured numbers: filters of its template."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.coverage import EXPONENT
from benchmarks.estimates import CLAIMS
from benchmarks.plots import amount, superscript

Data = Mapping[str, Any]


def seconds(value: float) -> str:
    return amount(value, "s")


def count_of(value: float) -> str:
    """Two digits and a power of ten."""
    digits, power = f"{value:.1e}".split("e")
    return f"{digits.removesuffix('.0')}·10{superscript(int(power))}"


def size(value: float | None) -> str:
    """A number of bytes; below a mebibyte the operating system's own counting decides."""
    if value is None:
        return "–"
    return amount(value, "B") if value >= 2**20 else "< 1 MiB"


def timed(row: Data) -> str:
    """The median with its quartiles, if there were enough calls."""
    if row.get("repeats", 1) < 3 or "q1_s" not in row:
        return seconds(row["median_s"])
    return f"{seconds(row['median_s'])} ({seconds(row['q1_s'])} – {seconds(row['q3_s'])})"


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    head = list(header)
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *map(list, rows)])


def faster(ratio: float, decision: str) -> str:
    """How many times faster we are; if a peer is faster, a mark and the decision about it."""
    words = f"{ratio:.0f} ×" if ratio >= 100 else f"{ratio:.3g} ×"
    return words if ratio >= 1 else f"**{words}** ▼ [peer faster](decisions/{decision})"


def exponent(law: Data | None) -> str:
    """An exponent with the half-width of its 95 % interval."""
    if law is None:
        return "–"
    return f"{law['exponent']:.2f}" + (f" ± {law['interval']:.2f}" if law["interval"] is not None else " (no interval)")


def stamp(data: Data) -> str:
    """Machine, versions, date, and how busy other programs kept the machine."""
    found = data["environment"]
    packages = ", ".join(f"{name} {version}" for name, version in found["packages"].items())
    return (
        f"{found['cores']} cores ({found['processor']}), Python {found['python']}, {packages}, {found['date']}; "
        f"{_load(data)}."
    )


def _load(data: Data) -> str:
    load = data.get("load")
    if load is None:
        return f"load {data['environment']['load_at_start']:.1f} at the start"
    words = f"load {load['at_start']:.1f} at the start, {load['at_end']:.1f} at the end"
    if load["busy_by_others"] is not None:
        words += f", {load['busy_by_others']:.2f} cores busy with other programs"
    return words + (" — **too many for these numbers to be trusted**" if load["high"] else "")


def versions(data: Data) -> str:
    """Versions of the peers."""
    of_peers: Data = data.get("peers", {})
    return "; ".join(", ".join(f"{name} {version}" for name, version in found.items()) for found in of_peers.values())


def names_of(cases: Iterable[Data]) -> list[str]:
    """Every competitor of some cases, in order of appearance."""
    return list(dict.fromkeys(name for row in cases for name in row["times"]))


def groups_of_estimates(rows: list[Data]) -> dict[str, list[Data]]:
    """Title → rows: experiments, presets, random specs, all."""
    names = sorted({row["experiment"] for row in rows})
    groups = {name: [row for row in rows if row["experiment"] == name] for name in names}
    groups["presets"] = [row for row in rows if not row["name"].startswith("random")]
    groups["random specs"] = [row for row in rows if row["name"].startswith("random")]
    return {**groups, "all": rows}


def within(rows: list[Data]) -> list[str]:
    """For every claim about estimates: the median ratio, and the share of ratios within its factor."""
    cells = []
    for actual, estimated, factor in CLAIMS:
        ratios = [row[actual] / row[estimated] for row in rows]
        share = sum(1 / factor <= ratio <= factor for ratio in ratios) / len(ratios)
        cells += [f"{statistics.median(ratios):.2f}", f"{share:.0%}"]
    return cells


def coverage_of(data: Data) -> Data:
    """Cells of the table of intervals: spans of coverage by regime, widths against the first method by seeds."""
    rows = data["rows"]
    regimes = list(dict.fromkeys(row["regime"] for row in rows))
    seeds = list(dict.fromkeys(row["seeds"] for row in rows))
    methods = list(rows[0]["methods"])

    def span(regime: str, method: str, name: str) -> str:
        found = [row["methods"][method][name] for row in rows if row["regime"] == regime]
        return f"{min(found):.1%} – {max(found):.1%}"

    def width(method: str, number: int) -> str:
        found = [row["methods"] for row in rows if row["regime"] == regimes[0] and row["seeds"] == number]
        return f"{statistics.mean(row[method]['half_width'] / row[methods[0]]['half_width'] for row in found):.2f} ×"

    return {
        "regimes": regimes,
        "seeds": seeds,
        "seed_titles": [f"width, {number} seeds" for number in seeds],
        "widths": list(dict.fromkeys(row["widths"] for row in rows)),
        "error": (0.05 * 0.95 / data["trials"]) ** 0.5,
        "moved": [row["exponent_of_kept"] - EXPONENT for row in rows if row["regime"] == regimes[-1]],
        "bends": [row["bends"] for row in rows],
        "rows": [
            (
                method,
                [span(regime, method, "covers") for regime in regimes]
                + [span(regimes[-1], method, "covers_of_kept")]
                + [width(method, number) for number in seeds],
            )
            for method in methods
        ],
    }
