"""One section of docs/benchmarks.md for each committed result."""

from __future__ import annotations

import statistics

from benchmarks.estimates import CLAIMS
from benchmarks.words import Data, count, exponent, seconds, size, stamp, table, timed, times_faster, versions

KERNELS = "0006-kernels-beside-the-best-peer.md"
TIES = "0016-where-hessians-and-training-meet-their-peers.md"


def picture(name: str, words: str) -> str:
    return f"![{words}](images/benchmarks-{name}.svg)"


def kernel(data: Data) -> str:
    rows = [
        [
            row["kind"],
            f"{row['width']:,}",
            str(row["hidden_layers"]),
            timed(row["times"]["ours"]),
            f"{timed(row['times'][row['best_of_peers']])}, {row['best_of_peers']}",
            times_faster(row["times_faster"], KERNELS),
            f"{row['relative_difference_of_norms']:.0e}",
        ]
        for row in data["cases"]
    ]
    names = list(dict.fromkeys(name for row in data["cases"] for name in row["times"]))
    every = [
        [f"{row['kind']} {row['width']:,} × {row['hidden_layers']}"]
        + [
            f"{seconds(row['times'][name]['median_s'])}, {size(row['times'][name].get('added_bytes'))}"
            if name in row["times"]
            else "–"
            for name in names
        ]
        for row in data["cases"]
    ]
    memory = [
        [
            f"{row['width']:,}",
            str(row["hidden_layers"]),
            count(row["num_params"]),
            seconds(row["first_s"]),
            seconds(row["warm_s"]),
            size(row["weights_bytes"]),
            size(row["added_bytes"]),
            size(row["jacobian_would_need_bytes"]),
        ]
        for row in data["memory"]
    ]
    return "\n\n".join(
        [
            "## Kernel",
            f"n = {data['num_samples']}, C = {data['num_outputs']}, float32. Against neural-tangents' three "
            "implementations, torch.func as in the PyTorch tutorial (`vmap(jacrev)` and contraction; products of "
            "vectors by `vjp` and `jvp`), and a contraction of Jacobians in our own JAX; all processes warm, in turn, "
            f"on the same weights. Peers: {versions(data)}. Ours: {stamp(data)}",
            picture("kernel", "Time of a kernel against the width, ours and the peers', one and three hidden layers"),
            table(
                ["network", "width", "hidden layers", "ours", "best of the peers", "faster", "difference of norms"],
                rows,
            ),
            "Every competitor, median time and the memory that a call adds at its peak:",
            table(["", *names], every),
            "Memory in a process of its own, above that of the weights, compilation included:",
            table(
                [
                    "width",
                    "hidden layers",
                    "parameters",
                    "first call",
                    "second call",
                    "weights",
                    "added",
                    "a Jacobian alone",
                ],
                memory,
            ),
        ]
    )


def hessian(data: Data) -> str:
    names = list(data["cases"][0]["times"])
    rows = [
        [
            f"{row['width']:,}",
            count(row["num_params"]),
            *(timed(row["times"][name]) for name in names),
            times_faster(row["times_faster"], TIES),
            f"{max(row['relative_differences'].values()):.0e}",
        ]
        for row in data["cases"]
    ]
    added = [
        [f"{row['width']:,}", *(size(row["times"][name].get("added_bytes")) for name in names)] for row in data["cases"]
    ]
    memory = [
        [
            f"{row['width']:,}",
            count(row["num_params"]),
            seconds(row["median_s"]),
            seconds(row["compile_s"]),
            size(row["weights_bytes"]),
            size(row["added_bytes"]),
        ]
        for row in data["memory"]
    ]
    growth = "; ".join(f"{name} {exponent(law)}" for name, law in data["growth_exponents_in_num_params"].items() if law)
    steps = ", ".join(
        f"{row['lanczos_steps_of_peer']} at width {row['width']:,}"
        for row in data["cases"]
        if row.get("lanczos_steps_of_peer")
    )
    parts = [
        "## Hessian norm",
        f"Three hidden tanh layers, one input, relative tolerance {data['tolerance']:g}. Against curvlinops under "
        "SciPy's ARPACK, hessian-eigenthings, and plain Hessian-vector products in JAX under ARPACK, in turn, on the "
        "same weights. hessian-eigenthings runs a fixed number of Lanczos steps; it gets the fewest that converge"
        + (f" ({steps})" if steps else "")
        + f". Peers: {versions(data)}. Ours: {stamp(data)}",
        picture(
            "hessian", "Time and added memory of a Hessian norm against the number of parameters, ours and the peers'"
        ),
        table(["width", "parameters", *names, "faster than the best", "difference"], rows),
        "Compilation, once for each shape, takes "
        + ", ".join(f"{seconds(row['compile_s'])} at width {row['width']:,}" for row in data["cases"])
        + ".",
    ]
    if growth:
        parts.append(f"Fitted exponents of the time in the number of parameters, with 95 % intervals: {growth}.")
    if any(row["times"][name].get("added_bytes") is not None for row in data["cases"] for name in names):
        parts += ["Memory that a call adds at its peak:", table(["width", *names], added)]
    parts += [
        "Where the others do not fit, in a process of its own:",
        table(["width", "parameters", "time", "compilation", "weights", "added"], memory),
    ]
    return "\n\n".join(parts)


