"""Formats of exponents, learning rates, tick labels and tables in charts."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from ntk_core.fits import PowerLaw, condition, exponent_words, remarks
from ntk_core.numbers import PLAIN_EXPONENTS, number, power_of, scientific, width_label

_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
DIGITS = 5  # significant digits of numbers in tables


def rate_words(rates: Iterable[float]) -> str:
    """Format learning rates as a number or a range, ``0.51–0.63``; a dash without runs."""
    known = sorted(rates)
    if not known:
        return "–"
    finite = [rate for rate in known if math.isfinite(rate)]
    shown = dict.fromkeys(number(rate, 3) for rate in (finite[:1] + finite[-1:]))
    return "–".join(shown) or "none"


def law_words(law: PowerLaw) -> str:
    """Format the exponent with its remarks: ``(−0.86 ± 0.04); last decade −0.96; not yet settled``."""
    return "; ".join([f"({exponent_words(law)})", *filter(None, [*remarks(law), condition(law)])])


def given_runs(laws: Iterable[PowerLaw | None]) -> str:
    """Describe the runs behind the intervals: ``30 converged runs``; empty without intervals."""
    counts = sorted(law.num_values for law in laws if law is not None and math.isfinite(law.interval))
    if len(counts) < 2:
        return f"{counts[0]} converged runs" if counts else ""
    span = f"{counts[0]}" if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
    return f"converged runs, {span} per exponent"


def seed_words(seeds: Sequence[object]) -> str:
    """Format seeds: ``seed 0``, ``seeds 0, 3``."""
    return f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Return uniform labels of an axis: powers of ten for all if any needs one."""
    plain = all(power_of(tick) in PLAIN_EXPONENTS for tick in ticks if tick)
    return [width_label(tick) if plain else scientific(tick) for tick in ticks]


def readable(rows: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Round the rows of a table to five significant digits; exports keep all digits."""
    return [
        {name: float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value for name, value in row.items()}
        for row in rows
    ]


def plain_symbols(text: str) -> str:
    """Return the title of an axis without tags: λ_min, w₀, m^−1/2."""
    text = re.sub(r"<sub>(\d+)</sub>", lambda found: found[1].translate(_SUBSCRIPTS), text)
    text = text.replace("<sub>", "_").replace("<sup>", "^")
    return re.sub(r"<[^>]*>", "", text)


def beginning(text: str) -> str:
    """Capitalize the first word of a sentence, unless it is a symbol."""
    is_word = re.fullmatch(r"[A-Za-z]{2,}(-[a-z]+:?)?", text.partition(" ")[0])
    return text[0].upper() + text[1:] if is_word else text
