"""Notebook display of the sweep of a custom model."""

import math
from typing import Any

from ntk_core.fits import PowerLaw, exponent_words
from ntk_core.markup import paragraph, table
from ntk_core.numbers import percent


def sweep_html(found: Any) -> str:
    """One row per run, and the exponents with their intervals."""
    rows = [
        (f"{run.width:,}", run.seed, f"{run.kernel_change:.3g}", run.outcome, f"{run.learning_rate:.3g}", _norm(run))
        for run in found.runs
    ]
    laws = {"ΔK": found.kernel_change_law, "‖H‖": found.hessian_law}
    measured = [(name, law) for name, law in laws.items() if law is not None or name == "ΔK"]
    head = ("Width", "Seed", "ΔK", "Training", "Learning rate", "‖H‖")
    return table(head, rows) + "".join(paragraph(_words(law), title=name) for name, law in measured)


def _norm(run: Any) -> str:
    if run.hessian_norm is None:
        return "–"
    return f"{run.hessian_norm:.3g}" + ("" if run.hessian_converged else " (not converged)")


def _words(law: PowerLaw | None) -> str:
    if law is None:
        return "no exponent: three runs at two widths are needed."
    level = f", {percent(law.confidence)} interval" if math.isfinite(law.interval) else ""
    return f"∝ m^({exponent_words(law)}){level}, {law.num_values} runs, {law.num_excluded} left out."
