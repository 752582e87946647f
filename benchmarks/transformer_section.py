"""The section of docs/benchmarks.md on the kernel of a transformer."""

from __future__ import annotations

from benchmarks.words import Data, count, seconds, size, stamp, table, timed


def transformer(data: Data) -> str:
    names = {"ours": "structured, layer by layer", "jacobian_contraction": "contraction of Jacobians in our own JAX"}
    rows = [
        [words, timed(row), seconds(row["first_s"]), size(row["added_bytes"])]
        for name, words in names.items()
        for row in [data["times"][name]]
    ]
    return "\n\n".join(
        [
            "## Kernel of a transformer",
            f"{data['blocks']} blocks of {data['heads']} heads and {data['features']:,} features, MLPs four times as "
            f"wide, {count(data['num_params'])} parameters; sequences of {data['length']}, n = {data['num_samples']}, "
            f"C = {data['num_outputs']}, float32. The aim is {data['aim']:g} ×. {stamp(data)}",
            table(["", "time", "first call", "added memory"], rows),
            f"{data['times_faster']:.1f} × faster; the kernels differ by {data['relative_difference']:.0e}, relative. "
            f"The Jacobians alone are {size(data['jacobian_needs_bytes'])}.",
        ]
    )
