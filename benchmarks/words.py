"""How measured numbers are written: amounts, spreads, tables, exponents, and the mark where somebody else is faster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.plots import amount, superscript

Data = Mapping[str, Any]


def seconds(value: float) -> str:
    return amount(value, "s")


def count(value: float) -> str:
    """Two digits and a power of ten."""
    digits, power = f"{value:.1e}".split("e")
    return f"{digits.removesuffix('.0')}·10{superscript(int(power))}"


def size(value: float | None) -> str:
    """A number of bytes; below a mebibyte the operating system's own counting decides."""
    if value is None:
        return "–"
    return amount(value, "B") if value >= 2**20 else "< 1 MiB"


def timed(row: Data) -> str:
    """The median with its quartiles, where there were enough calls for them."""
    if row.get("repeats", 1) < 3 or "q1_s" not in row:
        return seconds(row["median_s"])
    return f"{seconds(row['median_s'])} ({seconds(row['q1_s'])} – {seconds(row['q3_s'])})"


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(header)
    lines = [head, ["---"] * len(head), *map(list, rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def times_faster(ratio: float, decision: str) -> str:
    """By how much we are faster; where we are not, the mark and what we do about it."""
    words = f"{ratio:.0f} ×" if ratio >= 100 else f"{ratio:.3g} ×"
    return words if ratio >= 1 else f"**{words}** ▼ [peer faster](decisions/{decision})"


def exponent(law: Data | None) -> str:
    """An exponent with the half-width of its 95 % interval."""
    if law is None:
        return "–"
    return f"{law['exponent']:.2f}" + (f" ± {law['interval']:.2f}" if law["interval"] is not None else " (no interval)")


def stamp(data: Data) -> str:
    """Where and when, with what, and how busy the machine was with other things."""
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
    """What the peers are, as measured."""
    of_peers: Data = data.get("peers", {})
    return "; ".join(", ".join(f"{name} {version}" for name, version in found.items()) for found in of_peers.values())
