"""Comparison of two kernels without storing them.

Exactly, by pairs of blocks, or by random vectors.

With D = K₁ − K₀ everything follows from ‖K₀‖², ⟨D, K₀⟩, ‖D‖², yᵀK₀y and yᵀDy: sums over pairs of
blocks, or expectations over random signs v, E ⟨D v, K₀ v⟩ = ⟨D, K₀⟩
(docs/math/kernel_without_jacobians.md).
"""

import contextlib
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Int, PyTree

from ntk_core.errors import InvalidInput
from ntk_core.kernels._arrays import refuse_traced
from ntk_core.kernels._blocks import block_of, checked_limit, even_size
from ntk_core.kernels._empirical import VIEW_COPIES, rows_of, unchecked_ntk
from ntk_core.kernels._estimated import MIN_PROBES, Sums, estimated_sums
from ntk_core.kernels._generic import as_function
from ntk_core.kernels._products import LARGE_MEMORY, KernelOperator, num_moving
from ntk_core.kernels._scale import exponent_of, scaled, widened
from ntk_core.kernels._scaled_outputs import (
    SMALL_ENTRY,
    refuse_rows_without_outputs,
    scaled_model,
)
from ntk_core.networks.architectures import Network
from ntk_core.progress import Progress
from ntk_core.traced import (
    Inputs,
    Model,
    Route,
    Trainable,
    accepted,
    accepted_targets,
    checked,
    checked_array,
    like_params,
    packed_rows,
    restricted,
    through_output,
    with_usual_settings,
)

PAIR_COPIES = 6  # copies of a kernel block while two are computed and compared; measured
Pair = tuple[int, int]
Mapped = Callable[..., Iterable[Any]]  # sums, or futures of them


