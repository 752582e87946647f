"""Programs of short trainings, which compile in less time and take slower steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, Literal, NamedTuple

import jax
from jax.stages import Lowered, Traced, Wrapped

from ntk_core.traced import quick_options

Group = Literal["steps", "records", "data"]


class Levels(NamedTuple):
    """LLVM's optimization levels of programs on a CPU, 0 to 3, under XLA's older emitters.

    None compiles as usual.

    Attributes:
        steps: of loops over training steps.
        records: of programs of the network that are called once for each record.
        data: of programs whose shapes are those of the data, which serve all widths.
    """

    steps: int | None = None
    records: int | None = None
    data: int | None = None


USUAL = Levels()
_levels: ContextVar[Levels] = ContextVar("levels", default=USUAL)


@contextmanager
def short_runs(levels: Levels) -> Iterator[None]:
    """Context of trainings that take less time than compiling their programs.

    Results differ by rounding from those of usual programs.
    """
    token = _levels.set(levels)
    try:
        yield
    finally:
        _levels.reset(token)


class Compiled:
    """A function under ``jax.jit``, with other compiler options inside of :func:`short_runs`.

    Args:
        function: to compile.
        group: of programs that share a level, see :class:`Levels`.
        usual_level: of LLVM outside of short runs; None compiles as usual.
        options: of ``jax.jit``.
    """

    __wrapped__: Callable[..., Any]

    def __init__(
        self,
        function: Callable[..., Any],
        group: Group,
        usual_level: int | None = None,
        **options: Any,
    ):
        self._group: Group = group
        self._usual_level = usual_level
        self._options = options
        self._usual: Wrapped = jax.jit(function, **options)
        self._short: dict[int, Wrapped] = {}  # by level
        wraps(function)(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        level: int | None = getattr(_levels.get(), self._group)
        if level is None:
            level = self._usual_level
        program = self._usual if level is None else self._at(level)
        return program(*args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """As of ``jax.jit``."""
        return self._usual.trace(*args, **kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """As of ``jax.jit``."""
        return self._usual.lower(*args, **kwargs)

    def _at(self, level: int) -> Wrapped:
        """Return the program for short runs; the usual one on accelerators."""
        options = quick_options(jax.default_backend(), level)
        if options is None:
            return self._usual
        if level not in self._short:
            self._short[level] = jax.jit(
                _as_usual(self.__wrapped__), compiler_options=options, **self._options
            )
        return self._short[level]


def _as_usual(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with usual inner programs: JAX takes options for the outermost only."""

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        with short_runs(USUAL):
            return function(*args, **kwargs)

    return called


def compiled(
    group: Group, usual_level: int | None = None, **options: Any
) -> Callable[[Callable[..., Any]], Compiled]:
    """Decorate a function like ``jax.jit`` with these options, see :class:`Compiled`."""
    return lambda function: Compiled(function, group, usual_level, **options)
