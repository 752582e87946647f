"""Render the committed results as docs/benchmarks.md: ``python -m benchmarks.table``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.measure import RESULTS

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"


def milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def mebibytes(size: float) -> str:
    return f"{size / 2**20:,.0f} MiB"


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def stamp(data: dict[str, Any]) -> str:
    found = data["environment"]
    packages = ", ".join(f"{name} {version}" for name, version in found["packages"].items())
    return (
        f"{found['cores']} cores ({found['processor']}), Python {found['python']}, {packages}, {found['date']}; "
        f"load {found['load_at_start']:.1f} at the start."
    )


def kernels(data: dict[str, Any]) -> str:
    against = [
        [
            f"{row['width']:,}",
            str(row["hidden_layers"]),
            milliseconds(row["times"]["ours"]["median_s"]),
            milliseconds(row["times"]["jacobian_contraction"]["median_s"]),
            f"{row['times_faster']:.1f} ×",
            f"{row['relative_difference']:.0e}",
        ]
        for row in data["against_jacobian_contraction"]
    ]
    memory = [
        [
            f"{row['width']:,}",
            milliseconds(row["first_call_s"]),
            mebibytes(row["peak_bytes"]),
            mebibytes(row["jacobian_would_need_bytes"]),
        ]
        for row in data["memory"]
    ]
    return "\n\n".join(
        [
            "## Kernel against Jacobian contraction",
            "n = 60, C = 3, float32, medians in turn. " + stamp(data),
            table(["width", "hidden layers", "ours", "Jacobian contraction", "faster", "difference"], against),
            "One hidden layer, a process of its own, first call with compilation, peak memory with the weights:",
            table(["width", "time", "peak memory", "a Jacobian alone"], memory),
        ]
    )


def peer(data: dict[str, Any]) -> str:
    rows = [
        [
            row["kind"],
            f"{row['width']:,}",
            str(row["hidden_layers"]),
            milliseconds(row["times"]["ours"]["median_s"]),
            f"{milliseconds(row['times'][row['best_of_peer']]['median_s'])} ({row['best_of_peer']})",
            f"{row['times_faster']:.2f} ×",
        ]
        for row in data["cases"]
    ]
    large = [
        [
            f"{row['width']:,}",
            f"{row['num_params']:.2g}",
            milliseconds(row["warm_s"]),
            mebibytes(max(0, row["added_bytes"])),
        ]
        for row in data["large"]
    ]
    growth = ", ".join(f"{name}: {value:.2f}" for name, value in data["growth_exponents_in_width"].items())
    versions = data["cases"][0]["peer"]
    return "\n\n".join(
        [
            "## Kernel against neural-tangents",
            f"neural-tangents {versions['neural_tangents']} on JAX {versions['jax']}, its three "
            "implementations, the best of them shown; both processes warm, in turn, on the same weights. "
            + stamp(data),
            table(["network", "width", "hidden layers", "ours", "best of the peer", "faster"], rows),
            f"Fitted exponents of our time in the width: {growth}.",
            "Three hidden layers, memory above the weights:",
            table(["width", "parameters", "time", "memory"], large),
        ]
    )


def sweeps(data: dict[str, Any]) -> str:
    rows = [
        [name, milliseconds(run["total_s"]), milliseconds(min(run["point_s"].values()))]
        for name, run in (
            ("ours, first run in the process", data["ours_cold"]),
            ("plain JAX script", data["plain_script"]),
            ("ours, compiled code kept", data["ours_warm"]),
        )
    ]
    differences = data["relative_difference_of_sup_change"]
    return "\n\n".join(
        [
            "## The default sweep against a plain JAX script",
            f"Preset `{data['preset']}`, {data['num_seeds']} seeds; the script is `benchmarks/plain_sweep.py`. "
            + stamp(data),
            table(["", "whole sweep", "first point"], rows),
            f"{data['times_faster_cold']:.1f} × faster from cold, {data['times_faster_warm']:.1f} × warm. The kernel "
            f"changes of {differences['runs']} converged runs differ by {differences['median']:.0e} (median), "
            f"{differences['max']:.0e} (largest), relative.",
        ]
    )


def hessians(data: dict[str, Any]) -> str:
    rows = [
        [
            f"{row['width']:,}",
            f"{row['num_params']:.2g}",
            milliseconds(row["ours"]["median_s"]),
            milliseconds(row["ours"]["compile_s"]),
            milliseconds(row["public"]["median_s"]),
            f"{row['times_faster']:.0f} ×",
            f"{row['relative_difference']:.0e}",
        ]
        for row in data["against_curvlinops"]
        if "public" in row
    ]
    memory = [
        [
            f"{row['width']:,}",
            f"{row['num_params']:.2g}",
            milliseconds(row["median_s"]),
            milliseconds(row["compile_s"]) if "compile_s" in row else "–",
            mebibytes(row["added_bytes"]),
        ]
        for row in data["memory"]
    ]
    grown = {"ours": "ours", "public": "curvlinops"}
    growth = ", ".join(
        f"{grown[side]}: {value:.2f}"
        for side, value in data["growth_exponents_in_num_params"].items()
        if value is not None
    )
    return "\n\n".join(
        [
            "## Hessian norm against curvlinops and ARPACK",
            "Three hidden tanh layers, one input, relative tolerance 1e-2. " + stamp(data),
            table(["width", "parameters", "ours", "compilation", "curvlinops", "faster", "difference"], rows),
            f"Fitted exponents of the time in the number of parameters: {growth}.",
            "Memory above the weights:",
            table(["width", "parameters", "time", "compilation", "memory"], memory),
        ]
    )


def training(data: dict[str, Any]) -> str:
    rows = [
        [
            f"{row['width']:,}",
            str(row["hidden_layers"]),
            milliseconds(row["step_s"]["ours"]),
            milliseconds(row["step_s"]["plain_grad"]),
            f"{row['times_faster']:.2f} ×",
            f"{row['largest_difference']:.0e}",
        ]
        for row in data["against_plain_grad"]
    ]
    form = data["closed_form"]
    return "\n\n".join(
        [
            "## A step of training against plain `jax.grad`",
            "Gradient descent, n = 60, C = 3, float32; the peer is `jax.grad` in a `fori_loop`, ours also looks at the "
            "loss of each step. " + stamp(data),
            table(["width", "hidden layers", "ours", "plain gradient", "faster", "difference of weights"], rows),
            f"Closed form of the linear model, n·C = {form['rows']} training and as many test rows at "
            f"{form['num_times']} times, eigendecomposition included: "
            f"{milliseconds(form['times']['ours']['median_s'])}.",
        ]
    )


def masked(data: dict[str, Any]) -> str:
    words = {"forward": "forward pass", "training_step": "training step"}
    rows = [
        [
            words[name],
            milliseconds(row["times"]["dense"]["median_s"]),
            milliseconds(row["times"]["masked"]["median_s"]),
            f"{row['times_dense']:.2f} ×",
        ]
        for name, row in data["layer"].items()
    ]
    kernel = data["kernel"]
    return "\n\n".join(
        [
            "## Masked layers against dense ones",
            f"{data['width']:,} × {data['width']:,} weights, half of them removed, n = {data['num_samples']}; "
            f"the aim is at most {data['limit']} ×. " + stamp(data),
            table(["", "dense", "masked", "masked / dense"], rows),
            f"Kernel of a DenseNet with {data['depth']} × {data['width']:,} neurons, half of the edges dropped, "
            f"n = {data['num_samples']}: {milliseconds(kernel['median_s'])} "
            f"({milliseconds(kernel['first_s'])} with compilation).",
        ]
    )


def browser(data: dict[str, Any]) -> str:
    rows = [
        [words, milliseconds(data[name]["median_s"]), milliseconds(data[name]["max_s"])]
        for words, name in (
            ("visit to figure", "visit_to_figure"),
            ("Run to first point on screen", "run_to_first_point"),
            ("Stop to stopped", "stop"),
        )
    ]
    return "\n\n".join(
        [
            "## The dashboard, in headless Chromium",
            "A warm worker, settings never computed before; server and browser on the same cores. " + stamp(data),
            table(["", "median", "longest"], rows),
            f"The very first visit after the start of the server takes {data['first_visit_to_figure_s']:.1f} s.",
        ]
    )


SECTIONS = (
    ("empirical_ntk", kernels),
    ("against_neural_tangents", peer),
    ("sweep", sweeps),
    ("hessian_norm", hessians),
    ("training", training),
    ("masked_layer", masked),
    ("dashboard", browser),
)


def page() -> str:
    """The page, from every result that has been committed."""
    parts = [
        "# Benchmarks",
        "Rendered from `benchmarks/results/` by `python -m benchmarks.table`. Ratios, not seconds, travel.",
    ]
    for name, render in SECTIONS:
        path = RESULTS / f"{name}.json"
        if path.exists():
            parts.append(render(json.loads(path.read_text())))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
