"""The section of docs/benchmarks.md on the live component."""

from __future__ import annotations

from benchmarks.words import Data, seconds, stamp, table


def live(data: Data) -> str:
    rows = [
        [
            f"{row['width']:,}",
            str(row["hidden_layers"]),
            str(row["bottleneck"] or "–"),
            f"{row['frames_per_s']:.0f}",
            f"{row['steps_per_s']:,.0f}",
            f"{row['steps_per_frame']:.1f}",
            f"{row['first_frame_ms']:,} ms",
        ]
        for row in data["rows"]
    ]
    waited = data["title_to_frame"]
    return "\n\n".join(
        [
            "## Training in the browser",
            f"The live component without a server, {data['num_points']} points, over {data['seconds']:.0f} s; the aim "
            "at width 1,024 is at least 30 frames a second and 5 steps a frame. A frame is a picture of a new state; "
            "the page answers between frames. The first frame is timed from the request of that page; on the page "
            f"*Live* of a server it comes {seconds(waited['median_s'])} after the title, at most "
            f"{seconds(waited['max_s'])} in {waited['repeats']} visits. {stamp(data)}",
            table(
                [
                    *("width", "wide layers", "bottleneck between or after them"),
                    *("frames a second", "steps a second", "steps a frame", "first frame"),
                ],
                rows,
            ),
        ]
    )
