"""The section of docs/benchmarks.md on kernels of thousands of points beside a network."""

from __future__ import annotations

from benchmarks.words import Data, seconds, size, stamp, table


def generalization(data: Data) -> str:
    rows = [
        [
            row["case"],
            str(row["points"]),
            seconds(row["total_s"]),
            size(row["added_bytes"]),
            size(row["foreseen_bytes"]),
            f"{row['condition']:.1g}",
        ]
        for row in data["rows"]
    ]
    return "\n\n".join(
        [
            "## Generalization",
            "A run of *Generalization* from nothing to its last point, once, with all compiled code: training, kernels "
            f"of training and test points at every record, Cholesky's factors and eigenvectors. {stamp(data)}",
            table(["case", "points", "time", "memory added", "memory foreseen", "condition of K₀"], rows),
        ]
    )
