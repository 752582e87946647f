"""Names of parameters: one spelling in kernels, Hessians, ``trainable``, reports and messages."""

from __future__ import annotations

from collections.abc import Sequence

import jax
from jax.tree_util import KeyPath


def leaf_names(paths: Sequence[KeyPath]) -> list[str]:
    """Return a name for each path; in JAX's form, ``['a.b']``, where ``a.b`` names two arrays."""
    names = [leaf_name(path) for path in paths]
    seen: set[str] = set()
    shared: set[str] = set()
    for name in names:
        (shared if name in seen else seen).add(name)
    unique = []
    for path, name in zip(paths, names, strict=True):
        unique.append(jax.tree_util.keystr(path) if name in shared else name)
    return unique


def leaf_name(path: KeyPath) -> str:
    """Return the path of an array in a tree: ``encoder.weight``; ``params`` for a single array."""
    return jax.tree_util.keystr(path, simple=True, separator=".") or "params"
