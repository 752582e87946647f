"""Compute a run and report its events: a bar on a terminal, JSON lines for programs, an exit code at the end."""

import sys
from collections.abc import Iterable

from ntk_core.cli._interruption import Interruption, interruptible
from ntk_core.cli._terminal import COMPLETED, FAILED, complain
from ntk_core.environment import command_name
from ntk_core.errors import InvalidInput
from ntk_core.numbers import percent
from ntk_core.runs import Computation, Spec, check_size, run, run_summary, spec_digest
from ntk_core.runs.events import Ended, Event, PointFailed, PointFinished, PointProgress, event_json
from ntk_core.runs.run_directory import RunDirectory
from ntk_core.runs.store import Store
from ntk_core.shown import with_terminal_bar

_PREFIX = 12


def wants_json(chosen: bool | None) -> bool:
    """Whether events are printed as JSON lines: as chosen, or where stdout is no terminal."""
    return not sys.stdout.isatty() if chosen is None else chosen


def compute(spec: Spec, directory: RunDirectory | None, as_json: bool, computation: Computation | None = None) -> int:
    """Run ``spec``, keep its points in the store, write its result to the directory; the exit code."""
    if computation is None:
        check_size(spec)  # what is refused leaves nothing behind
    earlier = directory.begin(spec) if directory is not None else None
    store = Store()
    if earlier is not None:
        store.import_result(earlier)
    again = f"`{command_name()} resume {spec_digest(spec)[:_PREFIX]}` resumes the run"
    if directory is not None or computation is not None:  # only the file of a model can resume its run
        again = "The same command resumes the run"
    with interruptible(f"Stopped; its finished points are kept. {again}.") as interruption:
        events = run(spec, points=store.points(spec), should_stop=interruption, computation=computation)
        try:
            ended = follow(events, as_json)
            if ended.result is not None:
                store.save_result(ended.result)
                if directory is not None:
                    directory.write(ended.result)
        except InvalidInput as error:  # the disk is full, for instance: the input was good, the run failed
            complain(error)
            return FAILED
    if not as_json and ended.result is not None:
        print(run_summary(spec, ended.result.points))
        if directory is None:
            complain(f"Stored as run {spec_digest(spec)[:_PREFIX]}.")
    return conclude(ended, interruption)


def conclude(ended: Ended, interruption: Interruption) -> int:
    """Report on stderr how a run ended, unless it was completed; the exit code."""
    if ended.status == "completed":
        return COMPLETED
    if ended.status == "failed":
        complain(f"The run failed: {ended.reason}")
        return FAILED
    complain(interruption.last_words)
    return interruption.exit_code


def follow(events: Iterable[Event], as_json: bool, prefix: str = "") -> Ended:
    """Show the events as they come; returns the last one."""
    ended = Ended(status="failed", reason="it gave no result")
    for event in events if as_json else with_terminal_bar(events, prefix):
        if as_json:
            if isinstance(event, PointProgress):  # its point grows with every event; point_finished has all of it
                event = event.model_copy(update={"point": None})
            print(event_json(event), flush=True)
        elif isinstance(event, PointFinished) and not sys.stderr.isatty():
            complain(f"{prefix}{event.key} {'resumed' if event.resumed else 'finished'}, {percent(event.fraction)}")
        elif isinstance(event, PointFailed):
            complain(f"{prefix}{event.key} failed: {event.reason}")
        if isinstance(event, Ended):
            ended = event
    return ended