def trajectories(data: Data) -> str:
    rows = [
        [
            f"{row['num_samples']:,}",
            f"{row['num_rows']:,}",
            timed(row["times"]["ours"]),
            timed(row["times"]["neural-tangents"]),
            times_faster(row["times_faster"], TIES),
            f"{row['largest_relative_difference']:.0e}",
        ]
        for row in data["cases"]
    ]
    return "\n\n".join(
        [
            "## Trajectories of the linear model",
            f"`ClosedForm` against `nt.predict.gradient_descent_mse` on the same kernel: gradient flow at "
            f"{data['num_times']} times, at n training and n other points, C = {data['num_outputs']}, float64, the "
            f"eigendecomposition included. The difference is the largest at any time and point, against the largest "
            f"output. Peer: {versions(data)}. Ours: {stamp(data)}",
            table(["n", "n·C", "ours", "neural-tangents", "faster", "difference"], rows),
        ]
    )


def sweep(data: Data) -> str:
    rows = [
        [words, seconds(data[name]["total_s"]), seconds(min(data[name]["point_s"].values()))]
        for words, name in (
            ("ours, first run in the process", "ours_cold"),
            ("ours, first run in a process, compiled code kept on disk", "ours_from_disk"),
            ("plain JAX script", "plain_script"),
            ("ours, compiled code kept in the process", "ours_warm"),
        )
        if name in data
    ]
    differences = data["relative_difference_of_sup_change"]
    return "\n\n".join(
        [
            "## The default sweep",
            f"Preset `{data['preset']}`, {data['num_seeds']} seeds, against a plain JAX script of the same science "
            f"(`benchmarks/plain_sweep.py`), once each. {stamp(data)}",
            picture("sweep", "When each width of the sweep was done, ours and the plain script's"),
            table(["", "whole sweep", "first point"], rows),
            f"{data['times_faster_cold']:.1f} × faster from cold, {data['times_faster_warm']:.1f} × warm. The kernel "
            f"changes of {differences['runs']} converged runs differ by {differences['median']:.0e} (median), "
            f"{differences['max']:.0e} (largest), relative.",
        ]
    )


def training(data: Data) -> str:
    rows = [
        [
            f"{row['width']:,}",
            str(row["hidden_layers"]),
            seconds(row["step_s"]["ours"]),
            seconds(row["step_s"]["plain_grad"]),
            times_faster(row["times_faster"], TIES),
            f"{row['largest_difference']:.0e}",
        ]
        for row in data["against_plain_grad"]
    ]
    return "\n\n".join(
        [
            "## A step of training",
            "Gradient descent, n = 60, C = 3, float32; the peer is `jax.grad` in a `fori_loop`, ours also looks at the "
            f"loss of each step. {stamp(data)}",
            table(["width", "hidden layers", "ours", "plain gradient", "faster", "difference of weights"], rows),
        ]
    )


