"""Have we become slower? Ratios to plain routes, against the committed ones: ``make bench-quick``, some three minutes.

Only what needs no other environment, both sides in turn in one process. Compared are the fastest times, since whatever
else the machine does only adds; what seems to have fallen is measured twice more.
Left out as too unsteady: shares of the machine's ceilings (bandwidth differs from machine to machine), whole sweeps
(compilation), ratios below 10 ms a side, and what is read off a browser.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks import hessian, kernel, large_n, masked_layer, training
from benchmarks.measure import RESULTS, Settings, Watch, environment
from benchmarks.words import table

MOST_FALLEN = 0.2
REPEATS = 3
Times = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Watched:
    """One ratio: by how much ``ours`` is faster than ``plain``.

    Attributes:
        result: the committed result that has it.
        committed: its times there.
        measure: its times now.
    """

    name: str
    result: str
    plain: str
    ours: str
    committed: Callable[[Any], Times]
    measure: Callable[[], Times]

    def before(self) -> float | None:
        """The committed ratio; None where the result has not been committed yet."""
        path = RESULTS / f"{self.result}.json"
        return self.ratio(self.committed(json.loads(path.read_text()))) if path.exists() else None

    def ratio(self, times: Times) -> float:
        """Of the fastest calls."""
        return float(times[self.plain]["min_s"] / times[self.ours]["min_s"])


def _of_kernel(case: tuple[str, int, int, dict[str, list[str]]]) -> Watched:
    kind, depth, width, asked = case

    def committed(data: Any) -> Times:
        at = {(row["kind"], row["hidden_layers"], row["width"]): row["times"] for row in data["cases"]}
        return at[kind, depth, width]

    def measure() -> Times:
        return kernel.compare({}, kind, depth, width, asked, False)["times"]

    plain = f"{kernel.OWN_JAX} jacobian_contraction"
    return Watched(f"kernel, {kind} {width:,} × {depth}", "kernel", plain, "ours", committed, measure)


def _of_hessian(width: int) -> Watched:
    def committed(data: Any) -> Times:
        return {row["width"]: row["times"] for row in data["cases"]}[width]

    def measure() -> Times:
        return hessian.compare(None, width, False)["times"]

    return Watched(f"Hessian norm, width {width:,}", "hessian", hessian.PLAIN, "ours", committed, measure)


def _of_training(width: int, depth: int) -> Watched:
    def committed(data: Any) -> Times:
        return {(row["width"], row["hidden_layers"]): row["times"] for row in data["against_plain_grad"]}[width, depth]

    def measure() -> Times:
        return training.compare(width, depth)["times"]

    return Watched(f"step of training, {width:,} × {depth}", "training", "plain_grad", "ours", committed, measure)


def _of_explicit(name: str) -> Watched:
    def committed(data: Any) -> Times:
        return {row["work"]: row["times"] for row in data["explicit"]}[name]

    def measure() -> Times:
        return large_n.against_explicit(quick=False, only=name)[0]["times"]

    return Watched(f"{name} by products", "large_n", "scipy", "ours", committed, measure)


def _of_masked(name: str) -> Watched:
    def measure() -> Times:
        return masked_layer.measure(Settings())["layer"][name]["times"]

    return Watched(
        f"masked layer, {name}", "masked_layer", "dense", "masked", lambda data: data["layer"][name]["times"], measure
    )


WATCHED = (
    *(_of_kernel(case) for case in kernel.CASES if kernel.OWN_JAX in case[3]),
    *(_of_hessian(width) for width in hessian.WIDTHS[1:3]),
    *(_of_training(*size) for size in training.SIZES),
    *(_of_explicit(name) for name in ("largest eigenvalue", "regression")),
    _of_masked("training_step"),
)


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
    """One sentence, and an exit code: 0, or 1 where something has fallen, 3 if the machine is too busy to tell."""
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
    """Which results come from another processor, with caches and a memory of its own; empty where none does."""
    named = [f"{result} ({processor})" for result, processor in processors.items() if processor != here]
    if not named:
        return ""
    return f"Measured before on another processor than this one ({here}), so less comparable: {', '.join(named)}."


def main() -> int:
    watch, found = Watch(), {}
    for each in WATCHED:
        ratios = look(each)
        if ratios is None:
            print(f"{each.name}: no committed {each.result}.json", flush=True)
        else:
            found[each.name] = ratios
            print(f"{each.name}: {ratios[1]:.3g} × now, {ratios[0]:.3g} × before", flush=True)
    note = watch.note()
    rows = [
        [name, f"{before:.3g} ×", f"{now:.3g} ×", f"{now / before - 1:+.0%}"] for name, (before, now) in found.items()
    ]
    words, code = verdict(found, note["high"])
    print(f"\n{table(['faster than the plain route', 'before', 'now', 'change'], rows)}\n\n{words}")
    results = sorted({each.result for each in WATCHED if each.name in found})
    read = {result: json.loads((RESULTS / f"{result}.json").read_text())["environment"] for result in results}
    if note_on_machine := elsewhere(
        {result: at["processor"] for result, at in read.items()}, environment()["processor"]
    ):
        print(note_on_machine)
    print(f"{note['took_s']:.0f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
