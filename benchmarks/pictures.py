"""What the figures of docs/benchmarks.md show."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.plots import Line, Mark, Panel, figure
from benchmarks.words import Data, exponent

WORKS = {"kernel": "kernel", "hessian_product": "Hessian product", "training_step": "training step"}
AXES = {"m": "width m", "n": "inputs n", "C": "outputs C", "depth": "hidden layers"}


def _mark(x: float, row: Data, units: int = 1) -> Mark:
    low, high = row.get("q1_s", row["median_s"]), row.get("q3_s", row["median_s"])
    return Mark(x, row["median_s"] / units, low / units, high / units)


def _lines(cases: Iterable[Data], axis: str, names: list[str]) -> tuple[Line, ...]:
    """One line per competitor over the cases that it took part in."""
    rows = list(cases)
    lines = [
        Line(name, tuple(_mark(row[axis], row["times"][name]) for row in rows if name in row["times"]), style)
        for style, name in enumerate(names)
    ]
    return tuple(line for line in lines if line.marks)


def kernel(data: Data) -> str:
    names = list(dict.fromkeys(name for row in data["cases"] for name in row["times"]))
    panels = []
    for depth, title in ((1, "one hidden layer"), (3, "three hidden layers")):
        cases = [row for row in data["cases"] if row["kind"] == "dense" and row["hidden_layers"] == depth]
        if cases:
            panels.append(Panel(title, "width m", "time of a kernel", _lines(cases, "width", names)))
    words = "Medians with quartiles over the width, log–log; lower is better. The numbers are in the table below."
    return figure(f"A kernel, n = {data['num_samples']}, C = {data['num_outputs']}", words, panels)


def hessian(data: Data) -> str:
    names = list(dict.fromkeys(name for row in data["cases"] for name in row["times"]))
    time = Panel("time", "number of parameters", "time of a norm", _lines(data["cases"], "num_params", names))
    added = [
        Line(name, tuple(_bytes(row, name) for row in data["cases"] if _weighed(row, name)), style)
        for style, name in enumerate(names)
    ]
    lines = tuple(line for line in added if line.marks)
    memory = [Panel("memory added to the weights", "number of parameters", "peak", lines, "B")] if lines else []
    words = (
        "Medians with quartiles over the number of parameters, log–log; lower is better. Numbers in the table below."
    )
    return figure("A Hessian norm, relative tolerance 1e-2", words, [time, *memory])


def _weighed(row: Data, name: str) -> bool:
    return bool(row["times"].get(name, {}).get("added_bytes"))


def _bytes(row: Data, name: str) -> Mark:
    added = row["times"][name]["added_bytes"]
    return Mark(row["num_params"], added, added, added)


def sweep(data: Data) -> str:
    runs = (("ours, cold", "ours_cold"), ("plain JAX script", "plain_script"), ("ours, warm", "ours_warm"))
    lines = tuple(
        Line(words, tuple(Mark(int(m), at, at, at) for m, at in data[name]["point_s"].items()), style)
        for style, (words, name) in enumerate(runs)
    )
    words = "Seconds since the start at which each width was done; lower is better."
    return figure(
        f"The default sweep, {data['num_seeds']} seeds", words, [Panel("", "width m", "done after", lines)], columns=1
    )


def growth(data: Data) -> str:
    panels = []
    for axis, title in AXES.items():
        lines, notes = [], []
        for style, (name, words) in enumerate(WORKS.items()):
            found = data["works"].get(name, {}).get(axis)
            if found is not None:
                marks = tuple(_mark(row[axis], row, row["units"]) for row in found["rows"])
                lines.append(Line(words, marks, style))
                notes.append(f"{words}: {exponent(found['time'])}")
        if lines:
            panels.append(Panel(f"against {title}", title, "time", tuple(lines), note=("exponents", *notes)))
    words = "Time against one size at a time, log–log, with fitted exponents; the numbers are in the table below."
    return figure("How time grows", words, panels)


def estimates(data: Data) -> str:
    names = sorted({row["experiment"] for row in data["rows"]})

    def panel(title: str, rows: list[Data], foreseen: str, actual: str, unit: str, words: str, scale: float) -> Panel:
        pairs = [(row["experiment"], row[foreseen] / scale, row[actual]) for row in rows]
        drawn = [Line(name.replace("_", " "), (Mark(x, y, y, y),), names.index(name)) for name, x, y in pairs]
        ends = [extreme(x for _, x, _ in pairs) for extreme in (min, max)]
        equal = Line("as estimated", tuple(Mark(x, x * scale, x * scale, x * scale) for x in ends), len(names))
        return Panel(title, f"estimated, in {words}", "actual", (equal, *drawn), unit=unit)

    panels = [
        panel("Time of a spec", data["rows"], "estimated_s", "seconds", "s", "seconds", 1.0),
        panel("Memory of a spec", data["rows"], "estimated_bytes", "added_bytes", "B", "MiB", 2.0**20),
    ]
    return figure("Actual against estimated", "One mark per spec, log–log; the line is where both are equal.", panels)