class KernelComparison(NamedTuple):
    """Differences between the kernels at ``params1`` and ``params0``.

    Attributes:
        change: ΔK = ‖K₁ − K₀‖_F / ‖K₀‖_F; NaN if K₀ is 0.
        error: its standard error; 0 if exact.
        interval: half-width of its 95% interval, ``change`` ± ``interval``, by Student's t with
            probes − 1 degrees of freedom: over random vectors, for fixed inputs and weights.
        norm0, norm1: ‖K₀‖_F and ‖K₁‖_F, in double precision.
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


@with_usual_settings
def kernel_change_between(
    net: Model,
    params0: PyTree,
    params1: PyTree,
    x: Inputs,
    *,
    targets: Float[ArrayLike, "n C"] | None = None,
    memory_limit: float | None = None,
    probes: int | None = None,
    seed: int = 0,
    mapped: Mapped = map,
    kept: Path | None = None,
    progress: Callable[[float], object] = lambda share: None,
    trainable: Trainable = None,
    route: Route = "auto",
) -> KernelComparison:
    """Compare the kernels of two parameters for many inputs.

    ΔK = ‖K(w₁) − K(w₀)‖_F / ‖K(w₀)‖_F for kernels of (n C)² entries that do not fit into memory.

    Exact, from block pairs of both kernels on and above the diagonal; or, with ``probes``,
    estimated from products with random signs v, E ‖K v‖² = ‖K‖_F². The span of a sketch of both
    kernels is summed exactly, so only the remainder is random (Meyer et al. 2021); the error of the
    ratio is by the delta method.

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net, x = FullyConnected(width=8, depth=1), jnp.ones((3, 5))
    >>> w0, w1 = (net.init(jax.random.key(seed), (5,)) for seed in (0, 1))
    >>> kernel_change_between(net, w0, w1, x).error
    0.0

    Args:
        net, x: as for :func:`empirical_ntk`.
        params0, params1: weights w₀ and w₁.
        targets: y, (n, C), for the alignments.
        memory_limit: bytes for everything above weights and inputs, 1 GiB by default; at
            least one row at a time.
        probes: number of random vectors, at least 4; every 4 cost 7 products with each kernel.
            None: exact sums. The interval is meant for 32 or more.
        seed: of the random vectors.
        mapped: ``map`` over the pairs: the built-in one, the method of a thread pool, or that of a
            dask client, whose workers get weights and inputs once.
        kept: a file or directory for the sums of finished pairs until all are done; the same
            call resumes from it.
        progress: called with the finished share after every pair or product;
            exceptions stop the work.
        trainable: the differentiated parameters, as for :func:`empirical_ntk`; each kernel is taken
            at all of its own weights.
        route: ``"auto"`` or ``"plain"``, as for :func:`empirical_ntk`.

    Returns:
        ΔK with its error, alignments and norms of both kernels.

    Raises:
        InvalidInput: for a limit that is not above 0, fewer than 4 probes, a file of other kernels,
            or ``kept`` with ``probes``; for rows of a tree whose mask selects nothing.

    Source: Liu, Zhu & Belkin 2020, §6; Hutchinson 1989; Meyer, Musco, Musco & Woodruff 2021.
    """
    net, x = packed_rows(restricted(net, params0, trainable, route), x)
    how: dict[str, Any] = {
        "targets": targets,
        "memory_limit": memory_limit,
        "probes": probes,
        "seed": seed,
        "mapped": mapped,
        "kept": kept,
        "progress": Progress(lambda share, message: progress(share)),
    }
    ((found,),) = changes_from_first(net, (params0, params1), x, **how)
    size = len(checked_array(x, "x"))
    if math.isfinite(found.change) and min(found.norm0, found.norm1) / size >= SMALL_ENTRY:
        return found
    if not math.isfinite(found.norm0 + found.norm1):
        for params in (params0, params1):
            refuse_rows_without_outputs(net, params, checked_array(x, "x"))
    # Entries overflow or vanish, although ΔK does not depend on the scale of the outputs.
    scaled_net, exponent = scaled_model(net, params0, checked_array(x, "x"))
    if not exponent:
        return found
    if kept is not None and not kept.is_dir():
        how["kept"] = None  # the file has the sums of the unscaled kernels
    ((found,),) = changes_from_first(scaled_net, (params0, params1), x, **how)
    norms = (_times_power(found.norm0, 2 * exponent), _times_power(found.norm1, 2 * exponent))
    return found._replace(norm0=norms[0], norm1=norms[1])


def _times_power(size: float, exponent: int) -> float:
    """Return size · 2^exponent in double precision."""
    return float(np.ldexp(size, exponent))


def changes_from_first(
    net: Model,
    params: Sequence[PyTree],
    x: Inputs,
    *,
    outputs: tuple[str, ...] = (),
    targets: Float[ArrayLike, "n C"] | None = None,
    memory_limit: float | None = None,
    probes: int | None = None,
    seed: int = 0,
    mapped: Mapped = map,
    kept: Path | None = None,
    progress: Progress | None = None,
) -> list[list[KernelComparison]]:
    """Compare the kernels at all later weights with the first, like :func:`kernel_change_between`.

    Returns a list per later weights with one entry per output (by default that of ``net``). Each
    pair of blocks is computed for all weights together, so the first kernel is computed once.
    ``progress`` gets every pair or product.

    Source: as :func:`kernel_change_between`.
    """
    progress = progress or Progress()
    checked_limit(memory_limit)
    refuse_traced(x, "x")
    refuse_traced(list(params), "params")
    if probes is not None and not (isinstance(probes, int) and probes >= MIN_PROBES):
        raise InvalidInput("probes", probes, f"an integer of at least {MIN_PROBES}, or None")
    if not (isinstance(seed, int) and seed >= 0):
        raise InvalidInput("seed", seed, "an integer from 0 on")
    net, inputs, num_outputs = accepted(net, params[0], x)
    for later in params[1:]:
        like_params(later, params[0], "params1")
    y = None if targets is None else accepted_targets(targets, len(inputs), num_outputs, "targets")
    y = None if y is None else np.asarray(y, np.float64)
    size_of_targets = math.nan if y is None else float(np.sum(y**2))
    each = max(1, len(outputs))
    if probes is None:
        limit = memory_limit or LARGE_MEMORY
        problem = _Problem(net, tuple(params), inputs, y, outputs)
        sums, num_pairs = _summed(problem, limit, mapped, kept, progress)
        exact = []
        for row in sums.reshape(-1, 5):
            exact.append(_comparison(row.tolist(), size_of_targets, 0.0, 0.0, num_pairs))
        return [exact[first : first + each] for first in range(0, len(exact), each)]
    if kept is not None:
        raise InvalidInput("kept", str(kept), "None with probes: an estimate is made in one go")
    observed: list[Model] = [net]
    if isinstance(net, Network) and outputs:
        observed = [net.with_output(output) for output in outputs]
    estimates: list[list[KernelComparison]] = []
    for index, later in enumerate(params[1:]):
        estimates.append([])
        for place, model in enumerate(observed):
            first = KernelOperator(model, params[0], inputs, memory_limit=memory_limit)
            last = KernelOperator(model, later, inputs, memory_limit=memory_limit)
            products = (first.flat_product, last.flat_product)
            part = progress.part(index * each + place, (len(params) - 1) * each)
            found = estimated_sums(*products, first.shape[0], y, probes, seed, part)
            estimate = _comparison(found.sums, size_of_targets, found.error, found.interval, 0)
            estimates[-1].append(estimate)
    return estimates


def _comparison(
    sums: Sums, size_of_targets: float, error: float, interval: float, num_pairs: int
) -> KernelComparison:
    square, cross, moved, seen, seen_moved = sums
    norm0 = math.sqrt(square)
    norm1 = math.sqrt(max(square + 2 * cross + moved, 0.0))

    def share(above: float, below: float) -> float:
        return above / below if below else math.nan

    # ‖K₁‖ − ‖K₀‖ and 1 − cos from differences avoid cancellation for nearly equal kernels.
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


class _Problem(NamedTuple):
    """The problem of all pairs.

    ``params`` are w₀ and the weights compared with it, ``size`` the rows of a block.
    """

    net: Model
    params: tuple[PyTree, ...]
    x: Array | np.ndarray
    targets: np.ndarray | None
    outputs: tuple[str, ...]
    size: int = 0


def _summed(
    problem: _Problem, memory_limit: float, mapped: Mapped, kept: Path | None, progress: Progress
) -> tuple[np.ndarray, int]:
    """Return the sums over all pairs of blocks, and the number of pairs."""
    finished = _Finished(kept, problem, _rows_of_a_pair(problem, memory_limit))
    size, num_blocks = even_size(len(problem.x), finished.size)
    pairs = [(i, j) for i in range(num_blocks) for j in range(i, num_blocks)]
    missing = [pair for pair in pairs if pair not in finished.sums]
    problem = problem._replace(size=size)
    scatter = getattr(getattr(mapped, "__self__", None), "scatter", None)
    if scatter is None:
        found = mapped(partial(sums_of_pair, problem), missing)
    else:  # a dask client: send shared data to each worker once
        (everywhere,) = scatter([problem], broadcast=True, hash=False)
        found = mapped(_sums_of_pair_there, missing, problem=everywhere)
    try:
        for pair, sums in zip(missing, found, strict=True):
            finished.save(pair, sums.result() if hasattr(sums, "result") else sums)
            done = len(finished.sums)
            progress.report(done / len(pairs), f"pair of blocks {done:,} of {len(pairs):,}")
    except BaseException:
        for each in found if isinstance(found, list) else []:
            each.cancel()  # a cluster would continue its futures
        raise
    finished.end()
    return np.sum([finished.sums[pair] for pair in pairs], axis=0), len(pairs)


def _rows_of_a_pair(problem: _Problem, memory_limit: float) -> int:
    """Return the most rows per side with b rows + a rows² bytes below the limit."""
    net = problem.net
    x = problem.x
    rows = rows_of(net, x[:2])
    program = checked(net, problem.params[0], rows)
    outputs = jax.eval_shape(program or as_function(net), problem.params[0], rows[:1])
    num_outputs = outputs.shape[-1]
    itemsize = outputs.dtype.itemsize
    a = (PAIR_COPIES + 2 * len(problem.outputs)) * itemsize * num_outputs**2
    if program is not None and program.is_structured:
        b = (2 if program.stated.layers else VIEW_COPIES) * program.row_bytes
    else:
        b = 2 * itemsize * num_outputs * num_moving(net, problem.params[0])
    return max(1, int((math.sqrt(b**2 + 4 * a * memory_limit) - b) / (2 * a)))


def sums_of_pair(problem: _Problem, pair: Pair) -> Sums:
    """Return the contribution of one pair of blocks to the sums, doubled off the diagonal."""
    left, right = pair
    size = problem.size
    x = problem.x
    rows = block_of(x, left, size)
    others = None if left == right else block_of(x, right, size)
    counts = [
        (np.arange(index * size, (index + 1) * size) < len(x)).astype(float) for index in pair
    ]
    first, *later = problem.params
    befores = jax.block_until_ready(_kernels(problem.net, first, rows, others, problem.outputs))
    y = problem.targets
    seen = None
    if y is not None:
        seen = tuple(block_of(y, index, size) for index in pair)
    found = []
    for params in later:
        # Sequentially, to release memory of the first before the second.
        afters = jax.block_until_ready(_kernels(problem.net, params, rows, others, problem.outputs))
        for before, after in zip(befores, afters, strict=True):
            sums, exponents = _row_sums(before, after, jnp.asarray(counts[1]), seen)
            by_row = np.asarray(sums, np.float64) @ counts[0]
            twice = 1.0 if left == right else 2.0
            found.append(twice * np.ldexp(by_row, np.asarray(exponents)))
    return np.ravel(found).tolist()


def _sums_of_pair_there(pair: Pair, problem: _Problem) -> Sums:
    return sums_of_pair(problem, pair)


def _kernels(
    net: Model, params: PyTree, rows: Array, others: Array | None, outputs: tuple[str, ...]
) -> tuple[Float[Array, "n1 n2 C C"], ...]:
    """Return the kernel, or that of the pre-outputs under each output."""
    if not (outputs and isinstance(net, Network)):
        return (unchecked_ntk(net, params, rows, others),)
    kernel = unchecked_ntk(net.with_output("linear"), params, rows, others)
    left = _pre_outputs(net, params, rows)
    right = left if others is None else _pre_outputs(net, params, others)
    return tuple(through_output(output, kernel, left, right) for output in outputs)


@partial(jax.jit, static_argnums=0)
def _pre_outputs(net: Network, params: PyTree, rows: Array) -> Float[Array, "n C"]:
    return net.pre_outputs(params, rows)


@jax.jit
def _row_sums(
    k0: Float[Array, "n1 n2 C C"],
    k1: Float[Array, "n1 n2 C C"],
    counts: Float[Array, " n2"],
    targets: tuple[Float[Array, "n1 C"], Float[Array, "n2 C"]] | None,
) -> tuple[Float[Array, "5 n1"], Int[Array, "5"]]:
    """Return row sums in the kernels' type, and their exponents e.

    The values are sums · 2^e in double precision.

    K₀ and D are divided by their own powers of two, so that no square overflows or vanishes.
    """
    k0 = widened(k0)
    k1 = widened(k1)
    # The difference of two kernels is below 2^(e + 1), which can exceed the type.
    common = exponent_of(k0, k1) + 1
    moved = scaled(k1, common) - scaled(k0, common)
    exponent0 = exponent_of(k0)
    own_exponent = exponent_of(moved)
    first = scaled(k0, exponent0)
    moved = scaled(moved, own_exponent)
    exponent = common + own_exponent
    sums = []
    exponents = []
    with jax.default_matmul_precision("highest"):
        for one, two, power in (
            (first, first, 2 * exponent0),
            (moved, first, exponent + exponent0),
            (moved, moved, 2 * exponent),
        ):
            sums.append(jnp.sum(one * two, axis=(2, 3)) @ counts.astype(one.dtype))
            exponents.append(power)
        for kernel, power in ((first, exponent0), (moved, exponent)):
            exponents.append(power)
            if targets is None:
                sums.append(jnp.full_like(sums[0], jnp.nan))
                continue
            y1, y2 = (each.astype(kernel.dtype) for each in targets)
            weighted = counts.astype(kernel.dtype)[:, None] * y2
            sums.append(jnp.einsum("ia,ijab,jb->i", y1, kernel, weighted))
    return jnp.stack(sums), jnp.stack(exponents)


class _Finished:
    """Sums of finished pairs, in memory and optionally as JSON lines.

    A header before the lines identifies them.

    In a directory the file is named by that header; a failing file only loses saved sums.

    Attributes:
        size: rows of a block, as in the file if it has finished pairs.
        sums: by pair.
    """

    def __init__(self, path: Path | None, problem: _Problem, size: int):
        self.size = size
        self.sums = dict[Pair, Sums]()
        self._path = path
        self._trouble = tuple[type[OSError], ...]()
        if path is None:
            return
        digest = _digest(problem.net, problem[1:-1])
        if path.is_dir():
            path = path / f"{digest}.jsonl"
            self._trouble = (OSError,)
        self._path = path
        with contextlib.suppress(*self._trouble):
            self._begin(path, {"kernels": digest, "rows": size})

    def _begin(self, path: Path, header: dict[str, str | int]) -> None:
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        found = _parsed(lines[0]) if lines else None
        if isinstance(found, dict) and found.get("kernels") == header["kernels"]:
            header = found
            self.size = int(found["rows"])
        elif lines and not self._trouble:
            raise InvalidInput("kept", str(path), "a new file, or one of the same kernels")
        else:
            lines = []
        known = [each for each in map(_parsed, lines[1:]) if each]  # truncated lines are recomputed
        self.sums = {(left, right): sums for left, right, sums in known}
        part = path.with_name(f"{path.name}.part")
        part.write_text(
            "".join(json.dumps(each) + "\n" for each in (header, *known)), encoding="utf-8"
        )
        part.replace(path)

    def save(self, pair: Pair, sums: Sums) -> None:
        self.sums[pair] = sums
        if self._path is not None:
            with (
                contextlib.suppress(*self._trouble),
                self._path.open("a", encoding="utf-8") as file,
            ):
                file.write(json.dumps([*pair, sums]) + "\n")

    def end(self) -> None:
        """Remove the file in a directory once all pairs are finished."""
        if self._path is not None and self._trouble:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _digest(net: Model, of: PyTree) -> str:
    """Hash the network (or a callable's name), weights, inputs and targets."""
    digest = hashlib.sha256(
        (
            repr(net)
            if isinstance(net, Network)
            else getattr(getattr(net, "function", net), "__qualname__", "")
        ).encode()
    )
    for leaf in jax.tree.leaves(of):
        is_key = isinstance(leaf, Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        if is_key:
            leaf = jax.random.key_data(leaf)
        array = np.ascontiguousarray(leaf)  # no copy, which may be large
        digest.update(f"{array.dtype} {array.shape}".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
