"""Rows of a GPU: a kernel at m = 10⁶, a Hessian product at m = 3·10⁴, a step of training, as shares of its ceilings.

Run: ``python -m benchmarks.gpu`` on a machine with a GPU and a JAX that finds it; elsewhere it prints why it skips.
``--quick`` runs the same code with tiny sizes on whatever device there is.
"""

from __future__ import annotations

import sys
from typing import Any

import jax

from benchmarks.ceilings import GPU, QUICK, measure_on
from benchmarks.measure import Settings


def reason_to_skip(settings: Settings) -> str | None:
    """Why there is nothing to measure here, or None."""
    if settings.quick or jax.default_backend() == "gpu":
        return None
    return f"JAX finds no GPU here, its devices are {', '.join(map(str, jax.devices()))}"


def measure(settings: Settings) -> dict[str, Any]:
    return measure_on(QUICK if settings.quick else GPU, settings.quick)


if __name__ == "__main__":
    from benchmarks.__main__ import main

    main(["--only", "gpu", *sys.argv[1:]])
