"""The commands that compute: ``run``, ``resume``, ``own``, ``report``, ``gallery``."""

import hashlib
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from linearity_lab.cli._complaints import complain
from linearity_lab.cli._following import compute, conclude, follow, interruptible, wants_json
from linearity_lab.cli._targets import RUN, SPEC, Flag, assignment, kept_run, spec_named
from linearity_lab.cli.run_directory import RunDirectory, write_whole
from linearity_lab.exit_codes import COMPLETED, FAILED
from linearity_lab.experiments.linearity_report.point import LinearityReportSpec
from linearity_lab.experiments.own_model.point import OwnModelSpec
from linearity_lab.runs import PRESETS, load_data, preset, run_to_end
from linearity_lab.runs.events import Ended, Event
from linearity_lab.runs.gallery import GALLERY
from linearity_lab.runs.store import Store
from linearity_lab.settings.grammar import with_settings
from linearity_lab.settings.walk import settings as settings_of
from ntk_core.errors import InvalidInput
from ntk_core.machine import IS_CHECKOUT


def run(
    target: Annotated[str, Parameter(name=SPEC)],
    /,
    *,
    settings: Annotated[
        tuple[str, ...], Parameter(name="--set", consume_multiple=(1, None), negative=())
    ] = (),
    paper: Flag = False,
    out: str | None = None,
    json: bool | None = None,
) -> int:
    """Compute a preset, an experiment or a spec.

    Args:
        target: Name of a preset or an experiment, or path of a spec in JSON.
        settings: Change settings, NAME=VALUE: widths=30,100,1000 training.learning_rate=0.5
        paper: Use the paper's sizes.
        out: Also write run.jsonl and points.csv to this directory; the store always keeps the run.
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
    json: bool = False,
    **given: str | None,
) -> int:
    """Sweep the width of a model in a Python file.

    FILE.py is run as Python code with your rights. NAME (default: model) is a function of
    (width, key) that returns (apply, params), with apply(params, x) of shape (n, C), or a
    torch.nn.Module; or it is a single model without widths. The store keeps the run; the page
    Results shows it but cannot start it.

    Args:
        model: The file, and the name in it.
        out: Also write run.jsonl and points.csv to this directory.
        json: Print one JSON event per line.
    """
    from linearity_lab.experiments.own_model.compute import computed_by, made_at  # starts JAX
    from linearity_lab.model_files import load_model, their_errors

    texts = {_OWN_SETTINGS[name]: text for name, text in given.items() if text is not None}
    if "dataset.digest" in texts:
        texts.setdefault("dataset.name", "upload")
    directory = _directory(out)
    loaded, path, function = load_model(model)
    file = {"file": path.name, "function": function, "sha256": _sha256(path)}
    chosen = dict(assignment(f"{name}={text}", OwnModelSpec()) for name, text in texts.items())
    spec = with_settings(OwnModelSpec(), {**file, **chosen})
    with their_errors(path):  # refuse a broken model before storing anything
        made_at(loaded, spec, load_data(spec), min(spec.widths))
    return compute(spec, directory, json, computed_by(loaded, path))


def report(
    model: Annotated[str, Parameter(name="FILE.py[:NAME]")],
    before: Annotated[str, Parameter(name="BEFORE")],
    after: Annotated[str, Parameter(name="AFTER")],
    /,
    *others: Annotated[str, Parameter(name="OTHER")],
    data: str | None = None,
    settings: Annotated[
        tuple[str, ...], Parameter(name="--set", consume_multiple=(1, None), negative=())
    ] = (),
    out: str | None = None,
    json: bool = False,
) -> int:
    """Report how linear a model is between two checkpoints, and whether several add.

    FILE.py is run as Python code with your rights, as for `own`; checkpoints are read, never
    executed. They are .npz, .safetensors, or state dictionaries of torch.save. The store keeps the
    report; the page Results shows it.

    Args:
        model: The file, and the name in it (default: model).
        before: Checkpoint before training.
        after: Checkpoint after training.
        others: Further checkpoints, each trained from BEFORE on another task.
        data: A dataset, or the digest of uploaded data.
        settings: Change settings, NAME=VALUE: dataset.num_samples=50 width=64
        out: Also write run.jsonl and points.csv to this directory.
        json: Print one JSON event per line.
    """
    from linearity_lab.experiments.linearity_report.compute import (  # starts JAX
        named,
        num_outputs_of,
        reported_by,
        same_weights,
    )
    from linearity_lab.model_files import (
        load_model,
        read_checkpoint,
        their_errors,
        with_checkpoints,
    )
    from ntk_core.networks.keys import initial_key

    chosen = _chosen_data(data)
    directory = _directory(out)
    w0 = read_checkpoint(Path(before))
    w1 = read_checkpoint(Path(after))
    loaded, path, function = load_model(model)
    more = [Path(each) for each in others]
    facts = {"file": path.name, "function": function, "sha256": _sha256(path)}
    facts |= _facts_of_checkpoints(Path(before), Path(after), more)
    changed = dict(assignment(text, LinearityReportSpec()) for text in settings)
    spec = with_settings(LinearityReportSpec(), {**facts, **chosen, **changed})
    with their_errors(path):  # refuse unsuitable files before storing anything
        made = loaded(spec.width, initial_key(0, spec.width))
        loaded_data = load_data(spec)
        apply, params0, params1 = with_checkpoints(made, w0, w1, loaded_data.x)
        further = []
        for each in more:
            with named({"after": f"OTHER {each}"}):
                _, _, weights = with_checkpoints(made, w0, read_checkpoint(each), loaded_data.x)
            further.append(weights)
    if same_weights(params0, params1):
        raise InvalidInput("AFTER", after, "another checkpoint: these two are equal")
    with their_errors(path):
        num_outputs = num_outputs_of(apply, params0, loaded_data.x)
    _check_targets(spec, loaded_data.y.shape[-1], num_outputs, is_default=not chosen)
    arguments = {"params0": f"BEFORE {before}", "params1": f"AFTER {after}"}
    arguments |= {f"others[{index}]": f"OTHER {each}" for index, each in enumerate(others)}
    work = reported_by(apply, params0, params1, path, further, arguments)
    return compute(spec, directory, json, work)


def _check_targets(
    spec: LinearityReportSpec, num_targets: int, num_outputs: int, is_default: bool
) -> None:
    """Refuse data with another number of targets than the model has outputs."""
    if num_outputs == num_targets:
        return
    given = f"{spec.dataset.name} with {num_targets} targets"
    if is_default:
        given += ", the default"
    allowed = f"a data set with {num_outputs}, the outputs of the model"
    raise InvalidInput("--data", given, allowed)


def _chosen_data(data: str | None) -> dict[str, str]:
    """Return the settings of a data set, or of the digest of uploaded data."""
    if not data:
        return {}
    if len(data) == 64:  # letters of a digest
        return {"dataset.name": "upload", "dataset.digest": data}
    return {"dataset.name": data}


def _facts_of_checkpoints(before: Path, after: Path, others: Sequence[Path]) -> dict[str, Any]:
    """Return names and SHA-256 of the checkpoints, as settings of a report."""
    facts: dict[str, Any] = {
        "before": before.name,
        "after": after.name,
        "before_sha256": _sha256(before),
        "after_sha256": _sha256(after),
    }
    if others:
        facts["others"] = [each.name for each in others]
        facts["others_sha256"] = [_sha256(each) for each in others]
    return facts


def gallery(
    *names: Annotated[str, Parameter(name="NAME")],
    out: str | None = str(GALLERY) if IS_CHECKOUT else None,
    json: bool | None = None,
) -> int:
    """Compute the results that the dashboard ships; the same command resumes after an interrupt.

    Args:
        names: Presets; all by default.
        out: Directory of the results; in a checkout gallery/ by default.
        json: Print one JSON event per line; by default when stdout is no terminal.
    """
    if not (out and out.strip()):
        raise InvalidInput("--out", out, "the name of a directory")
    for name in names:
        preset(name, "NAME")  # refuse unknown names before computing
    for name in names or PRESETS:
        with interruptible("Stopped; the same command resumes the gallery.") as interruption:
            try:
                work = partial(_rebuilt, name, interruption, Path(out))
                ended = follow(work, wants_json(json), f"{name}: ")
            except InvalidInput as error:
                complain(error)
                return FAILED
        if code := conclude(ended, interruption):
            return code
    return COMPLETED


def _rebuilt(
    name: str,
    should_stop: Callable[[], bool],
    folder: Path,
    *,
    on_event: Callable[[Event], None],
) -> Ended:
    """Compute and write the result of a preset; the next call resumes after an interrupt."""
    spec = PRESETS[name].spec
    store = Store(folder / ".runs" / "gallery.sqlite")

    def hear(event: Event) -> None:
        if isinstance(event, Ended) and event.result is not None and event.status == "completed":
            text = event.result.model_dump_json() + "\n"
            write_whole(folder / f"{name}.json", text, "gallery")
        on_event(event)

    return run_to_end(spec, on_event=hear, points=store.points(spec), should_stop=should_stop)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _directory(out: str | None) -> RunDirectory | None:
    if out is not None and not out.strip():  # Path("") is the working directory
        raise InvalidInput("--out", out, "the name of a directory")
    return None if out is None else RunDirectory(Path(out))


def _with_options(command: inspect.Signature, options: dict[str, str]) -> inspect.Signature:
    """Replace ``**given`` in a signature by one text option per setting."""
    help_of = {setting.name: setting.info.description for setting in settings_of(OwnModelSpec)}
    named = [
        each
        for each in command.parameters.values()
        if each.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    named += [
        inspect.Parameter(
            option,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[str | None, Parameter(help=help_of[name])],
        )
        for option, name in options.items()
    ]
    return command.replace(parameters=named)


_OWN_SETTINGS = {
    option.strip("-").replace("-", "_"): name for option, name in OwnModelSpec.options.items()
}
_signature = _with_options(inspect.signature(own), _OWN_SETTINGS)
own.__signature__ = _signature  # type: ignore[attr-defined]
