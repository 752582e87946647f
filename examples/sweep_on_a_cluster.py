"""A sweep whose points are computed by a dask cluster (docs/cluster.md).

    # Two workers, started here:
    PYTHONPATH=. python examples/sweep_on_a_cluster.py
    # An existing scheduler:
    PYTHONPATH=. python examples/sweep_on_a_cluster.py tcp://192.168.0.10:8786

Points arrive as they finish. Ctrl-C also stops the workers.
"""

from __future__ import annotations

import sys
from typing import Any

import linearity_lab
from linearity_lab.experiments.kernel_change.point import KernelChangeResult
from linearity_lab.runs.events import Ended, PointFailed, PointFinished, PointStarted
from linearity_lab.settings.grammar import with_settings
from ntk_core.fits import PowerLaw, fit_runs, law_words


def main(address: str, settings: dict[str, Any] | None = None) -> PowerLaw:
    """Return the power law of ΔK in a run of Fig. 1.

    It is that of Liu, Zhu & Belkin (2020), with a linear output.
    """
    settings = settings or {"widths": [30, 100, 300, 1000], "num_seeds": 3}
    spec = with_settings(
        linearity_lab.presets()["liu-fig1-left"], {**settings, "outputs": ["linear"]}
    )
    for event in linearity_lab.run(spec, scheduler=address):
        match event:
            case PointStarted(key=key):
                print(f"{key} started")
            case PointFinished(key=key, point=point):
                print(
                    f"{key} finished after {point.runtime_s:.1f} s, {event.fraction:.0%} of the "
                    "sweep"
                )
            case PointFailed(key=key, reason=reason):
                print(f"{key} failed: {reason}")
    assert isinstance(event, Ended)
    if not isinstance(event.result, KernelChangeResult):
        raise SystemExit(event.reason)
    runs = [(point.width, run) for point in event.result.points for run in point.of("linear")]
    law = fit_runs(runs, lambda run: run.sup_change, lambda run: run.outcome != "diverged")
    assert law is not None, "a power law needs at least two widths and three values"
    print(f"ΔK ∝ {law_words(law, 'm')}")
    return law


if __name__ == "__main__":  # the processes of a LocalCluster import this file again
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        from distributed import LocalCluster

        with LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=0, dashboard_address=None
        ) as cluster:
            main(cluster.scheduler_address)
