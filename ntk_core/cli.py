"""The command line: the same specs as the pages, run here and now.

Exit codes: 0 completed, 1 failed, 2 bad input, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import typing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from pydantic import BaseModel

from ntk_core.commands import COMMANDS
from ntk_core.errors import InvalidInput
from ntk_core.events import Ended, Event, PointFailed, PointFinished, PointProgress, event_json
from ntk_core.papers import PRESETS, preset
from ntk_core.results import Result
from ntk_core.run_directory import RunDirectory, read_limited
from ntk_core.specs import InvalidSpec, Spec, canonical_json, parse_spec, with_settings
from ntk_core.summaries import summary

COMPLETED, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    try:
        options = _parser().parse_args(arguments)
        return int(options.command(options))
    except InvalidSpec as error:
        return _complain(*error.problems)
    except InvalidInput as error:
        return _complain(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{_printable(message)}; see {self.prog} --help\n")


def _parser() -> _Parser:
    parser = _Parser(
        prog="python -m ntk_core", description="When and why a wide neural network becomes a linear model."
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    listing = commands.add_parser("presets", help="list the papers' figures that can be run")
    listing.add_argument("--json", action="store_true", help="print their specs as JSON")
    listing.set_defaults(command=_presets)

    running = commands.add_parser("run", help="compute a preset or a spec", allow_abbrev=False)
    running.add_argument("target", metavar="PRESET_OR_SPEC.json", help="name of a preset, or path of a spec in JSON")
    running.add_argument(
        "--set", dest="settings", action="extend", nargs="+", default=[], metavar="NAME=VALUE",
        help="change settings: widths=30,100,1000 training.learning_rate=0.5",
    )  # fmt: skip
    running.add_argument("--paper", action="store_true", help="take the preset in the paper's sizes")
    running.add_argument(
        "--out", metavar="DIR", help="write spec.json, result.json, points.csv and points/ there, and resume from them"
    )
    running.add_argument("--json", action="store_true", help="print one JSON event a line")
    running.set_defaults(command=_run)

    showing = commands.add_parser("show", help="print the result in a directory written by run --out")
    showing.add_argument("directory", metavar="DIR")
    showing.set_defaults(command=_show)
    for command in COMMANDS:
        command.add(commands)
    return parser


def _presets(options: argparse.Namespace) -> int:
    if options.json:
        print(json.dumps({name: json.loads(canonical_json(found.spec)) for name, found in PRESETS.items()}, indent=1))
        return COMPLETED
    for found in PRESETS.values():
        print(f"{found.name}: {found.title}\n  {found.claim}\n  Source: {found.source}\n  {found.our_choice}\n")
    return COMPLETED


def _run(options: argparse.Namespace) -> int:
    from ntk_core.experiments import run

    spec = _spec(options.target, options.paper)
    if options.settings:
        spec = with_settings(spec, dict(_assignment(text, spec) for text in options.settings))
    directory = RunDirectory(Path(options.out)) if options.out is not None else None
    with _interruptible() as interrupted:
        events = run(spec, points=directory.begin(spec) if directory else None, should_stop=interrupted)
        try:
            ended = _follow(events, options.json)
            if directory and ended.result is not None:
                directory.finish(ended.result)
        except InvalidInput as error:  # the disk is full, for instance: the input was good, the run failed
            _complain(error)
            return FAILED
    if not options.json and ended.result is not None:
        print(summary(spec, ended.result.points))
    return _conclude(ended, directory)


def _conclude(ended: Ended, directory: RunDirectory | None) -> int:
    if ended.status == "completed":
        return COMPLETED
    if ended.status == "failed":
        print(_printable(f"The run failed: {ended.reason}"), file=sys.stderr)
        return FAILED
    kept = f"its finished points are in {directory.path}" if directory else "give --out DIR to keep finished points"
    print(
        _printable(f"Stopped; {kept}. The same command resumes the run." if directory else f"Stopped; {kept}."),
        file=sys.stderr,
    )
    return INTERRUPTED


def _show(options: argparse.Namespace) -> int:
    directory = RunDirectory(Path(options.directory), "DIR")
    result = directory.result()
    spec = result.spec if result else directory.spec()
    points = result.points if result else directory.points()
    print(summary(spec, points))
    print("\n" + (_origin(result) if result else f"Not finished: {len(points)} of {len(spec.point_keys())} points."))
    return COMPLETED


def _origin(result: Result) -> str:
    provenance = result.provenance
    versions = ", ".join(f"{name} {version}" for name, version in provenance.versions.items())
    return (
        f"{result.status}, {len(result.points)} of {len(result.spec.point_keys())} points, "
        f"{result.runtime_s:.1f} s from {provenance.started_at} "
        f"on {provenance.device} in {provenance.dtype}; {versions}"
    )


def _spec(target: str, paper: bool) -> Spec:
    """The spec of a preset, or from a file."""
    if target in PRESETS:
        return PRESETS[target].paper_spec if paper else PRESETS[target].spec
    path = Path(target)
    if not (path.suffix or len(path.parts) != 1 or os.path.lexists(path)):
        return preset(target, "PRESET_OR_SPEC.json").spec  # unknown: says which are known
    data = read_limited(path, "PRESET_OR_SPEC.json")
    if paper:
        raise InvalidInput("--paper", target, "this option only with a preset")
    return parse_spec(data)


def _assignment(text: str, spec: Spec) -> tuple[str, Any]:
    """``name=value`` with the value as JSON would give it."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise InvalidInput("--set", text, "NAME=VALUE, such as widths=30,100,1000")
    if not _is_list(type(spec), name) or value.strip().lower() in ("null", "none"):
        return name, _scalar(value)
    items = value.strip().removeprefix("[").removesuffix("]").split(",")
    return name, [_scalar(item) for item in items if item.strip()]


