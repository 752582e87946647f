"""``own``: any model ``apply(params, x)`` in a Python file of one's own, against its width."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ntk_core.data import load_dataset
from ntk_core.errors import InvalidInput
from ntk_core.fits import PowerLaw
from ntk_core.runs import law_words
from ntk_core.runs.run_directory import write_whole

if TYPE_CHECKING:
    from ntk_core.own_models import OwnRun


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser(
        "own",
        help="sweep the width of a model in a Python file, which is run on this machine",
        description="FILE.py is run as Python code, with your rights, because you ask for it. NAME is a function of "
        "(width, key) that returns (apply, params), with apply(params, x) of shape (n, C).",
    )
    parser.add_argument("model", metavar="FILE.py:NAME")
    parser.add_argument("--widths", required=True, metavar="64,128,256", help="widths, one model each")
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
    """One line per run, then the exponents with their intervals."""
    widths = _widths(options.widths)
    chosen = {"digest": options.digest} if options.digest else {}
    name = "upload" if options.digest else options.dataset
    data = load_dataset(name, num_samples=options.num_samples, num_test=0, seed=options.seed, **chosen)
    from ntk_core.own_models import load_model, sweep_widths, their_errors  # starts JAX

    model, path = load_model(options.model)
    print("width   seed  parameters      steps     loss        ΔK         ‖H‖  outcome")
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
    print("ΔK  ∝ " + _law(found.kernel_change_law))
    if options.num_inputs:
        print("‖H‖ ∝ " + _law(found.hessian_law))
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
        f"{run.kernel_change:>9.4g} {norm:>11}  {run.outcome}"
    )


def _law(law: PowerLaw | None) -> str:
    return "not enough converged runs for an exponent" if law is None else law_words(law, "m")
