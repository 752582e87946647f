"""``compute`` and ``preset``; ``__init__.pyi`` types them by the names of presets, too."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, overload

from linearity_lab.runs import PointStore, Preset, ResultValue, Spec, SpecOf, run_to_end, spec_from
from linearity_lab.runs import preset as _preset
from linearity_lab.runs.progress_bar import terminal_bar
from linearity_lab.settings.grammar import with_settings
from ntk_core.errors import RunFailed

Result = TypeVar("Result", bound=ResultValue)


def preset(name: str) -> Preset[Spec]:
    """Return a preset by its name.

    Name → preset of a paper's figure: claim, source and specs.

    >>> preset("liu-fig1-left").spec.experiment
    'kernel_change'

    Args:
        name: such as ``liu-fig1-left``; ``presets()`` lists all.

    Returns:
        The preset.

    Raises:
        InvalidInput: for an unknown name.

    Source: our choice; each :class:`Preset` names that of its figure.
    """
    return _preset(name, "name")


@overload
def compute(
    spec: SpecOf[Result] | Preset[SpecOf[Result]],
    *,
    points: PointStore | None = None,
    **settings: object,
) -> Result: ...
@overload
def compute(
    spec: Spec | Preset[Spec] | Mapping[str, object] | str,
    *,
    points: PointStore | None = None,
    **settings: object,
) -> ResultValue: ...
def compute(
    spec: Any,  # one of the types above
    *,
    points: PointStore | None = None,
    **settings: object,
) -> ResultValue:
    """Compute a spec or preset and return its result.

    Spec or preset, settings → result, with a progress bar on a terminal or in a notebook.

    >>> result = compute("liu-fig1-left", widths=(4, 8), num_seeds=1, training={"max_steps": 5})
    >>> [point.width for point in result.points]
    [4, 8]

    Args:
        spec: a spec such as ``KernelChangeSpec()``, a preset or its name, or a mapping parsed from
            JSON.
        points: store of finished points, see ``run``.
        settings: values to replace in the spec; a group as a mapping,
            ``training={"learning_rate": 0.5}``.

    Returns:
        The result of the experiment, such as ``KernelChangeResult``.

    Raises:
        InvalidSpec: for an unknown setting or a value that is not allowed.
        RunFailed: when a point fails; its ``result`` has the finished points.
        InvalidInput, TooLarge: as ``run``.

    Source: our choice, docs/decisions/0001-specs-and-events.md.
    """
    changed = with_settings(spec_from(spec), dict(_dotted(settings)))
    with terminal_bar() as draw:
        ended = run_to_end(changed, on_event=draw, points=points)
    if ended.result is None or ended.status != "completed":
        raise RunFailed(ended.reason, ended.result)
    return ended.result


def _dotted(settings: Mapping[str, object], outer: str = "") -> Iterator[tuple[str, object]]:
    """Yield nested settings by dotted names.

    ``{"training": {"max_steps": 5}}`` as ``training.max_steps``.
    """
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _dotted(value, f"{outer}{name}.")
        else:
            yield f"{outer}{name}", value
