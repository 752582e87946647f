"""Actionable errors: each names the field, its value and the allowed values."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from functools import partial
from typing import Any, Self

from ntk_core.markup import without_marks
from ntk_core.numbers import duration, size

MOST_NAMES = 6  # listed in one sentence
LONGEST_FAILURE = 600  # characters of an error's message in a stored run


class InvalidInput(ValueError):
    """Error for an invalid value from outside.

    A value from a widget, URL, file or command line that cannot be used.

    ``str(error)`` is one sentence by the ``template`` of the class:
    ``width: 0 cannot be used; use an integer from 1 to 10,000,000``.

    Attributes:
        field: name of the setting in the spec (``"width"``, ``"dataset.name"``).
        given: the given value, shortened for display.
        allowed: the allowed range or choices, in words.
        nearest: an allowed value that could replace it, if one is close.
        longest: characters of ``given`` that are kept; the rest is cut, since values
            may be uploaded files.

    >>> str(InvalidInput("width", 0, "an integer from 1 to 10,000,000"))
    'width: 0 cannot be used; use an integer from 1 to 10,000,000'
    >>> str(InvalidInput("figure", "", "the name of a figure"))
    'figure: an empty text cannot be used; use the name of a figure'
    """

    template = "{}: {} cannot be used; use {}"
    nearest: object
    longest = 60

    def __init__(self, field: str, given: object, allowed: str, nearest: object = None):
        self.field = _shorten(field, 120)
        self.given = _shorten(given, self.longest) or "an empty text"
        self.allowed = allowed
        self.nearest = nearest
        super().__init__(self.template.format(self.field, self.given, allowed))

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.field, self.given, self.allowed, self.nearest))


class UnknownSetting(InvalidInput):
    """A setting that does not exist, with similar names.

    Its text is ``wdths: no such setting; did you mean widths?``

    Attributes:
        nearest: the closest known name, or None.

    >>> str(UnknownSetting.among("wdths", 30, ["widths", "seed"]))
    'wdths: no such setting; did you mean widths?'
    """

    template = "{0}: no such setting; {2}"

    @classmethod
    def among(cls, name: str, given: object, known: Iterable[str]) -> Self:
        """Return the error for ``name`` with the closest ``known`` names, or some."""
        names = {each: each.rpartition(".")[2] for each in known}
        group, _, last = name.rpartition(".")
        similar = get_close_matches(last, names.values(), 1)
        close = (
            [each for each, end in names.items() if end == last]
            or [each for each, end in names.items() if len(last) > 3 and last in end]
            or [each for each, end in names.items() if end in similar]
        )
        if close:
            return cls(name, given, f"did you mean {' or '.join(close[:3])}?", close[0])
        is_group = all(each.startswith(f"{group}.") for each in names)
        shown = list(names.values() if is_group else names)
        listed = ", ".join(shown[:MOST_NAMES])
        if len(shown) > MOST_NAMES:
            listed += f" and {len(shown) - MOST_NAMES} more"
        return cls(name, given, f"the settings are {listed}")


class TooLarge(InvalidInput):
    """Error for a request beyond the memory or time limit.

    Raised before computation, if the estimate exceeds memory or time.

    Attributes:
        required: the estimate (bytes or seconds, see ``unit``).
        limit: what is available, in the same unit.
        unit: ``"bytes"`` or ``"seconds"``.
        nearest: the nearest value of ``field`` that fits.

    >>> TooLarge("width", 10**7, required=2**40, limit=2**34, unit="bytes", nearest=10**5).nearest
    100000
    """

    because = "it needs about {} and {} are available"

    def __init__(
        self,
        field: str,
        given: object,
        *,
        required: float,
        limit: float,
        unit: str,
        nearest: object,
    ):
        self.required = required
        self.limit = limit
        self.unit = unit
        words = size if unit == "bytes" else duration
        reason = self.because.format(words(required), words(limit))
        most = "False" if nearest is False else f"at most {nearest}"
        super().__init__(field, given, f"{most} here, since {reason}", nearest)

    def __reduce__(self) -> tuple[object, ...]:
        quantities: dict[str, Any] = {
            "required": self.required,
            "limit": self.limit,
            "unit": self.unit,
            "nearest": self.nearest,
        }
        return (partial(type(self), **quantities), (self.field, self.given))


class ResultTooLarge(TooLarge):
    """Error for a run whose stored result would exceed a limit of bytes."""

    because = "its result takes about {} and {} are allowed"


class RowsMix(InvalidInput):
    """Error for a function whose outputs for one row of x depend on other rows.

    >>> str(RowsMix("net", "a function in which cumsum mixes the rows of x", "one row at a time"))
    'net: a function in which cumsum mixes the rows of x cannot be used; use one row at a time'
    """

    longest = 300  # a description in our own words, not a value from outside


class RunFailed(RuntimeError):
    """A run that did not complete.

    Attributes:
        result: the result with finished points, or None.

    >>> str(RunFailed("")), RunFailed("over memory").result
    ('the run was stopped', None)
    """

    def __init__(self, reason: str, result: Any = None):
        self.result = result
        super().__init__(reason or "the run was stopped")

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (str(self), self.result))


def check_choice(field: str, given: object, allowed: Collection[str]) -> None:
    """Refuse a name that is not one of ``allowed``."""
    if not isinstance(given, str) or given not in allowed:
        raise InvalidInput(field, given, "one of " + ", ".join(allowed))


def kind_of(value: object) -> str:
    """Describe a value in a few words."""
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    return str(getattr(value, "__name__", type(value).__name__))


def reason_of(error: BaseException) -> str:
    """Return an error's whole message in one line, or the name of its class.

    The line that helps is often the last one, so no line is dropped.

    >>> reason_of(ValueError("a mismatch:\\n\\n  3 and 4"))
    'a mismatch: 3 and 4'
    """
    return " ".join(str(error).split()) or type(error).__name__


def failure(error: BaseException) -> str:
    """Return the class and the whole message of an error in one line.

    Very long messages lose their middle.

    >>> failure(ValueError("shapes differ\\n  in line 3")), failure(KeyError())
    ('ValueError: shapes differ in line 3', 'KeyError: no message')
    """
    words = " ".join(str(error).split()) or "no message"
    if len(words) > LONGEST_FAILURE:
        half = LONGEST_FAILURE // 2
        # The line that helps is often the last one.
        words = f"{words[:half]} … {words[-half:]}"
    return f"{type(error).__name__}: {words}"


def _shorten(value: object, limit: int) -> str:
    try:
        text = without_marks(value) if isinstance(value, str) else repr(value)
    except RuntimeError:  # JAX prints no array that was deleted
        text = f"an unreadable {type(value).__name__}"
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    # Unpaired surrogates, which JSON may contain.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
