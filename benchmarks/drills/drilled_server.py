"""The server that the drill of kills kills: a dashboard's jobs without its pages, three sweeps under way at any time.

Out: one JSON line for everything that a page would have shown. It submits new sweeps until a line comes on stdin, and
ends when all have been completed.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

from linearity_lab.jobs import Jobs
from ntk_core.dynamics.spec import TrainingSpec
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.runs import Spec, digest
from ntk_core.runs.store import Store

NUM_ACTIVE = 3


def sweep(index: int) -> Spec:
    """The sweep of this number: four widths, each done within a second or two."""
    training = TrainingSpec(max_steps=400, num_records=20)
    return KernelChangeSpec(widths=(16, 32, 64, 128), num_seeds=1, outputs=("linear",), seed=index, training=training)


def job_id_of(index: int) -> str:
    return digest(sweep(index))[:16]


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def _wait_for_a_line(heard: threading.Event) -> None:
    sys.stdin.readline()
    heard.set()


def _submit(jobs: Jobs, index: int) -> None:
    """A person is told that the job was taken once this has returned; who is killed before has promised nothing."""
    jobs.submit(sweep(index), viewer=f"viewer {index % 3}")
    say(taken=index)


def main() -> None:
    jobs = Jobs(Store(sys.argv[1]), num_workers=2)
    jobs.warm_up()
    enough = threading.Event()
    threading.Thread(target=_wait_for_a_line, args=(enough,), daemon=True).start()
    known = 0
    while (found := jobs.snapshot(job_id_of(known))) is not None:
        say(found=known, status=found.status)
        known += 1
    told: set[tuple[int, str]] = set()
    completed: set[int] = set()
    while not (enough.is_set() and len(completed) == known):
        while known - len(completed) < NUM_ACTIVE and not enough.is_set():
            _submit(jobs, known)
            known += 1
        for index in set(range(known)) - completed:
            now = jobs.snapshot(job_id_of(index))
            assert now is not None
            for point in now.points:
                if (index, point.key) not in told:
                    told.add((index, point.key))
                    say(point=point.key, of=index)
            if now.status == "completed":
                completed.add(index)
            elif not now.active:  # what a person would do
                say(run_again=index, status=now.status, reason=now.reason)
                _submit(jobs, index)
        time.sleep(0.02)
    say(completed=known)
    jobs.shutdown()


if __name__ == "__main__":
    main()
