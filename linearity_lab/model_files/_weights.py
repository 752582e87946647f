"""Weights in files: npz, safetensors, or a PyTorch state dictionary; read, never executed."""

import copy
import json
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ntk_core.errors import InvalidInput, kind_of, reason_of
from ntk_core.linearity import CONTRACT
from ntk_core.machine import how_to_install
from ntk_core.torch import from_torch
from ntk_core.traced import Apply, leaf_name

Weights = dict[str, np.ndarray]
SUFFIXES = (
    ".npz, .safetensors, or .pt, .pth or .bin of torch.save(module.state_dict(), …), "
    "or their .index.json"
)
# Largest index of a checkpoint in parts; one of a million names has about 100 MB.
MAX_INDEX_BYTES = 2**27

# Names of the weights in checkpoints of training loops, in order of preference.
STATE_NAMES = (
    "state_dict",
    "model_state_dict",
    "model_state",
    "model",
    "module",
    "network",
    "net",
    "weights",
    "params",
)


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
        ".json": _parts,
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
        allowed = f"arrays by name in {SUFFIXES}; the reader reports: {reason_of(error)}"
        raise InvalidInput("checkpoint", path.name, allowed) from error
    if not found:
        raise InvalidInput(
            "checkpoint", f"{path.name} without arrays", f"arrays by name in {SUFFIXES}"
        )
    return found


def with_checkpoints(
    made: Any, before: Weights, after: Weights, x: np.ndarray
) -> tuple[Apply, PyTree, PyTree]:
    """Return (apply, w₀, w₁) with the weights of two files.

    They belong to (apply, params) or a ``torch.nn.Module``.

    Arrays are named as in a state dictionary or as leaves of the parameter tree:
    ``encoder.weight``. All names of a file may have a prefix (``module.``, ``_orig_mod.``). Tied
    weights need one of their names. Apart from this, names, shapes and untrained values (running
    averages, frozen parameters) must be equal.
    """
    if not (hasattr(made, "load_state_dict") and hasattr(made, "state_dict")):
        if not (isinstance(made, tuple) and len(made) == 2 and callable(made[0])):
            raise InvalidInput("model", f"a model that returns {kind_of(made)}", CONTRACT)
        apply, params = made
        return apply, *(
            _in_tree(params, weights, field)
            for field, weights in (("before", before), ("after", after))
        )
    return _of_module(made, before, after, x)


def _of_module(
    module: Any, before: Weights, after: Weights, x: np.ndarray
) -> tuple[Apply, PyTree, PyTree]:
    """Return (apply, w₀, w₁) of a ``torch.nn.Module``, which stays as it is."""
    import torch

    own = copy.deepcopy(module)
    tied = _tied_names(own)
    expected = {name: tuple(each.shape) for name, each in own.state_dict().items()}
    filled = []  # the weights of both files under every name of the module
    for field, weights in (("before", before), ("after", after)):
        named = _with_names(weights, expected, tied)
        completed = _with_tied(named, tied, field)
        # Files of earlier versions contain buffers that the module computes itself.
        computed = {name for name, _ in own.named_buffers()} - expected.keys()
        kept = {name: each for name, each in completed.items() if name not in computed}
        _check_names({name: each.shape for name, each in kept.items()}, expected, field)
        filled.append(kept)
    w0, w1 = filled
    own.load_state_dict({name: torch.as_tensor(np.array(each)) for name, each in w0.items()})
    apply, params = from_torch(own, x)
    for name, value in w0.items():
        is_trained = name in params or not tied.get(name, set()).isdisjoint(params)
        # The count of batches is not used in eval mode.
        if is_trained or name.endswith("num_batches_tracked"):
            continue
        if not np.array_equal(value, w1[name]):
            raise InvalidInput(
                "after", f"another {name}, which is not trained", "its value in before"
            )
    return apply, params, {name: w1[name].astype(each.dtype) for name, each in params.items()}


def _tied_names(module: Any) -> dict[str, set[str]]:
    """Return, for each name of a tensor with several names, all of them."""
    groups: dict[int, set[str]] = {}
    tensors = [
        *module.named_parameters(remove_duplicate=False),
        *module.named_buffers(remove_duplicate=False),
    ]
    for name, tensor in tensors:
        groups.setdefault(id(tensor), set()).add(name)
    tied = {}
    for names in groups.values():
        if len(names) > 1:
            for name in names:
                tied[name] = names
    return tied


def _with_tied(weights: Weights, tied: dict[str, set[str]], field: str) -> Weights:
    """Add the other names of tied tensors; files may have one of them or all.

    Raises:
        InvalidInput: if a file has two values of one tensor.
    """
    completed = dict(weights)
    for name, value in weights.items():
        for other in sorted(tied.get(name, ())):
            known = completed.setdefault(other, value)
            if not np.array_equal(known, value):
                allowed = f"one value of {name} and {other}, which are one tensor of the model"
                raise InvalidInput(field, "two values of tied weights", allowed)
    return completed


def _with_names(
    weights: Weights, expected: Collection[str], tied: Mapping[str, Collection[str]]
) -> Weights:
    """Add or remove a common prefix, such as ``module.`` or ``_orig_mod.``, if names then agree.

    Wrappers (torch.compile, DataParallel, Lightning) put their attribute's name before all names.
    """
    if _covers(weights, expected, tied):
        return weights
    shortest = min(weights, key=len)
    for name in expected:
        if shortest.endswith("." + name):  # the file has the prefix
            prefix = shortest[: -len(name)]
            renamed = {each.removeprefix(prefix): value for each, value in weights.items()}
            if all(each.startswith(prefix) for each in weights) and _covers(
                renamed, expected, tied
            ):
                return renamed
        if name.endswith("." + shortest):  # the model has it
            prefix = name[: -len(shortest)]
            renamed = {prefix + each: value for each, value in weights.items()}
            if _covers(renamed, expected, tied):
                return renamed
    return weights