def _is_list(model: type[BaseModel], name: str) -> bool:
    """Whether the setting of that dotted name takes several values."""
    first, _, rest = name.partition(".")
    info = model.model_fields.get(first)
    if info is None:
        return False
    if rest:
        inner = info.annotation
        return isinstance(inner, type) and issubclass(inner, BaseModel) and _is_list(inner, rest)
    return any(typing.get_origin(kind) is tuple for kind in (info.annotation, *typing.get_args(info.annotation)))


def _scalar(text: str) -> Any:
    """A number, true, false, null, or the text itself."""
    text = text.strip()
    try:
        value = json.loads(text.lower() if text.lower() in ("true", "false", "none", "null") else text)
    except (ValueError, RecursionError):
        return None if text.lower() == "none" else text.strip("\"'")
    return value


def _follow(events: Iterator[Event], as_json: bool) -> Ended:
    """Show the events as they come; the last one."""
    terminal = sys.stderr.isatty()
    ended = Ended(status="failed", reason="it gave no result")
    for event in events:
        if as_json:
            print(event_json(event), flush=True)
        elif isinstance(event, PointProgress) and terminal:
            _progress(event.fraction, event.remaining_s, event.message)
        elif isinstance(event, PointFinished) and terminal:
            _progress(event.fraction, event.remaining_s, event.key)
        elif isinstance(event, PointFinished):
            print(f"{event.key} {'resumed' if event.resumed else 'finished'}, {event.fraction:.0%}", file=sys.stderr)
        elif isinstance(event, PointFailed):
            print(f"{event.key} failed: {event.reason}", file=sys.stderr)
        if isinstance(event, Ended):
            ended = event
    if terminal and not as_json:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    return ended


def _progress(fraction: float, remaining_s: float | None, message: str) -> None:
    bar = "█" * round(24 * fraction)
    left = "" if remaining_s is None else f", about {remaining_s:.0f} s left"
    print(f"\r\x1b[K{bar:░<24} {fraction:4.0%}{left}  {message}"[:160], end="", file=sys.stderr, flush=True)


class _Interrupted:
    """Asked by the run between chunks; true after the first Ctrl-C. The second one ends the program at once."""

    def __init__(self) -> None:
        self._asked = False

    def __call__(self) -> bool:
        return self._asked

    def note(self, _number: int, _frame: FrameType | None) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True
        os.write(2, b"\nStopping after this step; Ctrl-C again stops at once.\n")


@contextmanager
def _interruptible() -> Iterator[_Interrupted]:
    interrupted = _Interrupted()
    before = signal.signal(signal.SIGINT, interrupted.note)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def _complain(*problems: InvalidInput) -> int:
    for problem in problems:
        print(_printable(str(problem)), file=sys.stderr)
    return BAD_INPUT


def _printable(text: str) -> str:
    """``text`` without what could confuse a terminal."""
    return "".join(letter if letter.isprintable() else "�" for letter in text)
