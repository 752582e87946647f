"""The sentence under the title of *Explore*: what ΔK does with the width, from these runs."""

from collections.abc import Sequence
from itertools import pairwise

from linearity_lab.charts.axes import beginning
from linearity_lab.charts.lines import Line
from linearity_lab.charts.style import output_title
from ntk_core.fits import exponent_words
from ntk_core.numbers import number, width_label

FLAT = 1.25  # largest ratio of two means that are called equal; our choice
STILL_LARGE = 0.5  # last mean from which a falling kernel change still counts as large; our choice
FALLING = 0.67  # largest ratio of the last to the first mean that is called a decrease; our choice


def change_finding(outputs: Sequence[str], lines: Sequence[Line]) -> str:
    """Describe ΔK of each output.

    A power of the width with its interval, a decrease, or a level.
    """
    parts = [
        f"{behavior(line)} with a {output_title(output)}"
        for output, line in zip(outputs, lines, strict=True)
        if line.means
    ]
    missing = [
        output_title(output) for output, line in zip(outputs, lines, strict=True) if not line.means
    ]
    widths = sorted({at for line in lines for at, _ in line.means})
    if not parts:
        return "No run has reached the loss threshold yet." if lines else ""
    span = f"m = {width_label(widths[0])}"
    if len(widths) > 1:
        span = f"{span} to {width_label(widths[-1])}"
    sentence = beginning(f"kernel change ΔK, {span}: {'; '.join(parts)}.")
    if missing:
        sentence += f" No converged run with a {' or a '.join(missing)}."
    return sentence


def behavior(line: Line) -> str:
    """Describe one line.

    Examples: ``∝ m^(−0.94 ± 0.08)``, ``falls from 0.22 to 0.015``, ``0.91 at every width``.
    """
    values = [average.value for _, average in line.means]
    low = min(values)
    high = max(values)
    first = values[0]
    last = values[-1]
    if len(values) == 1:
        return number(first)
    if high <= FLAT * low:
        return f"about {number(sum(values) / len(values))} at every width"
    is_monotone = all(after <= before for before, after in pairwise(values))
    if last >= STILL_LARGE:
        where = f"at m = {width_label(line.means[-1][0])}"
        return f"still {number(last)} {where} ({number(low)} to {number(high)} over all widths)"
    if line.law is not None and line.law.interval < abs(line.law.exponent):
        return f"∝ m^({exponent_words(line.law)})"
    if is_monotone and last <= FALLING * first:
        return f"falls from {number(first)} to {number(last)}"
    return f"between {number(low)} and {number(high)}, no steady decrease"
