"""Every use as a matrix product at each of its positions: z_p = ⟨W, a_p⟩ in independent blocks."""

import math
from collections.abc import Iterator, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.lax import GatherScatterMode

from ntk_core.traced._uses import Use
from ntk_core.traced._views import EquationParams


def features_at(use: Use, a: Array) -> Array:
    """Return the parameter's factors, (blocks, positions, fan_in).

    They are of one step of all enclosing scans.
    """
    features = _ARRANGED[use.kind](use, a)
    return features if use.view.scale == 1 else use.view.scale * features


def _product_features(use: Use, a: Array) -> Array:
    contracting, batch = (each[1 - use.operand] for each in use.params["dimension_numbers"])
    free = [at for at in range(a.ndim) if at not in (*contracting, *batch)]
    return _joined(a, batch, free, contracting)  # (blocks, positions, fan_in)


def _joined(array: Array, *parts: Sequence[int]) -> Array:
    """Return an array with one axis for each part of its axes."""
    order: list[int] = []
    sizes = []
    for part in parts:
        order.extend(part)
        sizes.append(math.prod(array.shape[at] for at in part))
    return array.transpose(order).reshape(sizes)


def _convolution_features(use: Use, a: Array) -> Array:
    """Extract patches by slices, on a CPU ten times faster than by a convolution."""
    params = use.params
    numbers = use.params["dimension_numbers"]
    inner = zip(params["padding"], params["lhs_dilation"], strict=True)
    a = a.transpose(numbers.lhs_spec)  # (n, channels, *sizes)
    zero = np.zeros((), a.dtype)
    padding = [(0, 0, 0), (0, 0, 0)]  # of rows and channels
    for (low, high), dilation in inner:
        padding.append((low, high, dilation - 1))
    a = jax.lax.pad(a, zero, padding)
    kernel = [use.shapes[1][at] for at in numbers.rhs_spec[2:]]
    out = [use.shapes[2][at] for at in numbers.out_spec[2:]]
    patches = [a[:, :, *window] for window in _windows(kernel, out, params)]
    n, channels = a.shape[:2]
    num_positions = math.prod(out)
    stacked = jnp.stack(patches, -1)  # (n, channels, *out, entries of the kernel)
    grouped = stacked.reshape(n, use.groups, channels // use.groups, num_positions, len(patches))
    return grouped.transpose(1, 0, 3, 2, 4).reshape(use.groups, n * num_positions, -1)


def _windows(
    kernel: Sequence[int], out: Sequence[int], params: EquationParams
) -> Iterator[tuple[slice, ...]]:
    """Yield, for each entry of the kernel, the places of a that it multiplies."""
    axes = list(zip(out, params["window_strides"], params["rhs_dilation"], strict=True))
    for offset in np.ndindex(*kernel):
        window = []
        for at, (size, stride, dilation) in zip(offset, axes, strict=True):
            first = at * dilation
            last = first + (size - 1) * stride
            window.append(slice(first, last + 1, stride))
        yield tuple(window)


def _look_up_features(use: Use, a: Array) -> Array:
    return jax.nn.one_hot(indices(use, a)[..., 0].astype(int), use.shapes[1][0], dtype=a.dtype)


def indices(use: Use, a: Array) -> Array:
    """Row numbers of a look-up, (1, positions, 1)."""
    return a.reshape(1, -1, 1)


def row_numbers(use: Use, index: Array) -> Array:
    """Return the table rows that z depends on, as floats (exact: see ``MOST_ROWS``).

    The number of rows for none.

    Outside the table ``clip`` reads the nearest row. Other modes have no derivative there: ``fill``
    and ``drop`` read a constant, and reverse mode drops out-of-range default indices.
    """
    num_rows = use.shapes[1][0]
    index = index.astype(int)
    if use.params["mode"] == GatherScatterMode.CLIP:
        index = jnp.clip(index, 0, num_rows - 1)
    else:
        index = jnp.where((index >= 0) & (index < num_rows), index, num_rows)
    return index.astype(jnp.float32)


_ARRANGED = {
    "product": _product_features,
    "convolution": _convolution_features,
    "look-up": _look_up_features,
}


def positions_of(use: Use, z: Array) -> Array:
    """Reshape z of one step of all enclosing scans to (blocks, positions, features)."""
    if use.kind == "look-up":
        return z.reshape(1, math.prod(use.shapes[0]), -1)
    if use.kind == "convolution":
        spec = use.params["dimension_numbers"].out_spec
        z = z.transpose(spec[0], *spec[2:], spec[1])
        return z.reshape(-1, use.groups, z.shape[-1] // use.groups).transpose(1, 0, 2)
    _, batch = use.params["dimension_numbers"]
    shape = use.shapes[2]
    num_batch = len(batch[0])
    num_own = len(use.shapes[1]) - num_batch - len(use.params["dimension_numbers"][0][0])
    rest = list(range(num_batch, len(shape)))
    own = rest[:num_own] if use.operand == 0 else rest[len(rest) - num_own :]
    blocks = range(num_batch)
    positions = [at for at in rest if at not in own]
    return _joined(z, blocks, positions, own)


def z_of(use: Use, positions: Array) -> Array:
    """Invert :func:`positions_of` by its transpose, since it only rearranges."""
    z = jax.ShapeDtypeStruct(use.shapes[2], positions.dtype)
    (found,) = jax.linear_transpose(partial(positions_of, use), z)(positions)
    return found
