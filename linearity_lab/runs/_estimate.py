"""Estimate the cost of a run without tracing or JAX, fast enough for every change of a widget."""

import bisect
import functools
import math
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, cast

from linearity_lab.data.spec import DatasetSpec
from linearity_lab.data.uploads import HOW_TO_BRING, MissingUpload
from linearity_lab.environment import environment_settings
from linearity_lab.memory import accelerator_bytes, memory_limit, stated_memory
from linearity_lab.runs._parse import spec_from
from linearity_lab.runs._spec import Spec
from linearity_lab.runs._table import counts_of, experiment_of
from linearity_lab.runs.costs import Machine, Work, bytes_of_points, machine, peak_bytes, total_work
from linearity_lab.runs.events import Estimated
from linearity_lab.settings.part import SpecPart
from linearity_lab.settings.walk import value_at, with_value
from linearity_lab.variables import check_scheduler
from ntk_core.errors import InvalidInput, ResultTooLarge, TooLarge

_STEPS = "training.max_steps"
SCHEDULER_VARIABLE = "LINEARITY_LAB_SCHEDULER"


def _round_numbers() -> tuple[int, ...]:
    """Return the numbers with at most two digits before their zeros, below 10¹¹, in order."""
    numbers = list(range(1, 10))
    for zeros in range(10):
        numbers.extend(digits * 10**zeros for digits in range(10, 100))
    return tuple(numbers)


ROUND = _round_numbers()  # which errors suggest


def estimate(spec: Spec | str, finished: Container[str] = (), *, most: bool = False) -> Estimated:
    """Estimate a run: spec → number of points, wall time, peak memory.

    Wall time is the sum over points and counts (operations, bytes, calls, programs) of
    count × time per unit here.

    >>> estimate("liu-fig1-left").num_points > 1
    True

    Args:
        spec: a spec, or the name of a preset.
        finished: keys of finished points, which take no time.
        most: count the maximum number of steps and products, not the typical number.

    Returns:
        The number of points, seconds and peak bytes.

    Raises:
        InvalidInput: if no preset has this name.

    Source: our choice, docs/decisions/0010-jobs-and-budgets.md.
    """
    spec = spec_from(spec)
    seconds = seconds_of_points(spec, most)
    missing = [key for key in seconds if key not in finished]
    return Estimated(
        num_points=len(seconds),
        seconds=sum(seconds[key] for key in missing),
        peak_bytes=largest_bytes(spec),
    )


def seconds_of_points(spec: Spec, most: bool = False) -> Mapping[str, float]:
    """Return the wall time of each point on this machine by key."""
    return {key: machine().seconds(work) for key, work in work_of_points(spec, most).items()}


def work_of_points(spec: Spec, most: bool = False) -> Mapping[str, Work]:
    """Return the work of each point by key."""
    return {key: work for key, (work, _) in _costs(spec, most).items()}


def largest_bytes(spec: Spec) -> float:
    """Return the expected peak memory of the largest point.

    It is in bytes above an idle process, and includes compiling.
    """
    return max(num_bytes for _, num_bytes in _costs(spec).values())


POINT_BYTES = 20_000  # JSON of a point beside its records: numbers at w₀, provenance; our choice


def result_bytes(spec: Spec) -> dict[str, float]:
    """Return the estimated bytes of each point of a result by key.

    Its JSON and the arrays stored beside it.
    """
    experiment = experiment_of(spec)
    records = max(1, setting_of(spec, "training.num_records") or 1)
    lines = (setting_of(spec, "num_seeds") or 1) * len(setting_of(spec, "outputs") or (1,))
    json_bytes = POINT_BYTES + experiment.record_bytes * records * lines
    return {key: json_bytes + experiment.kept_bytes(spec, key) for key in spec.point_keys()}


