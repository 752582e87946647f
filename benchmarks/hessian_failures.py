"""How often a converged Hessian norm or eigenvalue is wrong.

It is then outside of its tolerance, against dense float64 matrices.

``python -m benchmarks --only hessian_failures`` takes about ten minutes on two cores. Everything
is the public interface in float32: ``hessian_norm`` and ``hessian_eigenpairs``. A failure is an
error above tolerance · ‖H‖ of a result with ``converged``. Each cell takes several networks,
drawn independently, and for each of them many random starts.
``python -m benchmarks.hessian_failures`` writes the committed counts into docs/math and prints
the sentences of the docstrings; a test compares both. With ``--depths 2 3``, and
``--widths 4 16``, it measures these cells first and replaces their counts, with the load of the
machine during that time; ``--only eigenpairs`` leaves out norms.
"""

import argparse
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import PyTree

from benchmarks.measure import RESULTS, ROOT, Row, Settings, Watch, environment
from ntk_core import FullyConnected, hessian_eigenpairs, hessian_norm
from ntk_core.hessians._operator import restricted_operator

COUNTS = RESULTS / "hessian_failures.json"
PAGE = ROOT / "docs" / "math" / "hessian_in_a_small_space.md"
BEGIN = "<!-- failures of norms -->"
END = "<!-- end of failures -->"
TOLERANCES: tuple[float | None, ...] = (0.3, 0.1, 1e-2, 1e-3, None, 1e-4)  # None is the default
TOLERANCES_OF_PAIRS: tuple[float | None, ...] = (0.1, 1e-2, 1e-3, None)
ACTIVATIONS = ("swish", "tanh")
NUM_WANTED = 3
MOST_PRODUCTS = 512  # few cells would converge within the default 128 at a tolerance of 1e-4


class Cell(NamedTuple):
    """One row of the table: networks of one depth and width, and how many norms of each tolerance.

    ``inputs`` are the input dimensions in turn. Spaces of at most 32 dimensions are
    exhausted, also those of width 4 with 10 inputs and up to three hidden layers; 50 inputs
    show what happens above.
    """

    depth: int
    width: int
    inputs: tuple[int, ...]
    num_networks: int
    num_starts: int


CELLS: tuple[Cell, ...] = (
    Cell(1, 4, (10, 50), 60, 100),
    Cell(1, 16, (10, 50), 60, 100),
    Cell(1, 100, (10,), 20, 50),
    Cell(1, 1000, (10,), 4, 30),
    Cell(2, 4, (50,), 40, 50),
    Cell(2, 16, (10,), 40, 50),
    Cell(2, 100, (10,), 10, 50),
    Cell(2, 1000, (10,), 4, 15),
    Cell(3, 4, (50,), 40, 50),
    Cell(3, 16, (10,), 40, 50),
    Cell(3, 100, (10,), 10, 50),
    Cell(3, 1000, (10,), 4, 15),
)
PAIRS: tuple[Cell, ...] = (
    Cell(1, 4, (50,), 20, 25),
    Cell(1, 16, (10,), 20, 25),
    Cell(1, 100, (10,), 10, 20),
    Cell(2, 16, (10,), 20, 25),
    Cell(3, 16, (10,), 20, 25),
)


class Group(NamedTuple):
    """Networks of one architecture, and one input.

    Their parameters and ``exact`` eigenvalues by falling |λ| belong to them.
    """

    net: FullyConnected
    params: list[PyTree]
    x: np.ndarray
    exact: np.ndarray  # (num_networks, NUM_WANTED)


def measure(settings: Settings) -> Row:
    """Count failures of norms and of eigenvalues, for each cell and tolerance."""
    norms: list[Row] = []
    pairs: list[Row] = []
    cells = CELLS
    cells_of_pairs = PAIRS
    if settings.quick:
        cells = tuple(_reduced(cell) for cell in CELLS[:2])
        cells_of_pairs = tuple(_reduced(cell) for cell in PAIRS[:1])
    for cell in cells:
        norms += rows_of_norms(cell)
    for cell in cells_of_pairs:
        pairs += rows_of_pairs(cell)
    return {"norms": norms, "eigenpairs": pairs, "num_wanted": NUM_WANTED}


def _reduced(cell: Cell) -> Cell:
    return cell._replace(num_networks=4, num_starts=2)


def rows_of_norms(cell: Cell) -> list[Row]:
    """Count failures of norms in one cell, one row for each tolerance."""
    groups = list(_groups(cell))
    rows = []
    for tolerance in TOLERANCES:
        rows.append(_norms(cell, groups, tolerance))
        print(rows[-1], flush=True)
    return rows


def rows_of_pairs(cell: Cell) -> list[Row]:
    """Count failures of eigenvalues in one cell, one row for each tolerance."""
    groups = list(_groups(cell))
    rows = []
    for tolerance in TOLERANCES_OF_PAIRS:
        rows.append(_pairs(cell, groups, tolerance))
        print(rows[-1], flush=True)
    return rows


