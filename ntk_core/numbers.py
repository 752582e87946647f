"""Formatting of numbers: signs, powers of ten, percent, sizes, durations, and keys of points."""

import math
import re

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
PLAIN_EXPONENTS = range(-4, 6)  # of numbers written without a power of ten


def number(value: float, digits: int = 2) -> str:
    """Format a number to this many significant digits: 0.033, 1,200, 3.2·10⁻⁸, −0.5.

    ∞, and a dash for none.
    """
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if not value:
        return "0"
    exponent = power_of(value, digits)
    if exponent not in PLAIN_EXPONENTS:
        return scientific(value, digits)
    decimals = max(0, digits - 1 - exponent)
    return _without_zeros(f"{float(f'{value:.{digits - 1}e}'):,.{decimals}f}").replace("-", "−")


def signed(value: float, digits: int = 2) -> str:
    """Format a number with a true minus sign: −1.02; never −0.00."""
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def power_of_ten(exponent: int) -> str:
    """``10⁴`` for 4."""
    return "10" + str(exponent).translate(_SUPERSCRIPTS)


def width_label(width: float) -> str:
    """Format a swept value exactly: 300, 3,000, 10,000, 0.1; 3·10⁶ if round."""
    if width != int(width):
        return number(width, 3)
    is_round = (
        width >= 10**PLAIN_EXPONENTS.stop and width % 10 ** (math.floor(math.log10(width)) - 2) == 0
    )
    return number(width, 3) if is_round else f"{int(width):,}".replace("-", "−")


def scientific(value: float, digits: int = 3) -> str:
    """Format a number with a power of ten: 10⁻¹, 3·10², 10⁰."""
    mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
    factor = _without_zeros(mantissa).replace("-", "−")
    return power_of_ten(int(power)) if factor == "1" else f"{factor}·{power_of_ten(int(power))}"


def percent(share: float) -> str:
    """Format a share in percent: 43% for 0.43; two significant digits below 10%, 5% or 0.42%.

    A dash for NaN.
    """
    if not math.isfinite(share):
        return number(share)
    return (
        f"{100 * share:,.0f}".replace("-", "−") if abs(share) >= 0.0995 else number(100 * share)
    ) + "%"


def num_runs(count: int) -> str:
    """``1 run``, ``5 runs``."""
    return f"{count:,} run" if count == 1 else f"{count:,} runs"


def size(num_bytes: float) -> str:
    """Format bytes: ``300 bytes``, ``1.5 MiB``, ``120 MiB``, ``2.5 GiB``."""
    if num_bytes >= 2**30:
        return f"{num_bytes / 2**30:,.1f} GiB"
    mebibytes = num_bytes / 2**20
    if mebibytes >= 10:
        return f"{mebibytes:,.0f} MiB"
    return f"{mebibytes:.3g} MiB" if mebibytes >= 0.1 else f"{num_bytes:,.0f} bytes"


def duration(seconds: float) -> str:
    """Format seconds: ``under 1 s``, ``12 s``, ``3 min``, ``1 h 20 min``."""
    if seconds < 1:
        return "under 1 s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60} min"


def _without_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def power_of(value: float, digits: int = 6) -> int:
    """Return the power of ten of a number rounded to these digits."""
    return int(f"{value:.{digits - 1}e}".partition("e")[2])


def key_words(key: str) -> str:
    """Return the displayed form of a point's key: ``width 10,000``."""
    words = re.sub("[=_]|(?<=[a-z])-", " ", key.replace("input_dim", "input dimension")).replace(
        ",", ", "
    )
    return re.sub(r"(?<![\d.])\d{4,}", lambda digits: f"{int(digits[0]):,}", words)
