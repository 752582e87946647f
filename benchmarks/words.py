"""Format of measured numbers in tables."""

from collections.abc import Iterable, Mapping
from typing import Any

from ntk_core.numbers import power_of_ten

Data = Mapping[str, Any]
STEPS: dict[str, tuple[tuple[float, str], ...]] = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "B": ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1, "B")),
}


def amount(value: float, unit: str) -> str:
    """Format seconds or bytes with a unit that keeps the number short."""
    scale, name = next((step for step in STEPS[unit] if value >= step[0] * 0.9999), STEPS[unit][-1])
    return f"{value / scale:.3g} {name}"


def seconds(value: float) -> str:
    return amount(value, "s")


def size(value: float | None) -> str:
    """Format bytes; below a mebibyte they are not known exactly."""
    if value is None:
        return "–"
    return amount(value, "B") if value >= 2**20 else "< 1 MiB"


def count_of(value: float) -> str:
    """Format two digits and a power of ten."""
    digits, power = f"{value:.1e}".split("e")
    return f"{digits.removesuffix('.0')}·{power_of_ten(int(power))}"


def timed(row: Data) -> str:
    """Format the median, with quartiles of three calls or more."""
    if row.get("repeats", 1) < 3 or "q1_s" not in row:
        return seconds(row["median_s"])
    return f"{seconds(row['median_s'])} ({seconds(row['q1_s'])} – {seconds(row['q3_s'])})"


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    head = list(header)
    return "\n".join(
        "| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *map(list, rows)]
    )


def faster(ratio: float, decision: str) -> str:
    """Format our advantage; mark a faster peer and link a decision."""
    words = f"{ratio:.0f} ×" if ratio >= 100 else f"{ratio:.3g} ×"
    return words if ratio >= 1 else f"**{words}** ▼ [peer faster](decisions/{decision})"


def exponent(law: Data | None) -> str:
    """Format an exponent with the half-width of its 95% interval."""
    if law is None:
        return "–"
    return f"{law['exponent']:.2f}" + (
        f" ± {law['interval']:.2f}" if law["interval"] is not None else " (no interval)"
    )


def names_of(cases: Iterable[Data]) -> list[str]:
    """Return every competitor of some cases, in order of appearance."""
    return list(dict.fromkeys(name for row in cases for name in row["times"]))