def measure_again(depths: Sequence[int], widths: Sequence[int] = (), only: str = "") -> None:
    """Replace the committed counts of these depths and widths, all widths by default.

    Also note the load.

    The counts are written after each cell, so that an interrupted measurement keeps what it has.
    """
    counts = committed()
    watch = Watch()
    part: Row = {"environment": environment(("jax", "jaxlib", "numpy", "scipy")), "cells": []}
    counts.setdefault("measured_again", []).append(part)
    sections: list[tuple[str, tuple[Cell, ...], Callable[[Cell], list[Row]]]] = [
        ("norms", CELLS, rows_of_norms),
        ("eigenpairs", PAIRS, rows_of_pairs),
    ]
    for section, cells, rows_of in sections:
        if only and section != only:
            continue
        for cell in cells:
            if cell.depth not in depths or (widths and cell.width not in widths):
                continue
            others = [row for row in counts[section] if not _belongs_to(row, cell)]
            rows = others + rows_of(cell)
            counts[section] = sorted(rows, key=lambda row: (row["depth"], row["width"]))
            part["cells"].append(f"{section}: depth {cell.depth}, width {cell.width}")
            part["load"] = watch.note()
            COUNTS.write_text(json.dumps(counts, indent=1, ensure_ascii=False) + "\n")


def _belongs_to(row: Row, cell: Cell) -> bool:
    return (row["depth"], row["width"]) == (cell.depth, cell.width)


def _groups(cell: Cell) -> Iterator[Group]:
    kinds = list(itertools.product(ACTIVATIONS, cell.inputs))
    for index, (activation, num_inputs) in enumerate(kinds):
        net = FullyConnected(
            width=cell.width, depth=cell.depth, activation=activation, use_bias=False
        )
        rng = np.random.default_rng([cell.depth, cell.width, index])
        x = rng.standard_normal(num_inputs).astype(np.float32)
        params = []
        for seed in range(cell.num_networks // len(kinds)):
            params.append(net.init(jax.random.key(1000 * index + seed), (num_inputs,)))
        exact = np.array([_exact(net, one, x) for one in params])
        yield Group(net, params, x, exact)


def _exact(net: FullyConnected, params: PyTree, x: np.ndarray) -> np.ndarray:
    """Return the leading eigenvalues, by falling |λ|, in float64.

    Up to 850 weights of the plain dense Hessian. Up to 2,500 dimensions of the matrix in the small
    space, whose spectrum the tests compare with that of the plain one. Above, the larger of two
    norms with a relative residual of 1e-9 from different starts; the other eigenvalues are NaN.
    """
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        wide = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf, np.float64)), params)
        at = jnp.asarray(x.astype(np.float64))
        num_weights = sum(leaf.size for leaf in jax.tree.leaves(params))
        if num_weights <= 850 or 2 * net.unit * net.depth <= 2500:
            matrix = _plain(net, wide, at) if num_weights <= 850 else _restricted(net, wide, at)
            values = np.linalg.eigvalsh(np.asarray(matrix))
            order = np.argsort(-np.abs(values))
            return values[order[:NUM_WANTED]]
        found = []
        for start in range(2):
            key = jax.random.key(1_000_000 + start)
            found.append(hessian_norm(net, wide, at, tolerance=1e-9, max_matvecs=1500, key=key))
        assert all(each.converged for each in found)
        largest = max(found, key=lambda each: each.value)
        return np.array([largest.eigenvalue, np.nan, np.nan])


@jax.jit(static_argnums=0)
def _plain(net: FullyConnected, params: PyTree, x: jax.Array) -> jax.Array:
    flat, unravel = ravel_pytree(params)
    return jax.hessian(lambda w: net.apply(unravel(w), x[None])[0, 0])(flat)


@jax.jit(static_argnums=0)
def _restricted(net: FullyConnected, params: PyTree, x: jax.Array) -> jax.Array:
    hessian = restricted_operator(net, params, x, lambda outputs: outputs[0])
    unit_vectors = jnp.eye(hessian.zero.size)
    return jax.lax.map(lambda v: hessian.matvec(hessian.project(v)), unit_vectors, batch_size=64)


def _norms(cell: Cell, groups: list[Group], tolerance: float | None) -> Row:
    errors = []
    converged = []
    products = []
    for group in groups:
        exact = np.abs(group.exact[:, 0])
        for start in range(cell.num_starts):
            found = hessian_norm(
                group.net,
                group.params,
                group.x,
                tolerance=tolerance,
                max_matvecs=MOST_PRODUCTS,
                key=jax.random.key(start),
                repeated=True,
            )
            errors.append(np.abs(found.value - exact) / exact)
            converged.append(found.converged)
            products.append(found.num_matvecs)
    return _counted(cell, found.tolerance, tolerance, errors, converged, products)


