"""Numbers as people read them: the one place that writes them for legends, axes and sentences."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from ntk_core.fits import PowerLaw, condition, remarks

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
DIGITS = 5  # of the numbers in tables, as many as people compare
PLAIN_EXPONENTS = range(-4, 6)  # of numbers that are written without a power of ten


def number(value: float, digits: int = 2) -> str:
    """A number to this many significant digits: 0.033, 1,200, 3.2·10⁻⁸, −0.5; ∞, and a dash for none."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if not value:
        return "0"
    mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
    exponent = int(power)
    if exponent in PLAIN_EXPONENTS:
        decimals = max(0, digits - 1 - exponent)
        text = _without_zeros(f"{float(f'{value:.{digits - 1}e}'):,.{decimals}f}")
    else:
        factor = _without_zeros(mantissa)
        text = power_of_ten(exponent) if factor == "1" else f"{factor}·{power_of_ten(exponent)}"
    return text.replace("-", "−")


def rate_words(rates: Iterable[float]) -> str:
    """Learning rates as one number or a range, ``0.51–0.63``; none where dead networks have none, a dash for no run."""
    known = sorted(rates)
    if not known:
        return "–"
    finite = [rate for rate in known if math.isfinite(rate)]
    shown = dict.fromkeys(number(rate, 3) for rate in (finite[:1] + finite[-1:]))
    return "–".join(shown) or "none"


def signed(value: float, digits: int = 2) -> str:
    """A number with a true minus sign: −1.02; nothing is −0.00."""
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def exponent_words(law: PowerLaw) -> str:
    """A fitted exponent with its interval: ``−0.52 ± 0.04``."""
    return signed(law.exponent) + (f" ± {law.interval:.2f}" if math.isfinite(law.interval) else "")


def law_words(law: PowerLaw) -> str:
    """The same with what is to be said beside it: ``(−0.86 ± 0.04); last decade −0.96; still bending``."""
    return "; ".join([f"({exponent_words(law)})", *filter(None, [*remarks(law), condition(law)])])


def given_runs(laws: Iterable[PowerLaw | None]) -> str:
    """What the intervals of these exponents are given: ``given the 30 runs that count``; empty where there is none."""
    counts = sorted(law.num_values for law in laws if law is not None and math.isfinite(law.interval))
    if len(counts) < 2:
        return f"given the {counts[0]} runs that count" if counts else ""
    span = f"{counts[0]}" if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
    return f"given the runs that count ({span} per exponent)"


def power_of_ten(exponent: int) -> str:
    """``10⁴`` for 4."""
    return "10" + str(exponent).translate(_SUPERSCRIPTS)


def width_label(width: float) -> str:
    """A width, or another value that is swept, as people write it: 300, 3,000, 10⁴, 3·10⁵, 0.1."""
    if width < 10_000 or width != int(width):
        return f"{int(width):,}" if width == int(width) else number(width, 3)
    exponent = math.floor(math.log10(width))
    mantissa, rest = divmod(int(width), 10**exponent)
    if rest:
        return f"{int(width):,}"
    return power_of_ten(exponent) if mantissa == 1 else f"{mantissa}·{power_of_ten(exponent)}"


def readable(rows: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """The rows of a table with numbers of five significant digits; what is exported has all of them."""
    return [
        {name: float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value for name, value in row.items()}
        for row in rows
    ]


def plain_symbols(text: str) -> str:
    """The title of an axis without its tags: λ_min, m^−1/2."""
    text = text.replace("<sub>", "_").replace("<sup>", "^")
    return re.sub(r"<[^>]*>", "", text)


def beginning(text: str) -> str:
    """A text as a sentence begins: a word with a capital letter, a symbol as it is."""
    first = text.partition(" ")[0]
    return text[0].upper() + text[1:] if len(first) > 1 and first.isascii() and first.isalpha() else text


def _without_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
