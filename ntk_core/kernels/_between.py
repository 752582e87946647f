"""Two kernels of one network compared without holding either: exactly, pair of blocks by pair, or by random vectors.

With D = K₁ − K₀ everything follows from ‖K₀‖², ⟨D, K₀⟩, ‖D‖², yᵀK₀y and yᵀDy: sums over pairs of blocks, or
expectations over random signs v, E ⟨D v, K₀ v⟩ = ⟨D, K₀⟩ (docs/math/kernel_without_jacobians.md).
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Shaped
from scipy.special import stdtrit

from ntk_core.errors import InvalidInput
from ntk_core.kernels._blocks import block_of, even_size
from ntk_core.kernels._empirical import empirical_ntk, view_bytes
from ntk_core.kernels._generic import Apply
from ntk_core.kernels._products import LARGE_MEMORY, Flat, KernelOperator, checked_limit, num_moving
from ntk_core.networks.architectures import Network

PAIR_COPIES = 6  # of a block of the kernel that are held while two are made and compared; measured
SKETCHED = 4  # one vector of the sketch for so many probes; our choice
MIN_PROBES = 4
Pair = tuple[int, int]
Sums = list[float]  # ‖K₀‖², ⟨D, K₀⟩, ‖D‖², yᵀK₀y, yᵀDy
Mapped = Callable[[Callable[[Pair], Sums], Iterable[Pair]], Iterable[Any]]


class KernelComparison(NamedTuple):
    """How the kernel at ``params1`` differs from that at ``params0``.

    Attributes:
        change: ΔK = ‖K₁ − K₀‖_F / ‖K₀‖_F; NaN where K₀ is 0.
        error: its standard error; 0 where it is exact.
        interval: half-width of its 95 % interval, ``change`` ± ``interval``, by Student's t with probes − 1 degrees of
            freedom: over the random vectors alone, the inputs and weights being given.
        norm0, norm1: ‖K₀‖_F and ‖K₁‖_F.
        distance: 1 − ⟨K₀, K₁⟩ / (‖K₀‖_F ‖K₁‖_F), see :func:`kernel_distance`.
        alignment0, alignment1: yᵀKy / (‖K‖_F ‖y‖²), see :func:`alignment`; NaN without targets.
        num_pairs: pairs of blocks that were compared; 0 for an estimate.
    """

    change: float
    error: float
    interval: float
    norm0: float
    norm1: float
    distance: float
    alignment0: float
    alignment1: float
    num_pairs: int


def kernel_change_between(
    net: Network | Apply,
    params0: Any,
    params1: Any,
    x: Shaped[ArrayLike, "n ..."],
    *,
    targets: Float[ArrayLike, "n C"] | None = None,
    memory_limit: float | None = None,
    probes: int | None = None,
    seed: int = 0,
    mapped: Mapped = map,
    kept: Path | None = None,
    progress: Callable[[float], object] = lambda share: None,
) -> KernelComparison:
    """ΔK = ‖K(w₁) − K(w₀)‖_F / ‖K(w₀)‖_F for so many inputs that no kernel can be held, (n C)² entries.

    Exact, from block pairs of both kernels on and above the diagonal; or, with ``probes``, estimated from products with
    random signs v, E ‖K v‖² = ‖K‖_F². What a sketch of both kernels spans is summed exactly, so that the random part
    is what their leading eigenvectors leave (Meyer et al. 2021); the error of the ratio is that of the delta method.

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net, x = FullyConnected(width=8, depth=1), jnp.ones((3, 5))
    >>> w0, w1 = (net.init(jax.random.key(seed), (5,)) for seed in (0, 1))
    >>> kernel_change_between(net, w0, w1, x).error
    0.0

    Args:
        net, x: as for :func:`empirical_ntk`.
        params0, params1: weights w₀ and w₁.
        targets: y, (n, C), for the alignments.
        memory_limit: bytes for everything above weights and inputs, 1 GiB by default; at least one row at a time.
        probes: how many random vectors, from 4 on: 7 products with each kernel for every 4 of them take the place of
            (n C)² entries. None for the exact sums. The interval is meant for 32 or more.
        seed: of the random vectors.
        mapped: what goes over the pairs, ``map`` by default: the ``map`` of a pool of threads, or of a dask client.
        kept: a file for the sums of finished pairs. The same call goes on from there.
        progress: called with the share that is done, after every pair or product. What it raises stops the work.

    Raises:
        InvalidInput: for a limit that is not above 0, fewer than 4 probes, a file of other kernels, or ``kept`` with
            ``probes``.

    Source: Liu, Zhu & Belkin 2020, §6; Hutchinson 1989; Meyer, Musco, Musco & Woodruff 2021.
    """
    checked_limit(memory_limit)
    x = x if hasattr(x, "shape") else np.asarray(x)
    y = None if targets is None else np.asarray(targets, np.float64)
    size_of_targets = math.nan if y is None else float(np.sum(y**2))
    if probes is None:
        sums, num_pairs = _summed(net, (params0, params1), x, y, memory_limit, mapped, kept, progress)
        return _comparison(sums, size_of_targets, 0.0, 0.0, num_pairs)
    if not probes >= MIN_PROBES:
        raise InvalidInput("probes", probes, f"an integer of at least {MIN_PROBES}, or None")
    if kept is not None:
        raise InvalidInput("kept", str(kept), "None with probes: an estimate is made in one go")
    kernels = [KernelOperator(net, params, x, memory_limit=memory_limit) for params in (params0, params1)]
    products = (kernels[0].flat_product, kernels[1].flat_product)
    found = estimated_sums(*products, kernels[0].shape[0], y, probes, seed, progress)
    return _comparison(found.sums, size_of_targets, found.error, found.interval, 0)


def _comparison(sums: Sums, size_of_targets: float, error: float, interval: float, num_pairs: int) -> KernelComparison:
    square, cross, moved, seen, seen_moved = sums
    norm0, norm1 = math.sqrt(square), math.sqrt(max(square + 2 * cross + moved, 0.0))

    def share(above: float, below: float) -> float:
        return above / below if below else math.nan

    # ‖K₁‖ − ‖K₀‖ and 1 − cos from differences: neither cancels where the kernels are nearly equal.
    longer = share(2 * cross + moved, norm0 + norm1)
    return KernelComparison(
        change=share(math.sqrt(max(moved, 0.0)), norm0),
        error=error,
        interval=interval,
        norm0=norm0,
        norm1=norm1,
        distance=share(max(moved - longer**2, 0.0), 2 * norm0 * norm1),
        alignment0=share(seen, norm0 * size_of_targets),
        alignment1=share(seen + seen_moved, norm1 * size_of_targets),
        num_pairs=num_pairs,
    )


def _summed(
    net: Network | Apply,
    params: tuple[Any, Any],
    x: Any,
    y: np.ndarray | None,
    memory_limit: float | None,
    mapped: Mapped,
    kept: Path | None,
    progress: Callable[[float], object],
) -> tuple[Sums, int]:
    """The sums over all pairs of blocks, and how many pairs those were."""
    finished = _Finished(kept, net, (params, x, y), _rows_of_a_pair(net, params[0], x, memory_limit or LARGE_MEMORY))
    size, num_blocks = even_size(len(x), finished.size)
    pairs = [(i, j) for i in range(num_blocks) for j in range(i, num_blocks)]
    missing = [pair for pair in pairs if pair not in finished.sums]
    found = mapped(partial(sums_of_pair, net, params, x, y, size), missing)
    try:
        for pair, sums in zip(missing, found, strict=True):
            finished.save(pair, sums.result() if hasattr(sums, "result") else sums)
            progress(len(finished.sums) / len(pairs))
    except BaseException:
        for each in found if isinstance(found, list) else []:
            each.cancel()  # futures of a cluster, which would go on for nobody
        raise
    return np.sum([finished.sums[pair] for pair in pairs], axis=0).tolist(), len(pairs)


def _rows_of_a_pair(net: Network | Apply, params: Any, x: Any, memory_limit: float) -> int:
    """The most rows on each side with which b rows + a rows² bytes stay below the limit."""
    row = jax.ShapeDtypeStruct((1, *np.shape(x)[1:]), jnp.result_type(x, float))
    outputs = jax.eval_shape(net.apply if isinstance(net, Network) else net, params, row)
    num_outputs, itemsize = outputs.shape[-1], outputs.dtype.itemsize
    a = PAIR_COPIES * itemsize * num_outputs**2
    if isinstance(net, Network):
        b = 2 * view_bytes(net, row.shape[1:], itemsize)
    else:
        b = 2 * itemsize * num_outputs * num_moving(net, params)
    return max(1, int((math.sqrt(b**2 + 4 * a * memory_limit) - b) / (2 * a)))


def sums_of_pair(
    net: Network | Apply, params: tuple[Any, Any], x: Any, y: np.ndarray | None, size: int, pair: Pair
) -> Sums:
    """The part of one pair of blocks in each of the sums; twice, off the diagonal."""
    left, right = pair
    rows, others = block_of(x, left, size), None if left == right else block_of(x, right, size)
    # One after the other: what makes the first is gone before the second is begun.
    k0, k1 = (jax.block_until_ready(empirical_ntk(net, each, rows, others)) for each in params)
    counts = [(np.arange(index * size, (index + 1) * size) < len(x)).astype(float) for index in pair]
    seen = None if y is None else tuple(block_of(y, index, size).astype(k0.dtype) for index in pair)
    by_row = np.asarray(_row_sums(k0, k1, jnp.asarray(counts[1], k0.dtype), seen), np.float64)
    return ((1.0 if left == right else 2.0) * (by_row @ counts[0])).tolist()


@jax.jit
def _row_sums(
    k0: Float[Array, "n1 n2 C C"],
    k1: Float[Array, "n1 n2 C C"],
    counts: Float[Array, " n2"],
    targets: tuple[Float[Array, "n1 C"], Float[Array, "n2 C"]] | None,
) -> Float[Array, "5 n1"]:
    """Short sums in the type of the kernels, which are added up in double precision outside."""
    moved = k1 - k0
    with jax.default_matmul_precision("highest"):
        inner = [jnp.sum(a * b, axis=(2, 3)) @ counts for a, b in ((k0, k0), (moved, k0), (moved, moved))]
        if targets is None:
            return jnp.stack([*inner, *[jnp.full_like(inner[0], jnp.nan)] * 2])
        y1, y2 = targets[0], counts[:, None] * targets[1]
        return jnp.stack([*inner, *(jnp.einsum("ia,ijab,jb->i", y1, k, y2) for k in (k0, moved))])


class Estimated(NamedTuple):
    """Estimates of the sums, and standard error and half-width of the 95 % interval of √(‖D‖² / ‖K₀‖²)."""

    sums: Sums
    error: float
    interval: float


def estimated_sums(
    product0: Callable[[Flat], Flat],
    product1: Callable[[Flat], Flat],
    size: int,
    y: np.ndarray | None,
    probes: int,
    seed: int,
    progress: Callable[[float], object],
) -> Estimated:
    """‖A‖² = ‖A Q‖² + E ‖A (1 − QQᵀ) v‖² for K₀ and D, Q an orthonormal basis of K₀ g and D g for a few random g."""
    rng = np.random.default_rng(seed)
    num_sketched = probes // SKETCHED
    done, steps = 0, 3 * num_sketched + probes + (y is not None)

    def both(v: Flat) -> tuple[Flat, Flat]:
        nonlocal done
        first = product0(v)
        moved = product1(v) - first
        done += 1
        progress(done / steps)
        return first, moved

    def inner(v: Flat) -> Float[np.ndarray, "3"]:
        first, moved = both(v)
        return np.array([first @ first, moved @ first, moved @ moved])

    def signs() -> Flat:
        return rng.choice((-1.0, 1.0), size)

    sketch = [each for _ in range(num_sketched) for each in both(signs())]
    basis = np.linalg.qr(np.stack(sketch, axis=1))[0]
    of_basis = np.sum([inner(q) for q in basis.T], axis=0)
    rows = []
    for _ in range(probes):
        v = signs()
        rows.append(inner(v - basis @ (basis.T @ v)))
    square, cross, moved = of_basis + np.mean(rows, axis=0)
    seen = (math.nan, math.nan) if y is None else tuple(float(y.ravel() @ each) for each in both(y.ravel()))
    error = 0.0
    if moved > 0 and square > 0:
        ratio = moved / square
        apart = np.array([row[2] - ratio * row[0] for row in rows])
        error = float(np.std(apart, ddof=1) / math.sqrt(probes) / square / (2 * math.sqrt(ratio)))
    sums = [float(square), float(cross), float(moved), *seen]
    return Estimated(sums, error, float(stdtrit(probes - 1, 0.975)) * error)


class _Finished:
    """The sums of finished pairs, in memory and, where there is a path, as lines of JSON below what they are of.

    Attributes:
        size: rows of a block: those of the file, where it has finished pairs.
        sums: by pair.
    """

    def __init__(self, path: Path | None, net: Network | Apply, of: Any, size: int):
        self._path, self.size, self.sums = path, size, dict[Pair, Sums]()
        if path is None:
            return
        header = {"kernels": _digest(net, of), "rows": size}
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        if lines:
            found = _parsed(lines[0])
            if not isinstance(found, dict) or found.get("kernels") != header["kernels"]:
                raise InvalidInput("kept", str(path), "a file that is not there yet, or one of the very same kernels")
            header, self.size = found, int(found["rows"])
        known = [each for each in map(_parsed, lines[1:]) if each]  # a line that was cut off is computed again
        self.sums = {(left, right): sums for left, right, sums in known}
        part = path.with_name(f"{path.name}.part")
        part.write_text("".join(json.dumps(each) + "\n" for each in (header, *known)), encoding="utf-8")
        part.replace(path)

    def save(self, pair: Pair, sums: Sums) -> None:
        self.sums[pair] = sums
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([*pair, sums]) + "\n")


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _digest(net: Network | Apply, of: Any) -> str:
    """Of the network, its weights, inputs and targets; of a callable, its name in place of the network."""
    digest = hashlib.sha256((repr(net) if isinstance(net, Network) else getattr(net, "__qualname__", "")).encode())
    for leaf in jax.tree.leaves(of):
        array = np.ascontiguousarray(leaf)  # the very numbers, not a copy: they may be most of the memory
        digest.update(f"{array.dtype} {array.shape}".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
