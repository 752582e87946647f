"""Have we become slower? Ratios to plain routes, against the committed ones: ``make bench-quick``, some three minutes.

Only what needs no other environment, both sides alternately in one process. The fastest times are compared, since other
work of the machine only adds; a ratio that seems to have fallen is measured twice more.
Left out as too unsteady: shares of the machine's ceilings (bandwidth differs from machine to machine), whole sweeps
(compilation), ratios below 10 ms a side, and what is read off a browser.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks import hessian, kernel, large_n, training
from benchmarks.measure import RESULTS, Row, Watch, environment
from benchmarks.words import table

MOST_FALLEN = 0.2
REPEATS = 3


@dataclass(frozen=True)
class Watched:
    """One ratio: by how much ``ours`` is faster than ``plain``.

    Attributes:
        result: the committed result that has it.
        committed: its row there.
        measure: measures that row now.
    """

    name: str
    result: str
    plain: str
    committed: Callable[[Any], Row]
    measure: Callable[[], Row]
    ours: str = "ours"

    def before(self) -> float | None:
        """Return the committed ratio; None where the result has not been committed yet."""
        path = RESULTS / f"{self.result}.json"
        return self.ratio(self.committed(json.loads(path.read_text()))) if path.exists() else None

    def ratio(self, row: Row) -> float:
        """Return the ratio of the fastest calls."""
        return float(row["times"][self.plain]["min_s"] / row["times"][self.ours]["min_s"])


def _found(part: str, **values: Any) -> Callable[[Any], Row]:
    """Return what finds the row with these values in a committed result, or the one under the name of its work."""

    def find(data: Any) -> Row:
        rows = data[part]
        return rows[values["work"]] if isinstance(rows, dict) else next(r for r in rows if values.items() <= r.items())

    return find


def _watched() -> Iterator[Watched]:
    measure: Callable[[], Row]
    for case in kernel.CASES:
        kind, depth, width, asked = case
        if kernel.OWN_JAX in asked:
            committed = _found("cases", kind=kind, hidden_layers=depth, width=width)
            measure = partial(kernel.compare, {}, *case, False)
            plain = f"{kernel.OWN_JAX} jacobian_contraction"
            yield Watched(f"kernel, {kind} {width:,} × {depth}", "kernel", plain, committed, measure)
    for width in hessian.WIDTHS[1:3]:
        measure = partial(hessian.compare, None, width, False)
        yield Watched(f"Hessian norm, width {width:,}", "hessian", hessian.PLAIN, _found("cases", width=width), measure)
    for width, depth in training.SIZES:
        committed = _found("against_plain_grad", width=width, hidden_layers=depth)
        measure = partial(training.compare, width, depth)
        yield Watched(f"step of training, {width:,} × {depth}", "training", "plain_grad", committed, measure)
    for work in ("largest eigenvalue", "regression"):
        measure = partial(large_n.against_explicit, work)
        yield Watched(f"{work} by products", "large_n", "scipy", _found("explicit", work=work), measure)
    committed, measure = _found("layer", work="training_step"), partial(training.masked, "training_step")
    yield Watched("masked layer, training_step", "masked_layer", "dense", committed, measure, "masked")


WATCHED = tuple(_watched())


def look(watched: Watched) -> tuple[float, float] | None:
    """(committed ratio, the best of up to three now); None where there is nothing to compare with."""
    before, best = watched.before(), 0.0
    if before is None:
        return None
    for _ in range(REPEATS):
        best = max(best, watched.ratio(watched.measure()))
        if best >= (1 - MOST_FALLEN) * before:
            break
    return before, best


def verdict(found: Mapping[str, tuple[float, float]], busy: bool) -> tuple[str, int]:
    """One sentence, and an exit code: 0, or 1 where something has fallen, 3 if the machine is too busy to decide."""
    fallen = [
        f"{name} ({before:.3g} × before, {now:.3g} × now)"
        for name, (before, now) in found.items()
        if now < (1 - MOST_FALLEN) * before
    ]
    if not fallen:
        return f"None of {len(found)} ratios has fallen by more than {MOST_FALLEN:.0%}.", 0
    words = f"Fallen by more than {MOST_FALLEN:.0%}: {'; '.join(fallen)}."
    return (f"{words} Other programs kept the machine busy: measure again.", 3) if busy else (words, 1)


def elsewhere(processors: Mapping[str, str], here: str) -> str:
    """Name results of another processor, with caches and a memory of its own; empty where there are none."""
    named = [f"{result} ({processor})" for result, processor in processors.items() if processor != here]
    if not named:
        return ""
    return f"Measured before on another processor than this one ({here}), so less comparable: {', '.join(named)}."


def main() -> int:
    watch, found, processors = Watch(), {}, {}
    for each in WATCHED:
        ratios = look(each)
        if ratios is None:
            print(f"{each.name}: no committed {each.result}.json", flush=True)
            continue
        found[each.name] = ratios
        committed = json.loads((RESULTS / f"{each.result}.json").read_text())
        processors[each.result] = committed["environment"]["processor"]
        print(f"{each.name}: {ratios[1]:.3g} × now, {ratios[0]:.3g} × before", flush=True)
    note = watch.note()
    rows = [
        [name, f"{before:.3g} ×", f"{now:.3g} ×", f"{now / before - 1:+.0%}"] for name, (before, now) in found.items()
    ]
    words, code = verdict(found, note["high"])
    print(f"\n{table(['faster than the plain route', 'before', 'now', 'change'], rows)}\n\n{words}")
    print(f"{elsewhere(processors, environment()['processor'])}\n{note['took_s']:.0f} s".lstrip())
    return code


if __name__ == "__main__":
    sys.exit(main())
