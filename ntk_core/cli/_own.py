"""``own``: any model ``apply(params, x)`` in a Python file of one's own, against its width."""

import argparse
import hashlib
from pathlib import Path
from typing import Any

from ntk_core.cli._following import compute
from ntk_core.cli._targets import assignment
from ntk_core.errors import InvalidInput
from ntk_core.experiments.own_model.spec import OwnModelSpec
from ntk_core.runs import load_data
from ntk_core.runs.run_directory import RunDirectory
from ntk_core.settings.grammar import with_settings
from ntk_core.settings.walk import settings

_HELP = {setting.name: setting.info.description for setting in settings(OwnModelSpec)}


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser(
        "own",
        help="sweep the width of a model in a Python file, which is run on this machine",
        description="FILE.py is run as Python code, with your rights, because you ask for it. NAME (model, where none "
        "is given) is a function of (width, key) that returns (apply, params), with apply(params, x) of shape (n, C), "
        "or a torch.nn.Module; or it is one model itself, and then there are no widths. The run is kept in the store: "
        "the page Results shows it, and can never start it.",
    )
    parser.add_argument("model", metavar="FILE.py[:NAME]")
    for option, name in OwnModelSpec.options.items():
        parser.add_argument(option, dest=name, metavar="VALUE", help=_HELP[name])
    parser.add_argument("--out", metavar="DIR", help="keep the run there, as `run --out` does, not in the store")
    parser.add_argument("--json", action="store_true", help="print one JSON event per line")
    parser.set_defaults(command=own)


def own(options: argparse.Namespace) -> int:
    """What is found of the layers, one line per run, exponents with their intervals, and what follows."""
    from ntk_core.experiments.own_model.compute import computed_by, made_at  # starts JAX
    from ntk_core.own_models import load_model, their_errors

    given = {name: text for name in OwnModelSpec.options.values() if (text := getattr(options, name)) is not None}
    if "dataset.digest" in given:
        given.setdefault("dataset.name", "upload")
    if options.out is not None and not options.out.strip():  # it would be the working directory
        raise InvalidInput("--out", options.out, "the name of a directory")
    model, path, function = load_model(options.model)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    file = {"file": path.name, "function": function, "sha256": sha256}
    chosen = dict(assignment(f"{name}={text}", OwnModelSpec()) for name, text in given.items())
    spec = with_settings(OwnModelSpec(), {**file, **chosen})
    with their_errors(path):  # what is no model is told before anything is kept
        made_at(model, spec, load_data(spec), min(spec.widths))
    directory = RunDirectory(Path(options.out)) if options.out is not None else None
    return compute(spec, directory, options.json, computed_by(model, path))
