"""``own``: any model ``apply(params, x)`` in a Python file of one's own, against its width."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ntk_core.data import load_dataset
from ntk_core.errors import InvalidInput
from ntk_core.fits import PowerLaw
from ntk_core.runs import law_words
from ntk_core.runs.run_directory import write_whole

if TYPE_CHECKING:
    from ntk_core.own_models import OwnRun, OwnSweep

NEARLY_LINEAR = 0.1  # of the kernel


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser(
        "own",
        help="sweep the width of a model in a Python file, which is run on this machine",
        description="FILE.py is run as Python code, with your rights, because you ask for it. NAME (model, where none "
        "is given) is a function of (width, key) that returns (apply, params), with apply(params, x) of shape (n, C), "
        "or a torch.nn.Module; or it is one model itself, and then there are no widths.",
    )
    parser.add_argument("model", metavar="FILE.py[:NAME]")
    parser.add_argument("--widths", default="1", metavar="64,128,256", help="widths, one model each")
    parser.add_argument("--dataset", default="gaussian-mixture", metavar="NAME", help="any data set by its name")
    parser.add_argument("--digest", metavar="SHA256", help="data of your own, as the command data says it")
    parser.add_argument("--num-samples", type=int, default=40, metavar="N", help="training points n (40)")
    parser.add_argument("--num-seeds", type=int, default=3, metavar="N", help="initializations per width (3)")
    parser.add_argument("--seed", type=int, default=0, help="first seed (0)")
    parser.add_argument("--loss", choices=("square", "cross-entropy"), default="square")
    parser.add_argument("--max-steps", type=int, default=1000, metavar="N")
    parser.add_argument("--loss-threshold", type=float, default=0.01, metavar="L")
    parser.add_argument("--num-inputs", type=int, default=2, metavar="N", help="inputs for ‖H‖; 0 for none (2)")
    parser.add_argument("--out", metavar="FILE.json", help="write all runs there")
    parser.set_defaults(command=own)


def own(options: argparse.Namespace) -> None:
    """What is found of the layers, one line per run, the exponents with their intervals, and what follows."""
    widths = _widths(options.widths)
    chosen = {"digest": options.digest} if options.digest else {}
    name = "upload" if options.digest else options.dataset
    data = load_dataset(name, num_samples=options.num_samples, num_test=0, seed=options.seed, **chosen)
    from ntk_core.cli._own_layers import layer_lines  # starts JAX
    from ntk_core.own_models import load_model, sweep_widths, their_errors

    model, path = load_model(options.model)
    with their_errors(path):
        if widths and min(widths) > 0:  # else the sweep says what is wrong
            print(*layer_lines(model, widths[0], options.seed, data), sep="\n")
    print("\nwidth   seed  parameters      steps     loss        ΔK         ‖H‖    ‖K̇‖/‖K‖  outcome")
    with their_errors(path):
        found = sweep_widths(
            model,
            widths,
            data.x,
            data.y,
            num_seeds=options.num_seeds,
            seed=options.seed,
            loss=options.loss,
            max_steps=options.max_steps,
            loss_threshold=options.loss_threshold,
            num_inputs=options.num_inputs,
            report=lambda run: print(_line(run), flush=True),
        )
    print()
    if len(widths) > 1:
        print("ΔK  ∝ " + _law(found.kernel_change_law))
        if options.num_inputs:
            print("‖H‖ ∝ " + _law(found.hessian_law))
    print(_verdict(found))
    if options.out:
        runs = json.dumps({"runs": [asdict(run) for run in found.runs]}, indent=1)
        write_whole(Path(options.out), runs, "--out")


def _widths(text: str) -> list[int]:
    try:
        return [int(float(part)) if float(part).is_integer() else -1 for part in text.split(",") if part.strip()]
    except (ValueError, OverflowError):
        raise InvalidInput("--widths", text, "integers with commas between them, such as 64,128,256") from None


def _line(run: OwnRun) -> str:
    norm = "–" if run.hessian_norm is None else f"{run.hessian_norm:.4g}" + ("" if run.hessian_converged else "?")
    return (
        f"{run.width:<7,} {run.seed:<5} {run.num_params:<12,} {run.steps[-1]:>8,} {run.loss[-1]:>8.3g} "
        f"{run.kernel_change:>9.4g} {norm:>11} {run.velocity or 0:>10.4g}  {run.outcome}"
    )


def _verdict(found: OwnSweep) -> str:
    """What the numbers say, and no more."""
    law = found.kernel_change_law
    if law is not None and math.isfinite(law.interval):
        low, high = law.exponent - law.interval, law.exponent + law.interval
        falls = (
            "falls with the width" if high < 0 else "grows with the width" if low > 0 else "has no clear trend in width"
        )
        return f"Verdict: the kernel change {falls}" + (": a transition to linearity." if high < 0 else ".")
    change = max((run.kernel_change for run in found.runs if run.outcome == "converged"), default=None)
    if change is None:
        return "Verdict: none, since no run converged."
    near = "stays close to its linear model" if change < NEARLY_LINEAR else "leaves its linear model"
    return f"Verdict: in training the kernel moves by {change:.1%}; the model {near}."


def _law(law: PowerLaw | None) -> str:
    return "not enough converged runs for an exponent" if law is None else law_words(law, "m")