def _pairs(cell: Cell, groups: list[Group], tolerance: float | None) -> Row:
    errors = []
    converged = []
    products = []
    for group in groups:
        for params, exact in zip(group.params, group.exact, strict=True):
            for start in range(cell.num_starts):
                found = hessian_eigenpairs(
                    group.net,
                    params,
                    group.x,
                    num_wanted=NUM_WANTED,
                    tolerance=tolerance,
                    max_matvecs=MOST_PRODUCTS,
                    key=jax.random.key(start),
                )
                # ± pairs make the signs arbitrary; sizes are compared.
                difference = np.abs(np.abs(found.eigenvalues) - np.abs(exact))
                errors.append([difference.max() / np.abs(exact[0])])
                converged.append([found.converged])
                products.append([found.num_matvecs])
    relative = tolerance or float(np.finfo(np.float32).eps ** 0.5)
    return _counted(cell, relative, tolerance, errors, converged, products)


def _counted(
    cell: Cell,
    relative: float,
    asked: float | None,
    errors: list,
    converged: list,
    products: list,
) -> Row:
    error = np.concatenate(errors)
    sure = np.concatenate(converged)
    return {
        "depth": cell.depth,
        "width": cell.width,
        "tolerance": asked,
        "converged": int(sure.sum()),
        "not_converged": int(np.sum(~sure)),
        "outside": int(np.sum(sure & (error > relative))),
        "worst": float(np.max(error[sure], initial=0.0)),
        "products": float(np.concatenate(products).mean()),
    }


def rows_of_table(data: Row) -> list[str]:
    """Return the Markdown table of the documentation: failures by depth, width and tolerance."""
    asked = [_title(tolerance) for tolerance in TOLERANCES]
    lines = [
        f"| hidden layers | width | {' | '.join(asked)} | norms each | worst error |",
        "|---" * (len(asked) + 4) + "|",
    ]
    for (depth, width), cells in _by_network(data["norms"]).items():
        counts = [str(cell["outside"]) for cell in cells]
        worst = max(_excess(cell) for cell in cells)
        shown = f"{worst:.1%}" if worst else "none outside"
        most = max(cell["converged"] for cell in cells)
        lines.append(f"| {depth} | {width:,} | {' | '.join(counts)} | {most:,} | {shown} |")
    return lines


def sentences(data: Row) -> dict[str, str]:
    """Return the sentence of each docstring, by the name of the function."""
    norms = _summary(data["norms"])
    pairs = _summary(data["eigenpairs"])
    return {
        "hessian_norm": f"Of {norms} (docs/math/hessian_in_a_small_space.md).",
        "hessian_eigenpairs": f"Of {pairs} (docs/math/hessian_in_a_small_space.md).",
    }


def _summary(cells: list[Row]) -> str:
    total = sum(cell["converged"] for cell in cells)
    outside = sum(cell["outside"] for cell in cells)
    share = max(cell["outside"] / cell["converged"] for cell in cells)
    worst = max(_excess(cell) for cell in cells)
    depths = sorted({cell["depth"] for cell in cells})
    layers = "1 hidden layer"
    if depths != [1]:
        layers = f"{depths[0]} to {depths[-1]} hidden layers"
    measured = (
        f"{total:,} converged results for networks with {layers}, compared with dense float64 ones"
    )
    if not outside:
        return f"{measured}, none was outside of its tolerance"
    return (
        f"{measured}, {outside} were outside of their tolerance, at most {share:.2%} at any width "
        f"and tolerance, by up to {worst:.1%}"
    )


def _by_network(cells: list[Row]) -> dict[tuple[int, int], list[Row]]:
    found: dict[tuple[int, int], list[Row]] = {}
    for cell in cells:
        found.setdefault((cell["depth"], cell["width"]), []).append(cell)
    return found


def _excess(cell: Row) -> float:
    """Return the worst error of a result outside of its tolerance, else 0."""
    return float(cell["worst"]) if cell["outside"] else 0.0


def _title(tolerance: float | None) -> str:
    return "default" if tolerance is None else f"{tolerance:g}"


def committed() -> Row:
    """Return the committed counts."""
    found: Row = json.loads(COUNTS.read_text())
    return found


def page_with_table(page: str, data: Row) -> str:
    """Return the page with the table between its marks."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    table = "\n".join(rows_of_table(data))
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Measure, and write counts into the documentation."
    )
    parser.add_argument("--depths", type=int, nargs="+", default=[], help="measured again first")
    parser.add_argument("--widths", type=int, nargs="+", default=[], help="of these depths alone")
    parser.add_argument("--only", choices=("norms", "eigenpairs"), default="")
    asked = parser.parse_args()
    if asked.depths:
        measure_again(asked.depths, asked.widths, asked.only)
    counts = committed()
    PAGE.write_text(page_with_table(PAGE.read_text(), counts))
    for name, sentence in sentences(counts).items():
        print(f"{name}: {sentence}")
