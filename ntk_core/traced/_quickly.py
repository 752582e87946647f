"""Compiling of programs that run once or on little data."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from typing import TypeVar

import jax

Result = TypeVar("Result")


@cache
def quickly(function: Callable[..., Result]) -> Callable[..., Result]:
    """Compile for one run, with a static first argument."""
    return jax.jit(
        function, static_argnums=0, compiler_options=quick_options(jax.default_backend())
    )


def quick_options(backend: str, level: int = 0) -> dict[str, int | bool] | None:
    """Return compiler options for programs that run once or on little data.

    A low LLVM level on CPUs.

    XLA's older emitters, while available, compile a gradient in half the time.
    """
    if backend != "cpu":
        return None
    older = tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11)
    return {
        "xla_backend_optimization_level": level,
        "xla_cpu_parallel_codegen_split_count": 1,
        **({"xla_cpu_use_fusion_emitters": False} if older else {}),
    }
