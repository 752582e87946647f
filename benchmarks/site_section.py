"""The section of docs/benchmarks.md on the site without a server."""

from __future__ import annotations

from benchmarks.site import AIM_BUILD_S, AIM_BYTES, AIM_PAINT_S
from benchmarks.words import Data, seconds, stamp, table


def site(data: Data) -> str:
    rows = [
        [row["page"], seconds(row["painted"]["median_s"]), seconds(row["drawn"]["median_s"])] for row in data["rows"]
    ]
    megabytes = data["bytes"] / 1e6
    return "\n\n".join(
        [
            "## The site without a server",
            f"`python -m ntk_core site` wrote {data['files']:,} files, {megabytes:.1f} MB, in {data['build_s']:.0f} s "
            f"(aims: {AIM_BYTES / 1e6:.0f} MB, {AIM_BUILD_S} s): Plotly {data['plotly_bytes'] / 1e6:.1f} MB, and the "
            f"data of {data['figures']} figures, each {data['median_figure_bytes'] / 1e3:.0f} kB in the median and "
            f"{data['largest_figure_bytes'] / 1e3:.0f} kB at most. From a disk, until something is painted (aim: "
            f"{AIM_PAINT_S} s), and until the first figure stands or the page's scripts have run. {stamp(data)}",
            table(["page", "first paint", "ready"], rows),
        ]
    )