def _covers(
    weights: Weights, expected: Collection[str], tied: Mapping[str, Collection[str]]
) -> bool:
    for name in expected:
        names = {name, *tied.get(name, ())}
        if names.isdisjoint(weights):
            return False
    return True


def _in_tree(params: PyTree, weights: Weights, field: str) -> PyTree:
    paths, structure = jax.tree_util.tree_flatten_with_path(params)
    expected = {leaf_name(path): np.shape(leaf) for path, leaf in paths}
    weights = _with_names(weights, expected, {})
    _check_names({name: each.shape for name, each in weights.items()}, expected, field)
    return jax.tree.unflatten(structure, [weights[name] for name in expected])


def _check_names(
    given: dict[str, tuple[int, ...]], expected: dict[str, tuple[int, ...]], field: str
) -> None:
    for name in [*expected, *given]:
        here = given.get(name)
        there = expected.get(name)
        if here != there:
            allowed = f"no {name}" if there is None else f"{name} of shape {there}, as in the model"
            raise InvalidInput(
                field, f"no {name}" if here is None else f"{name} of shape {here}", allowed
            )


def _npz(path: Path) -> Weights:
    if not zipfile.is_zipfile(path):
        raise ValueError("no archive of arrays as numpy.savez writes it")
    try:
        with np.load(path, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
    except ValueError:  # NumPy's own words recommend unpickling
        raise ValueError("an array with Python objects, which are never read") from None
    for name, array in arrays.items():
        if array.dtype.kind == "V":  # what NumPy writes for bfloat16
            raise ValueError(f"{name} of a type that NumPy cannot store; write float32")
    return _widened(arrays)


def _safetensors(path: Path) -> Weights:
    from safetensors.numpy import load_file

    return _widened(load_file(path))


def _parts(path: Path) -> Weights:
    """Return the weights in the parts that an index of Hugging Face names, all in its folder.

    An index has a ``weight_map`` from each name to the file that contains it.

    Raises:
        ValueError: if the index is no index, or the parts lack a name or have another one.
    """
    if path.stat().st_size > MAX_INDEX_BYTES:
        raise ValueError("an index of more than 128 MiB")
    index = json.loads(path.read_text("utf-8"))
    weight_map = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise ValueError("no weight_map")
    readers = {".safetensors": _safetensors, ".bin": _state}
    files = sorted(set(map(str, weight_map.values())))
    for file in files:
        if Path(file).name != file:
            raise ValueError(f"a part elsewhere, {file}")
        if Path(file).suffix not in readers:
            raise ValueError(f"a part of another type, {file}")
        if not path.with_name(file).is_file():
            raise ValueError(f"a part is missing, {file}")

    weights: Weights = {}
    for file in files:
        found = readers[Path(file).suffix](path.with_name(file))
        named = {name for name, its_file in weight_map.items() if its_file == file}
        for name in sorted(named ^ found.keys()):
            where = "missing in" if name in named else "not in the index but in"
            raise ValueError(f"{name} is {where} {file}")
        weights.update(found)
    return weights


def _widened(arrays: Mapping[str, np.ndarray]) -> Weights:
    """Return float16, bfloat16 and smaller floats as float32, which contains them."""
    widened = {}
    for name, array in arrays.items():
        is_short = jnp.issubdtype(array.dtype, jnp.floating) and array.dtype.itemsize < 4
        widened[name] = array.astype(np.float32) if is_short else array
    return widened


def _state(path: Path) -> Weights:
    import torch

    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except KeyError as error:  # names an unknown byte, which helps no one
        raise ValueError("no file of torch.save") from error
    weights = {}
    for name, tensor in _tensors_in(found).items():
        is_short = tensor.is_floating_point() and tensor.element_size() < 4
        wide = tensor.float() if is_short else tensor
        weights[str(name)] = np.asarray(wide.numpy(force=True))
    return weights


def _tensors_in(found: object) -> dict[str, Any]:
    """Return the state dictionary in a checkpoint; epochs, metrics and optimizers are left out.

    Raises:
        ValueError: if there is none, or several without a known name.
    """
    import torch

    if not isinstance(found, Mapping):
        raise ValueError("no state dictionary")
    for name in STATE_NAMES:
        inner = found.get(name)
        if isinstance(inner, Mapping) and _is_state(inner):
            return _tensors_in(inner)
    tensors = {name: each for name, each in found.items() if isinstance(each, torch.Tensor)}
    if tensors:
        return tensors
    states = [name for name, each in found.items() if isinstance(each, Mapping) and _is_state(each)]
    if len(states) > 1:
        raise ValueError(f"several state dictionaries: {', '.join(map(str, states))}")
    if not states:
        raise ValueError("no state dictionary")
    return _tensors_in(found[states[0]])


def _is_state(found: Mapping[Any, Any]) -> bool:
    """Whether a mapping contains tensors by name, at any depth, and is no optimizer's state."""
    import torch

    if "param_groups" in found:
        return False
    for name, each in found.items():
        if not isinstance(name, str):
            continue
        if isinstance(each, torch.Tensor) or (isinstance(each, Mapping) and _is_state(each)):
            return True
    return False
