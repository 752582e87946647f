"""Weights in files: npz, safetensors, or a PyTorch state dictionary; read, never executed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from ntk_core.environment import how_to_install
from ntk_core.errors import InvalidInput, kind_of
from ntk_core.own_models._file import CONTRACT
from ntk_core.own_models._torch import from_torch
from ntk_core.traced import Apply, leaf_name

Weights = dict[str, np.ndarray]
SUFFIXES = ".npz, .safetensors, or .pt, .pth or .bin of torch.save(module.state_dict(), …)"


def read_checkpoint(path: Path) -> Weights:
    """Return the arrays of a checkpoint by name, without executing anything in it."""
    if not path.is_file():
        raise InvalidInput("checkpoint", str(path), "a file that exists")
    readers = {
        ".npz": _npz,
        ".safetensors": _safetensors,
        ".pt": _state,
        ".pth": _state,
        ".bin": _state,
    }
    if path.suffix not in readers:
        raise InvalidInput("checkpoint", path.name, SUFFIXES)
    try:
        found = readers[path.suffix](path)
    except ImportError as error:
        raise InvalidInput(
            "checkpoint", path.name, f"{how_to_install('torch')} for {error.name}, or an .npz file"
        ) from None
    except Exception as error:  # any error of a reader on a damaged or foreign file
        first = next(
            (line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__
        )
        raise InvalidInput(
            "checkpoint", f"{path.name} ({first[:80]})", f"arrays by name in {SUFFIXES}"
        ) from None
    if not found:
        raise InvalidInput(
            "checkpoint", f"{path.name} without arrays", f"arrays by name in {SUFFIXES}"
        )
    return found


def with_checkpoints(
    made: Any, before: Weights, after: Weights, x: np.ndarray
) -> tuple[Apply, PyTree, PyTree]:
    """Return (apply, w₀, w₁) of (apply, params) or a ``torch.nn.Module`` with the weights of two files.

    Arrays are named as in a state dictionary or as leaves of the parameter tree: ``encoder.weight``.
    Names, shapes and untrained values (running averages, frozen parameters) must be equal.
    """
    if not (hasattr(made, "load_state_dict") and hasattr(made, "state_dict")):
        if not (isinstance(made, tuple) and len(made) == 2 and callable(made[0])):
            raise InvalidInput("model", f"a model that returns {kind_of(made)}", CONTRACT)
        apply, params = made
        return apply, *(
            _in_tree(params, weights, field)
            for field, weights in (("before", before), ("after", after))
        )
    import torch

    expected = {name: tuple(each.shape) for name, each in made.state_dict().items()}
    for field, weights in (("before", before), ("after", after)):
        _check_names({name: each.shape for name, each in weights.items()}, expected, field)
    made.load_state_dict({name: torch.as_tensor(np.array(each)) for name, each in before.items()})
    apply, params = from_torch(made, x)
    for name in before.keys() - params.keys():
        if not np.array_equal(before[name], after[name]):
            raise InvalidInput(
                "after", f"another {name}, which is not trained", "its value in before"
            )
    return apply, params, {name: after[name].astype(each.dtype) for name, each in params.items()}


def _in_tree(params: PyTree, weights: Weights, field: str) -> PyTree:
    paths, structure = jax.tree_util.tree_flatten_with_path(params)
    expected = {leaf_name(path): np.shape(leaf) for path, leaf in paths}
    _check_names({name: each.shape for name, each in weights.items()}, expected, field)
    return jax.tree.unflatten(structure, [weights[name] for name in expected])


def _check_names(
    given: dict[str, tuple[int, ...]], expected: dict[str, tuple[int, ...]], field: str
) -> None:
    for name in [*expected, *given]:
        here, there = given.get(name), expected.get(name)
        if here != there:
            allowed = f"no {name}" if there is None else f"{name} of shape {there}, as in the model"
            raise InvalidInput(
                field, f"no {name}" if here is None else f"{name} of shape {here}", allowed
            )


def _npz(path: Path) -> Weights:
    with np.load(path, allow_pickle=False) as found:
        return {name: found[name] for name in found.files}


def _safetensors(path: Path) -> Weights:
    from safetensors.numpy import load_file

    return dict(load_file(path))


def _state(path: Path) -> Weights:
    import torch

    found = torch.load(path, map_location="cpu", weights_only=True)
    if isinstance(found, Mapping) and isinstance(found.get("state_dict"), Mapping):
        found = found["state_dict"]
    if not isinstance(found, Mapping) or not all(
        isinstance(each, torch.Tensor) for each in found.values()
    ):
        raise ValueError("no state dictionary")
    short = (torch.bfloat16, torch.float16)
    wide = {
        str(name): each.float() if each.dtype in short else each for name, each in found.items()
    }
    return {name: np.asarray(each.detach().numpy()) for name, each in wide.items()}
