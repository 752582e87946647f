"""Hessian norms in the small space against a public full-space operator, on the same weights and input, in one run.

Run: ``python -m benchmarks.hessian_norm --torch-python torch-env/bin/python``, with that environment made by

    python -m venv torch-env
    torch-env/bin/pip install torch==2.13.0 curvlinops-for-pytorch scipy numpy

Both sides get a network with 3 hidden tanh layers, one input, and a relative tolerance of 1e-2 (ours: residual; ARPACK:
``eigsh(k=1, which="LM", tol=1e-2)``). Compilation is listed apart. Peak memory above the weights comes from processes
of their own, at widths that the public operator cannot reach too.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks.measure import alternate, environment, forget_peak, peak_of, resident_bytes, save
from ntk_core import FullyConnected, hessian_norm

INPUT_DIM, DEPTH, TOLERANCE = 10, 3, 1e-2
PUBLIC_SIDE = Path(__file__).parent / "curvlinops_side.py"


def network(width: int) -> tuple[FullyConnected, Any, jax.Array]:
    net = FullyConnected(width=width, depth=DEPTH, activation="tanh")
    params = jax.jit(net.init, static_argnums=1)(jax.random.key(0), (INPUT_DIM,))
    return net, jax.block_until_ready(params), jax.random.normal(jax.random.key(1), (INPUT_DIM,))


def compare(width: int, torch_python: str | None) -> dict[str, Any]:
    """Times and norms of both sides at one width."""
    net, params, x = network(width)
    times = alternate({"ours": lambda: hessian_norm(net, params, x, tolerance=TOLERANCE).value}, repeats=9)["ours"]
    found = hessian_norm(net, params, x, tolerance=TOLERANCE)
    row: dict[str, Any] = {
        "width": width,
        "hidden_layers": DEPTH,
        "num_params": net.num_params((INPUT_DIM,)),
        "ours": {**times, "compile_s": times["first_s"] - times["median_s"]},
        "norm": found.value,
        "residual": found.residual,
        "num_matvecs": found.num_matvecs,
    }
    if torch_python:
        row["public"] = public_side(torch_python, net, params, x, repeats=5 if width < 1000 else 1)
        row["times_faster"] = row["public"]["median_s"] / times["median_s"]
        row["relative_difference"] = abs(row["public"]["norm"] / found.value - 1)
    return row


def public_side(torch_python: str, net: FullyConnected, params: Any, x: jax.Array, repeats: int) -> dict[str, Any]:
    """Times and norm of curvlinops with ARPACK on these weights."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.npz"
        arrays: dict[str, Any] = {f"w{k}": np.asarray(params[name]["weight"]) for k, name in enumerate(net.layers)}
        np.savez(path, x=np.asarray(x), **arrays)
        command = [torch_python, str(PUBLIC_SIDE), str(path), str(TOLERANCE), str(repeats)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    times = answer.pop("times_s")
    spread = {"median_s": statistics.median(times), "min_s": min(times), "max_s": max(times), "repeats": len(times)}
    return {**spread, **answer}


def memory_at(width: int) -> None:
    """In a process of its own: what one norm adds to the memory of the weights, its warm time, and compilation."""
    net, params, x = network(width)
    began = forget_peak()
    started = time.perf_counter()
    hessian_norm(net, params, x, tolerance=TOLERANCE)
    first_s = time.perf_counter() - started
    compiling = resident_bytes("VmHWM") - began
    began = forget_peak()
    times = alternate({"ours": lambda: hessian_norm(net, params, x, tolerance=TOLERANCE).value}, repeats=3)["ours"]
    added = {"added_bytes": resident_bytes("VmHWM") - began, "added_bytes_with_compiling": compiling}
    spent = {"median_s": times["median_s"], "compile_s": first_s - times["median_s"]}
    print(json.dumps({"width": width, "num_params": net.num_params((INPUT_DIM,)), **spent, **added}))


def growth(rows: list[dict[str, Any]], side: str) -> float | None:
    """Exponent of the median time in the number of parameters, fitted over the widths."""
    timed = [row for row in rows if side in row]
    if len(timed) < 2:
        return None
    sizes = [math.log(row["num_params"]) for row in timed]
    return float(np.polyfit(sizes, [math.log(row[side]["median_s"]) for row in timed], 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description="Hessian norms against curvlinops and ARPACK.")
    parser.add_argument("--torch-python", help="an interpreter with torch and curvlinops; our side alone without it")
    parser.add_argument("--widths", type=int, nargs="+", default=[300, 3000])
    parser.add_argument("--memory-widths", type=int, nargs="*", default=[3000, 10_000])
    parser.add_argument("--memory-at", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_at:
        memory_at(arguments.memory_at)
        return
    began = environment()
    rows = [compare(width, arguments.torch_python) for width in sorted(arguments.widths)]
    memory = [peak_of("benchmarks.hessian_norm", "--memory-at", str(width)) for width in arguments.memory_widths]
    compared = {row["width"] for row in rows}
    larger = [{"num_params": row["num_params"], "ours": row} for row in memory if row["width"] not in compared]
    exponents = {side: growth([*rows, *larger], side) for side in ("ours", "public")}
    result = {"environment": began, "tolerance": TOLERANCE, "against_curvlinops": rows, "memory": memory}
    save("hessian_norm", {**result, "growth_exponents_in_num_params": exponents})


if __name__ == "__main__":
    main()
