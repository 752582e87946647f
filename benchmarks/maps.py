"""Maps from nothing to their last point, each in a process of its own, against the time that they may take."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from benchmarks.measure import Settings
from ntk_core import presets
from ntk_core.runs import canonical_json
from ntk_core.settings.grammar import with_settings

# Seconds on two cores.
MOST_S = {"catapult-map": 90.0, "depth-width": 180.0}
QUICK: dict[str, dict[str, Any]] = {
    "catapult-map": {"widths": [4], "rates": [1.0], "num_seeds": 1, "max_steps": 2},
    "depth-width": {"depths": [1], "widths": [4], "num_kernels": 20, "trained_depth": 0},
}


def measure(settings: Settings) -> dict[str, Any]:
    """Seconds of every map to its points and its end, the start of JAX and all that is compiled included."""
    rows = []
    for name, most in MOST_S.items():
        spec = with_settings(presets()[name], QUICK[name]) if settings.quick else presets()[name]
        command = [sys.executable, "-m", "benchmarks.maps", canonical_json(spec)]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        rows.append({"preset": name, "points": len(spec.point_keys()), "most_s": most, **json.loads(printed)})
    return {"rows": rows}


if __name__ == "__main__":
    import time

    from ntk_core.runs import parse_spec, run

    began = time.perf_counter()
    for _ in run(parse_spec(json.loads(sys.argv[1]))):
        pass
    print(json.dumps({"total_s": time.perf_counter() - began}))
