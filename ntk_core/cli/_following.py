"""Follow a run: a bar on a terminal, JSON lines for programs, and the end of it as an exit code."""

import argparse
import sys
from collections.abc import Callable, Iterable

from ntk_core.cli._exit_codes import COMPLETED, FAILED
from ntk_core.cli._interruption import Interruption, interruptible
from ntk_core.cli._printing import complain, printable
from ntk_core.errors import InvalidInput
from ntk_core.runs import Computation, Points, Spec, check_size, digest, run, summary
from ntk_core.runs.events import Ended, Event, PointFailed, PointFinished, PointProgress, event_json
from ntk_core.runs.run_directory import RunDirectory
from ntk_core.runs.store import Store

_PREFIX = 12


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """``--json`` and ``--no-json``; without them, what stdout is decides."""
    parser.add_argument(
        "--json", action=argparse.BooleanOptionalAction, default=None,
        help="print one JSON event per line; by default when stdout is no terminal",
    )  # fmt: skip


def wants_json(options: argparse.Namespace) -> bool:
    """Whether events are printed as JSON lines."""
    return bool(options.json) if options.json is not None else not sys.stdout.isatty()


def compute(spec: Spec, directory: RunDirectory | None, as_json: bool, computation: Computation | None = None) -> int:
    """Run ``spec``, keep its points in the directory, or else in the store, and tell how it goes; the exit code."""
    points: Points
    if computation is None:
        check_size(spec)  # what is refused leaves nothing behind
    if directory is not None:
        points, save, kept = directory.begin(spec), directory.finish, f"its finished points are in {directory.path}"
        again = "the same command resumes the run"
    else:
        store = Store()
        points, save, kept = store.points(spec), store.save_result, "its finished points are kept"
        again = f"`python -m ntk_core resume {digest(spec)[:_PREFIX]}` resumes the run"
    if computation is not None:  # nothing but the file itself can go on
        again = "the same command resumes the run"
    with interruptible(f"Stopped; {kept}. {again[0].upper()}{again[1:]}.") as interruption:
        events = run(spec, points=points, should_stop=interruption, computation=computation)
        try:
            ended = follow(events, as_json)
            if ended.result is not None:
                save(ended.result)
        except InvalidInput as error:  # the disk is full, for instance: the input was good, the run failed
            complain(error)
            return FAILED
    if not as_json and ended.result is not None:
        print(summary(spec, ended.result.points))
        if directory is None:
            complain(f"Kept as run {digest(spec)[:_PREFIX]}.")
    return conclude(ended, interruption)


def conclude(ended: Ended, interruption: Interruption) -> int:
    """Say on stderr how a run ended, unless it was completed; the exit code."""
    if ended.status == "completed":
        return COMPLETED
    if ended.status == "failed":
        complain(f"The run failed: {ended.reason}")
        return FAILED
    complain(interruption.last_words)
    return interruption.exit_code


def follow(events: Iterable[Event], as_json: bool, prefix: str = "") -> Ended:
    """Show the events as they come; the last one."""
    terminal = sys.stderr.isatty()
    ended = Ended(status="failed", reason="it gave no result")
    for event in events:
        if as_json:
            print(event_json(event), flush=True)
        else:
            _show(event, prefix, _bar if terminal else None)
        if isinstance(event, Ended):
            ended = event
    if terminal and not as_json:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    return ended


def _show(event: Event, prefix: str, bar: Callable[[float, float | None, str], None] | None) -> None:
    if isinstance(event, PointProgress):
        if bar:
            bar(event.fraction, event.remaining_s, prefix + event.message)
    elif isinstance(event, PointFinished):
        if bar:
            bar(event.fraction, event.remaining_s, prefix + event.key)
        else:
            complain(f"{prefix}{event.key} {'resumed' if event.resumed else 'finished'}, {event.fraction:.0%}")
    elif isinstance(event, PointFailed):
        complain(f"{prefix}{event.key} failed: {event.reason}")


def _bar(fraction: float, remaining_s: float | None, message: str) -> None:
    bar = "█" * round(24 * fraction)
    left = "" if remaining_s is None else f", about {remaining_s:.0f} s left"
    text = printable(f"{bar:░<24} {fraction:4.0%}{left}  {message}")[:150]
    print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
