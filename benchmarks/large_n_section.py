"""The section of docs/benchmarks.md on kernels of thousands of inputs."""

from __future__ import annotations

from benchmarks.words import Data, seconds, size, stamp, table, timed, times_faster, versions

DECISION = "0040-large-kernels-in-pairs-and-products.md"
WORDS = {
    "exact": "ΔK, exact, pair of blocks by pair",
    "estimated": "ΔK, estimated",
    "solve": "regression with a ridge, by conjugate gradients",
    "largest": "λ_max, by Lanczos",
}


def large_n(data: Data) -> str:
    alone = [
        [
            WORDS[row["work"]],
            f"{row['num_samples']:,}",
            seconds(row["first_s"]),
            size(row["added_bytes"]),
            size(row["kernel_would_need_bytes"]),
            _found(row["found"]),
        ]
        for row in data["alone"]
    ]
    blocks = data["blocks"]
    peers = [
        [name, timed(row), size(row["added_bytes"]), times_faster(row["median_s"] / ours, DECISION)]
        for ours in [blocks["times"]["ours"]["median_s"]]
        for name, row in blocks["times"].items()
        if name != "ours"
    ]
    ours = blocks["times"]["ours"]
    explicit = [
        [
            row["work"],
            timed(row["times"]["ours"]),
            size(row["times"]["ours"]["added_bytes"]),
            timed(row["times"]["scipy"]),
            size(row["times"]["scipy"]["added_bytes"]),
            times_faster(row["times_faster"], DECISION),
            f"{row['relative_difference']:.0e}",
        ]
        for row in data["explicit"]
    ]
    parts = [
        "## Thousands of inputs",
        f"One hidden layer of {data['width']:,}, C = {data['num_outputs']}, float32, without a kernel in memory: ΔK "
        f"between two weights from blocks within {size(data['limit_bytes'])}, or from {data['probes']} random vectors; "
        "below is the first call in a process of its own, compilation included, and the memory that it added to "
        f"weights and inputs. {stamp(data)}",
        table(["", "n", "time", "added memory", "one kernel alone", "found"], alone),
        f"At n = {blocks['num_samples']:,}, ours takes {timed(ours)} and adds {size(ours['added_bytes'])}; "
        f"neural-tangents (`nt.batch`) makes both kernels in blocks and holds them. {versions(data)}",
    ]
    if peers:
        parts.append(table(["", "time", "added memory", "ours is faster"], peers))
        parts.append(f"The changes differ by {blocks['relative_difference']:.0e}, relative.")
    parts += [
        f"At n = {data['explicit_samples']:,}, C = {data['explicit_outputs']}, against SciPy on the kernel itself, "
        "which our own structured route computes each time (ARPACK; Cholesky in double precision):",
        table(["", "by products", "added memory", "on the kernel", "added memory", "faster", "difference"], explicit),
    ]
    return "\n\n".join(parts)


def _found(found: Data) -> str:
    if "change" in found:
        interval = f" ± {found['interval']:.1g}" if found["interval"] else ""
        return f"ΔK = {found['change']:.4g}{interval}"
    if "residual" in found:
        return f"residual {found['residual']:.0e} after {found['num_products']} products"
    return f"λ_max = {found['largest']:.4g}, residual {found['largest_residual']:.1g}, {found['num_products']} products"
