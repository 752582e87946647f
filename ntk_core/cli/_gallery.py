"""``gallery``: compute the results that are shown before anything is run."""

import argparse
from pathlib import Path
from typing import Any

from ntk_core.cli._exit_codes import COMPLETED, FAILED
from ntk_core.cli._following import add_json_option, conclude, follow, wants_json
from ntk_core.cli._interruption import interruptible
from ntk_core.cli._printing import complain
from ntk_core.environment import IS_CHECKOUT
from ntk_core.errors import InvalidInput
from ntk_core.runs import PRESETS, preset
from ntk_core.runs.gallery import GALLERY, rebuild


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser("gallery", help="compute the results that the dashboard shows at first")
    parser.add_argument("names", nargs="*", metavar="NAME", help="presets; all by default")
    kept = {"default": str(GALLERY)} if IS_CHECKOUT else {"required": True}
    parser.add_argument("--out", metavar="DIR", help="where they are stored (in a checkout: gallery/)", **kept)
    add_json_option(parser)
    parser.set_defaults(command=gallery)


def gallery(options: argparse.Namespace) -> int:
    """Each in turn; interrupted, the same command resumes."""
    names, folder = options.names or list(PRESETS), Path(options.out)
    for name in names:
        preset(name, "NAME")  # all are known before the first one is computed
    for name in names:
        with interruptible("Stopped; the same command resumes the gallery.") as interruption:
            try:
                ended = follow(rebuild(name, interruption, folder), wants_json(options), f"{name}: ")
            except InvalidInput as error:
                complain(error)
                return FAILED
        code = conclude(ended, interruption)
        if code != COMPLETED:
            return code
    return COMPLETED
