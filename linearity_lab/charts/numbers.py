"""Exponents, learning rates, tick labels and tables as charts write them."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from ntk_core.fits import PowerLaw, condition, exponent_words, remarks
from ntk_core.numbers import PLAIN_EXPONENTS, number, power_of, scientific, width_label

_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
DIGITS = 5  # of the numbers in tables, as many as people compare


def rate_words(rates: Iterable[float]) -> str:
    """Learning rates as one number or a range, ``0.51–0.63``; none where dead networks have none, a dash for no run."""
    known = sorted(rates)
    if not known:
        return "–"
    finite = [rate for rate in known if math.isfinite(rate)]
    shown = dict.fromkeys(number(rate, 3) for rate in (finite[:1] + finite[-1:]))
    return "–".join(shown) or "none"


def law_words(law: PowerLaw) -> str:
    """The same with what is to be said beside it: ``(−0.86 ± 0.04); last decade −0.96; not yet settled``."""
    return "; ".join([f"({exponent_words(law)})", *filter(None, [*remarks(law), condition(law)])])


def given_runs(laws: Iterable[PowerLaw | None]) -> str:
    """What the intervals of these exponents are given: ``30 converged runs``; empty where there is none."""
    counts = sorted(law.num_values for law in laws if law is not None and math.isfinite(law.interval))
    if len(counts) < 2:
        return f"{counts[0]} converged runs" if counts else ""
    span = f"{counts[0]}" if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
    return f"converged runs, {span} per exponent"


def seed_words(seeds: Sequence[object]) -> str:
    """``seed 0``, ``seeds 0, 3``."""
    return f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """The labels of an axis, all of one kind: with powers of ten where any needs one."""
    plain = all(power_of(tick) in PLAIN_EXPONENTS for tick in ticks if tick)
    return [width_label(tick) if plain else scientific(tick) for tick in ticks]


def readable(rows: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """The rows of a table with numbers of five significant digits; what is exported has all of them."""
    return [
        {name: float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value for name, value in row.items()}
        for row in rows
    ]


def plain_symbols(text: str) -> str:
    """The title of an axis without its tags: λ_min, w₀, m^−1/2."""
    text = re.sub(r"<sub>(\d+)</sub>", lambda found: found[1].translate(_SUBSCRIPTS), text)
    text = text.replace("<sub>", "_").replace("<sup>", "^")
    return re.sub(r"<[^>]*>", "", text)


def beginning(text: str) -> str:
    """A text as a sentence begins: a word with a capital letter, a symbol as it is."""
    first = text.partition(" ")[0]
    return text[0].upper() + text[1:] if len(first) > 1 and first.isascii() and first.isalpha() else text
