"""Strict settings of JAX, which this package's own computations do not follow.
Imported without JAX.
"""

import functools
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")
TRANSFERS = (
    "jax_transfer_guard",
    "jax_transfer_guard_host_to_device",
    "jax_transfer_guard_device_to_device",
    "jax_transfer_guard_device_to_host",
)
DISALLOWING = ("disallow", "disallow_explicit")


def with_usual_settings(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Run a function with the usual settings of JAX.

    ``jax_debug_nans`` and guards of transfers are off; ranks and types are promoted as usual.

    NaN stands for values that do not exist, such as an alignment without targets; broadcasting,
    mixed types and arrays of NumPy are intended.
    """

    @functools.wraps(function)
    def usual(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        import jax

        config: Any = jax.config  # JAX does not type the attributes of its settings
        with ExitStack() as settings:
            # Entering a setting that holds already would cost time at every call.
            if config.jax_debug_nans:
                settings.enter_context(jax.debug_nans(False))
            if config.jax_debug_infs:
                settings.enter_context(jax.debug_infs(False))
            if config.jax_numpy_rank_promotion != "allow":
                settings.enter_context(jax.numpy_rank_promotion("allow"))
            if config.jax_numpy_dtype_promotion != "standard":
                settings.enter_context(jax.numpy_dtype_promotion("standard"))
            if any(getattr(config, name) in DISALLOWING for name in TRANSFERS):
                settings.enter_context(jax.transfer_guard("allow"))
            return function(*args, **kwargs)

    return usual
