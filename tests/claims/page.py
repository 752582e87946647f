"""``python -m tests.claims.page`` writes every claim with its measurement to ``docs/truth.md``."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from linearity_lab.cli.run_directory import write_whole
from linearity_lab.installation import TOP
from ntk_core.numbers import num_runs
from tests.claims.claim import LEAST_SEEDS, MEASURED, Judged, Verdict, judged
from tests.claims.confirmation import FIRST_SEED
from tests.claims.readings import Measured, exceptions_seen, number

TRUTH = TOP / "docs" / "truth.md"
_PAPERS = ("Liu, Zhu & Belkin 2020", "Zhu, Liu & Belkin 2022", "Hu, Xiao, Adlam & Pennington 2020")
_OTHERS = "Other sources"
_HEAD = """\
# What is claimed, and what is measured

Written by `make claims`; do not edit. The claims are in `linearity_lab/experiments/*/claims.toml`, the first
measurement is that of the gallery, the second that of `tests/claims/confirmed.json`. {counts}

A claim has a sentence, a measure and an interval. It is *set* on the runs of the gallery (seeds from 0 on) and
*confirmed* on fresh runs: seeds from {first_seed:,} on, and a second data draw for synthetic data.
[How a claim becomes confirmed](how-claims-are-confirmed.md) explains each step in plain words.

- **confirmed**: both measured intervals are inside the expected one, and the second is at most half as wide.
- **identity**: true by construction, and so in every run; it tests the program, and is not counted as confirmed.
- **holds with a caveat**: both are inside it or inside the interval of the caveat.
- **few runs**: both are inside, but the second is of fewer than {least_seeds} runs, or a range of fewer seeds (“one run”, “3 seeds”).
- **not resolved**: one of them extends beyond it, or has too few runs for an interval.
- **not seen**: one of them is outside.
- **not confirmed yet**: the fresh runs have not been computed.

A 95% interval holds for other draws of the weights; values of one seed count as one. A range describes the runs made.
“(set after measuring)” marks an interval that was chosen or changed after the first measurement. *Resolution* is the
smallest deviation that the fresh runs can detect: half the width of their interval. For a range, it is the share of
exceptional seeds at which at least one is seen with a probability of 95%. “wide” marks a measured interval that is more
than half as wide as the expected one. Wide fresh runs do not confirm a claim: it then has a caveat where users read it,
and *Resolution* estimates the fresh seeds needed.
Presets run as `linearity-lab run PRESET`.
"""  # noqa: E501
_COLUMNS = (
    "Claim",
    "Place",
    "Measure",
    "Expected",
    "Set on",
    "Confirmed on",
    "Resolution",
    "Verdict",
)


def rendered() -> str:
    """Return the page, from the present gallery and confirmations."""
    found = judged()
    counts: Counter[str] = Counter(each.verdict for each in found)
    total = ", ".join(
        f"{counts[verdict]} {verdict}" for verdict in get_args(Verdict) if counts[verdict]
    )
    counted = f"Of {len(found)} claims: {total}."
    lines = [_HEAD.format(counts=counted, first_seed=FIRST_SEED, least_seeds=LEAST_SEEDS)]
    for paper in (*_PAPERS, _OTHERS):
        rows = [each for each in found if _paper(each) == paper]
        if rows:
            lines += [f"## {paper}", "", _table(rows, "" if paper == _OTHERS else paper), ""]
    return "\n".join(lines)


def measured_words() -> str:
    """Return the fresh measurements that caveats quote, as TOML."""
    lines = ["# Fresh measurements that caveats quote. Written by `make claims`: do not edit.", ""]
    for each in judged():
        if each.confirmation is not None and "{measured}" in each.claim.caveat:
            lines.append(f'{each.claim.name} = "{each.confirmation.words}"')
    return "\n".join(lines) + "\n"


def _paper(each: Judged) -> str:
    return next(
        (paper for paper in _PAPERS if each.claim.source.startswith((paper, f"after {paper}"))),
        _OTHERS,
    )


def _table(rows: Sequence[Judged], paper: str) -> str:
    cells = [_COLUMNS, tuple("---" for _ in _COLUMNS), *(_row(each, paper) for each in rows)]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells
    )


def _row(each: Judged, paper: str) -> tuple[str, ...]:
    claim = each.claim
    place = f"[{_title(claim.document)}](../{claim.document})" if claim.document else "preset"
    caveat = f": {claim.stated_caveat}" if claim.caveat else ""
    after = "" if claim.interval_set == "before" else " (set after measuring)"
    return (
        f"“{' '.join(claim.sentence.split())}” ({place})",
        claim.source.removeprefix("after ").removeprefix(paper).lstrip(", ") or "–",
        f"{claim.what}, `{claim.preset}`",
        _bounds(*claim.expected) + after,
        _found(each.measured, claim.expected),
        "–" if each.confirmation is None else _found(each.confirmation, claim.expected),
        "–"
        if each.confirmation is None
        else _resolution(each.confirmation, each.fresh_seeds, claim.expected),
        f"**{_verdict(each)}**{caveat}",
    )


def _verdict(each: Judged) -> str:
    """The verdict; of few runs, their number."""
    if each.verdict != "few runs" or each.confirmation is None:
        return each.verdict
    if each.confirmation.count == 1:
        return "one run"
    if each.confirmation.kind != "range":
        return num_runs(each.confirmation.count)
    seeds = min(each.fresh_seeds, each.confirmation.count)
    return "one seed" if seeds == 1 else f"{seeds} seeds"


def _found(measured: Measured, expected: tuple[float, float]) -> str:
    runs = num_runs(measured.count)
    if math.isnan(measured.low):
        return (
            f"{'–' if math.isnan(measured.value) else number(measured.value)}, no interval ({runs})"
        )
    wide = ", wide" if measured.is_wide(expected) else ""
    return (
        f"{number(measured.value)}, {measured.kind} {_span(measured.low, measured.high)} "
        f"({runs}{wide})"
    )


def _resolution(measured: Measured, seeds: int, expected: tuple[float, float]) -> str:
    if measured.kind == "range":
        return f"{exceptions_seen(min(measured.count, seeds)):.0%} of seeds"
    if math.isnan(measured.low):
        return "–"
    found = f"±{number((measured.high - measured.low) / 2)}"
    return (
        f"{found}; about {measured.seeds_needed(seeds, expected)} seeds needed"
        if measured.is_wide(expected)
        else found
    )


def _title(document: str) -> str:
    """Page, with its step for the lecture (``lecture, bottleneck``); else the file."""
    path = Path(document)
    if path.stem == "words":
        return path.parent.name
    return f"lecture, {path.stem}" if path.parent.name == "steps" else path.stem


def _bounds(low: float, high: float) -> str:
    if math.isinf(low):
        return f"at most {number(high)}"
    return f"at least {number(low)}" if math.isinf(high) else _span(low, high)


def _span(low: float, high: float) -> str:
    return f"{number(low)} … {number(high)}"


if __name__ == "__main__":
    write_whole(MEASURED, measured_words(), "measured.toml")
    write_whole(TRUTH, rendered(), "docs/truth.md")
