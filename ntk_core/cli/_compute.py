"""The commands that compute: ``run``, ``resume``, ``own``, ``gallery``."""

import hashlib
import inspect
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ntk_core.cli._following import compute, conclude, follow, wants_json
from ntk_core.cli._interruption import interruptible
from ntk_core.cli._targets import RUN, SPEC, assignment, kept_run, spec_named
from ntk_core.cli._terminal import COMPLETED, FAILED, complain
from ntk_core.environment import IS_CHECKOUT
from ntk_core.errors import InvalidInput
from ntk_core.experiments.own_model.spec import OwnModelSpec
from ntk_core.runs import PRESETS, load_data, preset
from ntk_core.runs.gallery import GALLERY, rebuild
from ntk_core.runs.run_directory import RunDirectory
from ntk_core.settings.grammar import with_settings
from ntk_core.settings.walk import settings as settings_of

Flag = Annotated[bool, Parameter(negative=())]


def run(
    target: Annotated[str, Parameter(name=SPEC)],
    /,
    *,
    settings: Annotated[tuple[str, ...], Parameter(name="--set", consume_multiple=(1, None), negative=())] = (),
    paper: Flag = False,
    out: str | None = None,
    json: bool | None = None,
) -> int:
    """Compute a preset or a spec.

    Args:
        target: Name of a preset, or path of a spec in JSON.
        settings: Change settings, NAME=VALUE: widths=30,100,1000 training.learning_rate=0.5
        paper: Use the paper's sizes.
        out: Write run.jsonl and points.csv to this directory as well; the run is kept in the store in any case.
        json: Print one JSON event per line; by default when stdout is no terminal.
    """
    spec = spec_named(target, paper)
    if settings:
        spec = with_settings(spec, dict(assignment(text, spec) for text in settings))
    return compute(spec, _directory(out), wants_json(json))


def resume(target: Annotated[str, Parameter(name=RUN)], /, *, json: bool | None = None) -> int:
    """Continue a run from its finished points; a complete run computes nothing.

    Args:
        target: Directory of run --out, or the first digits of a run's digest.
        json: Print one JSON event per line; by default when stdout is no terminal.
    """
    found = kept_run(target)
    return compute(found.spec, found.directory, wants_json(json))


def own(
    model: Annotated[str, Parameter(name="FILE.py[:NAME]")],
    /,
    *,
    out: str | None = None,
    json: Flag = False,
    **given: str | None,
) -> int:
    """Sweep the width of a model in a Python file, which is run on this machine.

    FILE.py is run as Python code, with your rights, because you ask for it. NAME (default: model) is a function of
    (width, key) that returns (apply, params), with apply(params, x) of shape (n, C), or a torch.nn.Module; or it is one
    model itself, without widths. The run is kept in the store: the page Results shows it, and can never start it.

    Args:
        model: The file, and the name in it.
        out: Write run.jsonl and points.csv to this directory as well.
        json: Print one JSON event per line.
    """
    from ntk_core.experiments.own_model.compute import computed_by, made_at  # starts JAX
    from ntk_core.own_models import load_model, their_errors

    texts = {_OWN_SETTINGS[name]: text for name, text in given.items() if text is not None}
    if "dataset.digest" in texts:
        texts.setdefault("dataset.name", "upload")
    directory = _directory(out)
    loaded, path, function = load_model(model)
    file = {"file": path.name, "function": function, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    chosen = dict(assignment(f"{name}={text}", OwnModelSpec()) for name, text in texts.items())
    spec = with_settings(OwnModelSpec(), {**file, **chosen})
    with their_errors(path):  # a broken model is refused before anything is kept
        made_at(loaded, spec, load_data(spec), min(spec.widths))
    return compute(spec, directory, json, computed_by(loaded, path))


def gallery(
    *names: Annotated[str, Parameter(name="NAME")], out: str | None = str(GALLERY) if IS_CHECKOUT else None,
    json: bool | None = None,
) -> int:  # fmt: skip
    """Compute the results that the dashboard shows at first; interrupted, the same command resumes.

    Args:
        names: Presets; all by default.
        out: Directory of the results; in a checkout gallery/ by default.
        json: Print one JSON event per line; by default when stdout is no terminal.
    """
    if not (out and out.strip()):
        raise InvalidInput("--out", out, "the name of a directory")
    for name in names:
        preset(name, "NAME")  # refuses an unknown name before the first preset is computed
    for name in names or PRESETS:
        with interruptible("Stopped; the same command resumes the gallery.") as interruption:
            try:
                ended = follow(rebuild(name, interruption, Path(out)), wants_json(json), f"{name}: ")
            except InvalidInput as error:
                complain(error)
                return FAILED
        if code := conclude(ended, interruption):
            return code
    return COMPLETED


def _directory(out: str | None) -> RunDirectory | None:
    if out is not None and not out.strip():  # Path("") is the working directory
        raise InvalidInput("--out", out, "the name of a directory")
    return None if out is None else RunDirectory(Path(out))


def _with_options(command: inspect.Signature, options: dict[str, str]) -> inspect.Signature:
    """The signature with one option of text per setting in place of ``**given``."""
    help_of = {setting.name: setting.info.description for setting in settings_of(OwnModelSpec)}
    named = [each for each in command.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    named += [
        inspect.Parameter(
            option, inspect.Parameter.KEYWORD_ONLY, default=None,
            annotation=Annotated[str | None, Parameter(help=help_of[name])],
        )
        for option, name in options.items()
    ]  # fmt: skip
    return command.replace(parameters=named)


_OWN_SETTINGS = {option.strip("-").replace("-", "_"): name for option, name in OwnModelSpec.options.items()}
own.__signature__ = _with_options(inspect.signature(own), _OWN_SETTINGS)  # type: ignore[attr-defined]