def check_result_size(spec: Spec, max_bytes: float) -> None:
    """Refuse a spec whose result is estimated above ``max_bytes``.

    Raises:
        ResultTooLarge: for the first setting that alone makes it fit: kept kernels, training
            points, seeds, the swept setting.
    """
    required = sum(result_bytes(spec).values())
    if required <= max_bytes:
        return

    def fits(candidate: Spec) -> bool:
        return sum(result_bytes(candidate).values()) <= max_bytes

    names = ["num_seeds", spec.swept_field]
    field = ""
    given: object = None
    nearest: object = None
    if setting_of(spec, "keep_kernels"):
        without = cast(Spec, with_value(spec, "keep_kernels", False))
        if fits(without):
            field = "keep_kernels"
            given = True
            nearest = False
        names.insert(0, "dataset.num_samples")
    if not field:
        field, given, nearest = _largest_setting(spec, names, fits)
    raise ResultTooLarge(
        field, given, required=required, limit=max_bytes, unit="bytes", nearest=nearest
    )


@functools.lru_cache(maxsize=128)  # pages need this for their settings at every rerun
def _costs(spec: Spec, most: bool = False) -> Mapping[str, tuple[Work, float]]:
    """Return the work and the peak bytes of each point by key."""
    keys = spec.point_keys()
    counts = [counts_of(spec, key, most) for key in keys]
    num_bytes = bytes_of_points(counts)
    costs = {}
    for key, of_point, bytes_of_point in zip(keys, counts, num_bytes, strict=True):
        costs[key] = (total_work(of_point), bytes_of_point)
    return costs


def check_size(
    spec: Spec,
    max_bytes: float = math.inf,
    scheduler: str | None = None,
    max_result_bytes: float = math.inf,
) -> None:
    """Refuse a spec that cannot run here.

    Its data are missing, its largest point does not fit into memory, or its result is too large.

    Args:
        max_bytes: the run's limit in bytes, if it is below :func:`memory_limit`.
        max_result_bytes: limit of the estimated result, in bytes.
        scheduler: as in :func:`run`. Workers of a cluster check their own memory, so this machine's
            memory is then no limit unless ``LINEARITY_LAB_MEMORY_GIB`` sets one.

    Raises:
        MissingUpload: for ``dataset.digest``, if the uploaded data are not stored here.
        TooLarge: for the swept setting or ``dataset.num_samples``, with the largest value that fits
            (larger values are reduced to it), or 1 if none does.
        ResultTooLarge: for the setting to lower, if the result is estimated above its limit.
        InvalidInput: if the environment's memory limit is not a number, or its
            scheduler not an address.
    """
    check_data(spec)
    check_result_size(spec, max_result_bytes)
    is_computed_here = not scheduler_address(scheduler)
    limit = max_bytes
    if is_computed_here or stated_memory():
        limit = min(limit, memory_limit())
    required = largest_bytes(spec)
    if required <= limit:
        return

    def fits(candidate: Spec) -> bool:
        keys = candidate.point_keys()
        # The last point is usually the largest, so it decides most cases without the others.
        if peak_bytes(counts_of(candidate, keys[-1])) > limit:
            return False
        counts = [counts_of(candidate, key) for key in keys]
        return max(bytes_of_points(counts)) <= limit

    field, given, nearest = _largest_setting(spec, [spec.swept_field, "dataset.num_samples"], fits)
    raise TooLarge(field, given, required=required, limit=limit, unit="bytes", nearest=nearest)


def check_time(spec: Spec, max_seconds: float, *, most: bool = False) -> None:
    """Refuse a spec that is expected to take longer than ``max_seconds``.

    Args:
        most: as for :func:`estimate`: refuse a spec that could take longer.

    Raises:
        TooLarge: for the first setting that alone brings the time within the limit: the swept
            setting (larger values are reduced), the seeds, the steps, the training points. The
            steps come first if their typical number fits. If no setting suffices, for the first one
            that can be lowered, with 1.
    """
    required = sum(seconds_of_points(spec, most).values())
    if required <= max_seconds:
        return
    field, given, nearest = _most_in_time(spec, max_seconds, most, machine())
    raise TooLarge(
        field, given, required=required, limit=max_seconds, unit="seconds", nearest=nearest
    )


