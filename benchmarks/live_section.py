"""The section of docs/benchmarks.md on the live component."""

from __future__ import annotations

from benchmarks.words import Data, stamp, table


def live(data: Data) -> str:
    rows = [
        [
            f"{row['width']:,}",
            str(row["hidden_layers"]),
            f"{row['frames_per_s']:.0f}",
            f"{row['steps_per_s']:,.0f}",
            f"{row['steps_per_frame']:.1f}",
            f"{row['first_frame_ms']:,} ms",
        ]
        for row in data["rows"]
    ]
    return "\n\n".join(
        [
            "## Training in the browser",
            f"The live component without a server, {data['num_points']} points, over {data['seconds']:.0f} s; the aim "
            "at width 1,024 with one hidden layer is at least 30 frames a second and 5 steps a frame. A frame is a "
            f"picture of a new state; the page answers between frames. {stamp(data)}",
            table(
                ["width", "hidden layers", "frames a second", "steps a second", "steps a frame", "first frame"], rows
            ),
        ]
    )