def masked_layer(data: Data) -> str:
    words = {"forward": "forward pass", "training_step": "training step"}
    rows = [
        [
            words[name],
            timed(row["times"]["dense"]),
            timed(row["times"]["masked"]),
            f"{row['times_dense']:.2f} ×",
        ]
        for name, row in data["layer"].items()
    ]
    found = data["kernel"]
    return "\n\n".join(
        [
            "## Masked layers against dense ones",
            f"{data['width']:,} × {data['width']:,} weights, half of them removed, n = {data['num_samples']}; "
            f"the aim is at most {data['limit']} ×. {stamp(data)}",
            table(["", "dense", "masked", "masked / dense"], rows),
            f"Kernel of a DenseNet with {data['depth']} × {data['width']:,} neurons, half of the edges dropped, "
            f"n = {data['num_samples']}: {seconds(found['median_s'])} ({seconds(found['first_s'])} with compilation).",
        ]
    )


def start(data: Data) -> str:
    waits = {
        "the server listens": "listening",
        "first contentful paint: the name of the lab and what it is for": "painted",
        "title of the overview, drawn by Streamlit's scripts": "titled",
        "overview complete": "done",
    }
    rows = [[words, timed(data[name]), seconds(data[name]["max_s"])] for words, name in waits.items()]
    return "\n\n".join(
        [
            "## From the start of the server to the first paint",
            "`streamlit run app.py` on a warm disk, in headless Chromium that runs already; the aim is a first paint "
            f"within {data['aim_s']:.0f} s. Median of {data['painted']['repeats']} starts. {stamp(data)}",
            table(["", "median", "longest"], rows),
        ]
    )


def dashboard(data: Data) -> str:
    waits = {
        "visit to painted figure": "visit_to_figure",
        "another axis to the redrawn figure": "view_to_redrawn",
        "a setting to the page's answer": "setting_to_answer",
        "Run to first point on screen": "run_to_first_point",
        "a point's end to its sight": "point_to_shown",
        "Stop to stopped": "stop",
    }
    both = data, data.get("before", {})
    rows = [
        [words, *(timed(each[name]) if name in each else "" for each in both), seconds(data[name]["max_s"])]
        for words, name in waits.items()
    ]
    return "\n\n".join(
        [
            "## The dashboard, in headless Chromium",
            "A warm worker, settings never computed before; server and browser on the same cores. The first point: the "
            f"marks of the first training, *before* of all trainings of its width. {stamp(data)}",
            table(["", "median", "with pages as they were before", "longest"], rows),
            f"The very first visit after the start of the server takes {data['first_visit_to_figure_s']:.1f} s.",
            _over_a_line(data["over_10_mbit_s"]),
        ]
    )


def _over_a_line(found: Data) -> str:
    plain, small = found["plain"], found["compressed"]
    return (
        "A new visitor over a line of 10 Mbit/s (40 ms, made by Chromium) sees the figure after "
        f"{seconds(small['median_s'])}, having loaded {small['bytes'] / 1e6:.1f} MB; with scripts as Streamlit hands "
        f"them out it would be {seconds(plain['median_s'])} and {plain['bytes'] / 1e6:.1f} MB: "
        f"{plain['median_s'] / small['median_s']:.1f} × sooner. Scripts come compressed over a network only."
    )


def pages(data: Data) -> str:
    slowest = sorted(data["rows"], key=lambda row: -row["cold_ms"])[:6]
    rows = [[row["preset"], f"{row['cold_ms']:.0f} ms", f"{row['warm_ms']:.0f} ms"] for row in slowest]
    told = f"The slowest of {len(data['rows'])} presets; the aim is at most {data['most_ms']} ms. {stamp(data)}"
    shown = table(["", "first visitor", "later ones"], rows)
    parts = ["## From a click on a preset to its figures, on the server's side", told, shown]
    reruns = sorted(data.get("reruns", ()), key=lambda row: -row["median_ms"])  # not yet, in an older result
    longest = [[row["page"], f"{row['median_ms']:.0f} ms", f"{row['max_ms']:.0f} ms"] for row in reruns]
    after = f"Every later click runs a page's script again; the aim is at most {data.get('most_rerun_ms')} ms."
    return "\n\n".join([*parts, *([after, table(["", "median", "longest"], longest)] if reruns else [])])


WORKS = {"kernel": "kernel", "hessian_product": "product with the Hessian", "training_step": "step of training"}