@functools.lru_cache(maxsize=256)  # pages need this for the paper's sizes at every rerun
def _most_in_time(
    spec: Spec, max_seconds: float, most: bool, here: Machine
) -> tuple[str, int, int]:
    def fits(candidate: Spec, most: bool = most) -> bool:
        # The costliest point is last; starting there ends the loop early.
        seconds = 0.0
        for key in reversed(candidate.point_keys()):
            seconds += here.seconds(total_work(counts_of(candidate, key, most)))
            # Not ``>``, so that a cost that is not a number is refused.
            if not seconds <= max_seconds:
                return False
        return True

    names = [spec.swept_field, "num_seeds", _STEPS, "dataset.num_samples"]
    if most and fits(spec, most=False):
        # The typical number of steps fits, the maximum does not: lower the steps first.
        names.remove(_STEPS)
        names.insert(0, _STEPS)
    return _largest_setting(spec, names, fits)


def _largest_setting(
    spec: Spec, names: Sequence[str], fits: Callable[[Spec], bool]
) -> tuple[str, int, int]:
    """Return the first setting that alone makes ``spec`` fit, else the first above 1.

    Its largest and new value.
    """
    largest: dict[str, int] = {}
    for name in names:
        value = setting_of(spec, name)
        if value is not None:
            largest[name] = max(value) if isinstance(value, tuple) else value
    candidates = [name for name in largest if largest[name] > 1]
    if not candidates:
        candidates = list(largest)[-1:]
    sufficient = [name for name in candidates if fits(capped(spec, name, 1))]
    lowered = sufficient[0] if sufficient else candidates[0]

    def fits_with(value: int) -> bool:
        return fits(capped(spec, lowered, value))

    return lowered, largest[lowered], largest_fitting(fits_with, largest[lowered])


def setting_of(spec: SpecPart, name: str) -> Any:
    """Return a setting's value by dotted name; None if the spec lacks it or does not use it."""
    try:
        return value_at(spec, name)
    except KeyError:
        return None


def capped(spec: Spec, name: str, most: int) -> Spec:
    """Return ``spec`` with this setting, or each of its values, reduced to ``most``."""
    value = value_at(spec, name)
    lower: int | tuple[int, ...]
    if isinstance(value, tuple):
        reduced = {min(item, most) for item in value}
        lower = tuple(sorted(reduced))
    else:
        lower = min(value, most)
    return cast(Spec, with_value(spec, name, lower))


def check_data(spec: Spec) -> None:
    """Refuse a spec with missing data."""
    dataset = getattr(spec, "dataset", None)
    if isinstance(dataset, DatasetSpec) and dataset.known_shapes() is None:
        raise MissingUpload("dataset.digest", dataset.digest, HOW_TO_BRING)


def largest_fitting(fits: Callable[[int], bool], too_large: int) -> int:
    """Return the largest of :data:`ROUND` below ``too_large`` that fits, by at most ten calls.

    1 by assumption.
    """
    end = max(1, bisect.bisect_left(ROUND, too_large))
    # Sizes that fit come first, so bisection finds the first one that does not fit; 1 is not tried.
    first_refused = bisect.bisect_left(ROUND, True, lo=1, hi=end, key=lambda value: not fits(value))
    return ROUND[first_refused - 1]


def scheduler_address(given: str | None = None) -> str | None:
    """Return the address of the dask scheduler, ``given`` or from the environment.

    None to compute here.
    """
    if given is None:
        address = environment_settings().scheduler
        check_scheduler(SCHEDULER_VARIABLE, address)
    else:
        address = given
        check_scheduler("scheduler", address)
    return address or None


def devices_for(spec: Spec, key: str) -> int:
    """Return the number of devices that share the widths of a point: all, if one is too small."""
    import jax

    stated = environment_settings().devices
    available = len(jax.devices())
    if stated is not None and stated > available:
        raise InvalidInput(
            "LINEARITY_LAB_DEVICES", stated, f"an integer from 1 to {available}, the devices found"
        )
    if stated is not None:
        return stated or 1
    usable = accelerator_bytes()
    if not usable or peak_bytes(counts_of(spec, key)) <= usable[0]:
        return 1
    width = spec.parts_of(key).get("width", 0)
    numbers = range(1, len(usable) + 1)
    return max(count for count in numbers if width % count == 0)
