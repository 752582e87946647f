"""The section of docs/benchmarks.md on maps."""

from __future__ import annotations

from benchmarks.words import Data, seconds, stamp, table


def maps(data: Data) -> str:
    rows = [
        [row["preset"], str(row["points"]), seconds(row["total_s"]), seconds(row["most_s"])] for row in data["rows"]
    ]
    return "\n\n".join(
        [
            "## Maps",
            "A preset from the start of its process to its last point, once, with all that is compiled; nothing is "
            f"found in a store. {stamp(data)}",
            table(["preset", "points", "time", "aim"], rows),
        ]
    )