def growth(data: Data) -> str:
    rows = [
        [
            WORKS[name],
            axis,
            ", ".join(f"{field} = {value:,}" for field, value in found["kept"].items()),
            f"{found['rows'][0][axis]:,} … {found['rows'][-1][axis]:,}",
            f"{seconds(found['rows'][0]['unit_s'])} … {seconds(found['rows'][-1]['unit_s'])}",
            exponent(found["time"]),
            f"{size(found['rows'][0]['added_bytes'])} … {size(found['rows'][-1]['added_bytes'])}",
        ]
        for name, axes in data["works"].items()
        for axis, found in axes.items()
    ]
    return "\n\n".join(
        [
            "## Growth",
            "Ours, one size at a time: width m, inputs n, outputs C, hidden layers. Exponents of the time with 95 % "
            "intervals from Student's t over the sizes; memory is what a call adds at its peak to weights and data. A "
            f"Hessian belongs to one input and one output, so it has no n and no C. {stamp(data)}",
            picture("growth", "Time of a kernel, a product with the Hessian and a step of training against each size"),
            table(["", "grows", "kept", "from … to", "time", "exponent", "memory"], rows),
        ]
    )


def ceilings(data: Data) -> str:
    return "\n\n".join(["## Share of what the processor can do", *_shares(data)])


def gpu(data: Data) -> str:
    return "\n\n".join(["## On a GPU", *_shares(data)])


def _shares(data: Data) -> list[str]:
    rows = [
        [
            WORKS[row["work"]],
            f"{row['m']:,}",
            str(row["depth"]),
            seconds(row["unit_s"]),
            f"{row['needs']['operations'] / row['unit_s'] / 1e9:,.0f} Gop/s",
            f"{row['needs']['bytes'] / row['unit_s'] / 1e9:,.1f} GB/s",
            f"{row['share']:.0%} of {row['bound_by']}",
        ]
        for row in data["rows"]
    ]
    limits = data["ceilings_per_s"]
    peaks = [row["device_peak_bytes"] for row in data["rows"] if row["device_peak_bytes"]]
    return [
        f"Ceilings measured in the same run on {data['device']}: {limits['operations'] / 1e9:,.0f}·10⁹ float32 "
        f"operations per second in a large product, {limits['bytes'] / 1e9:,.1f}·10⁹ bytes per second in a = b + s c. "
        "Counted is what the mathematics needs at least, not what the code does: intermediate values are free and each "
        "pair of inputs counts once. What is only read, or still lies in a cache, may come faster than the ceiling of "
        f"bytes, which also writes. n = 60, C = 3. {stamp(data)}",
        table(["", "m", "hidden layers", "time", "operations", "memory", "share of its ceiling"], rows),
        *([f"Most memory of the device in use at once: {size(max(peaks))}."] if peaks else []),
    ]


def estimates(data: Data) -> str:
    def words(name: str, found: list[Data]) -> list[str]:
        cells = [name, str(len(found))]
        for what, estimated, factor in CLAIMS:
            ratios = [row[what] / row[estimated] for row in found]
            within = sum(1 / factor <= ratio <= factor for ratio in ratios) / len(ratios)
            cells += [f"{statistics.median(ratios):.2f}", f"{within:.0%}"]
        return cells

    experiments = sorted({row["experiment"] for row in data["rows"]})
    groups = {name: [row for row in data["rows"] if row["experiment"] == name] for name in experiments}
    groups["presets"] = [row for row in data["rows"] if not row["name"].startswith("random")]
    groups["random specs"] = [row for row in data["rows"] if row["name"].startswith("random")]
    rows = [words(name, found) for name, found in {**groups, "all": data["rows"]}.items()]
    left_out = f" The other {len(data['unfinished'])} were not measured in time." if data["unfinished"] else ""
    return "\n\n".join(
        [
            "## Estimates",
            f"{len(data['rows'])} of {data['num_specs']} specs (every preset, and presets with up to five settings "
            "drawn anew), each in a fresh process without compiled code of others; long ones are shortened (fewer "
            "widths, outputs, seeds, steps). Actual is the smaller of wall and processor time; estimated is what is "
            "shipped, before anything is learned from runs: learned is "
            f"fitted to the presets here, and the random specs have no part in that.{left_out} {stamp(data)}",
            picture("estimates", "What specs took against what was estimated, one mark per spec"),
            table(
                ["", "specs", "time / shipped", "within 2", "time / learned", "within 2", "memory", "within 1.3"],
                rows,
            ),
        ]
    )
