"""Strict settings of JAX, which this package's own computations do not follow."""

import functools
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, ParamSpec, TypeVar

import jax

Given = ParamSpec("Given")
Result = TypeVar("Result")
CONFIG: Any = jax.config  # JAX does not type the attributes of its settings


def with_usual_settings(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Run a function without ``jax_debug_nans`` and with the usual promotion of ranks and types.

    NaN stands for values that do not exist, such as an alignment without targets; broadcasting and mixed types are
    intended.
    """

    @functools.wraps(function)
    def usual(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        with ExitStack() as settings:
            # Entering a setting that holds already would cost time at every call.
            if CONFIG.jax_debug_nans:
                settings.enter_context(jax.debug_nans(False))
            if CONFIG.jax_debug_infs:
                settings.enter_context(jax.debug_infs(False))
            if CONFIG.jax_numpy_rank_promotion != "allow":
                settings.enter_context(jax.numpy_rank_promotion("allow"))
            if CONFIG.jax_numpy_dtype_promotion != "standard":
                settings.enter_context(jax.numpy_dtype_promotion("standard"))
            return function(*args, **kwargs)

    return usual
