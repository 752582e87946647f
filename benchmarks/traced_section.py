"""The section of docs/benchmarks.md on models of others."""

from __future__ import annotations

from benchmarks.words import Data, count, seconds, size, stamp, table, timed

WAYS = {"traced": "torchax, traced", "jacobian_contraction": "torch.func, vmap(jacrev)"}


def traced(data: Data) -> str:
    flax = data["flax"]
    names = {"traced": "Flax model, traced", "own": "our own network of that shape"}
    rows = [
        [words, timed(flax["times"][name]), seconds(flax["times"][name]["first_s"])] for name, words in names.items()
    ]
    few = flax["times_by_jacobians"]
    parts = [
        "## Models of others",
        f"{flax['hidden_layers']} hidden layers of {flax['width']:,}, {count(flax['num_params'])} parameters, "
        f"n = {flax['num_samples']}, C = {flax['num_outputs']}, float32. {stamp(data)}",
        table(["", "time", "first call, with the check"], rows),
        f"{flax['slower_than_own']:.2f} × the time of our own network. On n = {flax['num_samples_by_jacobians']} "
        f"{timed(few['traced'])} against {timed(few['jacobians'])} by Jacobians in the same JAX: "
        f"{flax['faster_than_jacobians']:.0f} × faster; the kernels differ by {flax['relative_difference']:.0e}.",
    ]
    if same := data.get("same_programs"):
        shown = [
            [
                f"{case['kind']}, {case['hidden_layers']} × {case['width']:,}",
                timed(case["times"]["traced"]),
                timed(case["times"]["neural-tangents structured"]),
                f"{case['relative_difference_of_norms']:.0e}",
            ]
            for case in same
        ]
        parts.append(table(["", "traced", "neural-tangents, structured", "difference of norms"], shown))
    if residual := data.get("residual"):
        sizes = residual["sizes"]
        rows = [[words, timed(residual[way]), size(residual[way]["added_bytes"])] for way, words in WAYS.items()]
        parts += [
            f"A residual network of PyTorch ({count(residual['traced']['num_params'])} parameters, group "
            f"normalization, images of {sizes['size']} × {sizes['size']}, n = {sizes['num_samples']}, "
            f"C = {sizes['num_outputs']}), "
            "each way in a process of its own:",
            table(["", "time", "added memory"], rows),
            f"{residual['times_faster']:.1f} × faster; norms differ by {residual['relative_difference_of_norms']:.0e}.",
        ]
    return "\n\n".join(parts)
