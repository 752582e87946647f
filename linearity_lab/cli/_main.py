"""The program: its commands, imported when used, and its exit code."""

import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from linearity_lab.cli._complaints import complain
from linearity_lab.environment import environment_settings
from linearity_lab.exit_codes import BAD_INPUT, COMPLETED, FAILED, INTERRUPTED
from linearity_lab.installation import command_name
from linearity_lab.settings.grammar import InvalidSpec
from ntk_core._version import __version__
from ntk_core.errors import InvalidInput

_COMPUTE = ("run", "resume", "own", "report", "gallery")
# Name → function, in the order of the help.
COMMANDS = {
    "presets": "_kept:presets",
    "run": "_compute:run",
    "resume": "_compute:resume",
    "list": "_kept:list_runs",
    "show": "_kept:show",
    "export": "_kept:export",
    "import": "_kept:import_runs",
    "delete": "_kept:delete",
    "backup": "_kept:backup",
    "jobs": "_kept:jobs",
    "data": "_lab:data",
    "own": "_compute:own",
    "report": "_compute:report",
    "gallery": "_compute:gallery",
    "app": "_lab:app",
    "site": "_lab:site",
}


def program() -> int:
    """Run the command of this process and return the exit code."""
    return main(keep_code=True)


def main(arguments: Sequence[str] | None = None, *, keep_code: bool = False) -> int:
    """Run one command and return the exit code; optionally keep compiled code between calls."""
    app = _app()
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if not given:
            raise InvalidInput(
                "COMMAND", "nothing", f"one of {', '.join(COMMANDS)}; see {command_name()} --help"
            )
        if given[0] in ("--help", "-h"):  # the help of a command is its docstring
            for name in COMMANDS:
                app[name]
        if given[0] in COMMANDS:
            # A wrong variable prevents every command, also those that do not read it.
            environment_settings()
        if keep_code and given[0] in _COMPUTE:
            from linearity_lab.runs.compiled_code import keep_compiled_code

            keep_compiled_code()
        return int(app(given, exit_on_error=False, print_error=False) or COMPLETED)
    except CycloptsError as error:
        problem = str(error).partition(" Available commands")[0][:500]
        complain(f"{problem.rstrip('.')}; see {command_name()} --help")
        return BAD_INPUT
    except InvalidInput as error:
        complain(error)
        return BAD_INPUT
    except InvalidSpec as error:
        complain(*error.problems)
        return BAD_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED if given[0] in _COMPUTE else COMPLETED


def _app() -> App:
    app = App(
        name=command_name(),
        version=__version__,
        help="See when and why a wide neural network becomes a linear model.",
        result_action="return_value",
        sort_key=0,
    )
    for place, (name, function) in enumerate(COMMANDS.items()):
        app.command(f"{__package__}.{function}", name=name, sort_key=place)
    return app
