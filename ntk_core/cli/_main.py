"""All commands in one parser; whatever is wrong with what was given is one sentence."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from ntk_core.cli import (
    _app,
    _data,
    _delete,
    _export,
    _gallery,
    _import,
    _jobs,
    _list,
    _own,
    _presets,
    _resume,
    _run,
    _show,
    _site,
    _truth,
)
from ntk_core.cli._exit_codes import BAD_INPUT, COMPLETED, FAILED, INTERRUPTED
from ntk_core.cli._printing import complain, printable
from ntk_core.errors import InvalidInput
from ntk_core.runs.compiled_code import keep_compiled_code
from ntk_core.runs.unfinished import keep_unfinished
from ntk_core.settings.grammar import InvalidSpec

# One module per command, in the order of the help; a command returns its exit code, or None where all went well.
_COMMANDS = (
    _presets,
    _run,
    _resume,
    _list,
    _show,
    _export,
    _import,
    _delete,
    _jobs,
    _data,
    _own,
    _gallery,
    _truth,
    _app,
    _site,
)


def program() -> int:
    """The process of the command line: its settings, then one command; the exit code."""
    keep_compiled_code()
    keep_unfinished()
    return main()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    try:
        options = _parser().parse_args(arguments)
        return int(options.command(options) or COMPLETED)
    except InvalidSpec as error:
        complain(*error.problems)
        return BAD_INPUT
    except InvalidInput as error:
        complain(error)
        return BAD_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{printable(message)}; see {self.prog} --help\n")


def _parser() -> _Parser:
    parser = _Parser(
        prog="python -m ntk_core", description="When and why a wide neural network becomes a linear model."
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add(commands)
    return parser
