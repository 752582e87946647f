"""Workers on a SLURM cluster, by dask-jobqueue (docs/cluster.md).

    python examples/slurm_workers.py --queue gpu --workers 8 --memory 64GB --walltime 04:00:00

Each worker is a SLURM job with one GPU. Keep this running; in another terminal, export its
address and start a sweep.
"""

from __future__ import annotations

import argparse
import threading

from dask_jobqueue import SLURMCluster


def make_cluster(queue: str, memory: str, walltime: str, cpus: int = 4) -> SLURMCluster:
    """Start a scheduler here, without requesting workers yet."""
    return SLURMCluster(
        queue=queue,
        cores=1,  # threads of the worker: one point fills a GPU
        processes=1,
        job_cpu=cpus,
        memory=memory,
        walltime=walltime,
        worker_extra_args=["--nthreads", "1", "--memory-limit", "0"],
        job_extra_directives=["--gres=gpu:1"],
        job_script_prologue=["export XLA_PYTHON_CLIENT_PREALLOCATE=false"],
        scheduler_options={"dashboard_address": ":0"},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Request workers from SLURM and wait.")
    parser.add_argument("--queue", required=True)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--memory", default="64GB")
    parser.add_argument("--walltime", default="04:00:00")
    options = parser.parse_args()
    cluster = make_cluster(options.queue, options.memory, options.walltime)
    print(cluster.job_script())
    cluster.scale(jobs=options.workers)
    print(
        f"export LINEARITY_LAB_SCHEDULER={cluster.scheduler_address} "
        "LINEARITY_LAB_WORKER_WAIT_S=3600",
        flush=True,
    )
    threading.Event().wait()


if __name__ == "__main__":
    main()
