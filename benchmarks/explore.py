"""First answers of *Explore*: seconds to the first and the last mark, by network and data.

Each network has a fresh process, warmed up like a worker, with an empty folder of compiled code.
For each data set it computes a preview without a precomputed answer, whose shapes are new, then the
same preview of other seeds.
"""

import tempfile

from benchmarks.measure import Meter, Row, Settings, isolated
from linearity_lab.dashboard.jobs.worker import warm_up
from linearity_lab.experiments.explore.pairs import pair, preview_of
from linearity_lab.experiments.explore.spec import DENSE, sizes_of
from linearity_lab.runs import Spec, run
from linearity_lab.runs.compiled_code import VARIABLE, keep_compiled_code
from linearity_lab.runs.events import PointFinished, PointProgress
from linearity_lab.settings.grammar import with_settings
from linearity_lab.settings.part import Values
from ntk_core.networks.kinds import ARCHITECTURES

DATA = ("gaussian-mixture", "sine", "mnist", "copy")
# Seconds on two idle cores until the first and the last mark, with new shapes.
AIM_S = {"dense": (1.0, 5.0), "other": (3.0, 15.0)}
# Not the activation of the precomputed answers; networks without one take other widths.
NEW: Values = {"architecture.activation": "gelu"}
OTHER_SEEDS: Values = {"seed": 7}
QUICK: Values = {"widths": [4], "num_seeds": 1, "training.max_steps": 2, "num_inputs": 0}


def measure(settings: Settings) -> Row:
    """Times of previews of every network on every data set of the table."""
    kinds = ["fully-connected"] if settings.quick else settings.wanted(ARCHITECTURES)
    rows = []
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder:
            rows += isolated(_of_network, kind, settings.quick, **{VARIABLE: folder})["rows"]
    return {"rows": rows, "data": list(DATA), "aim_s": AIM_S, "new": NEW}


def _of_network(kind: str, quick: bool) -> Row:
    keep_compiled_code()
    warm_up()
    rows = []
    for dataset in DATA[:1] if quick else DATA:
        known = pair(kind, dataset)
        if known is None:
            continue
        new = NEW
        if "activation" not in ARCHITECTURES[kind].settings:
            new = {"widths": [width + 1 for width in known.widths]}
        spec = preview_of(with_settings(known, {**new, **(QUICK if quick else {})}))
        is_dense = sizes_of(spec.architecture) is DENSE
        family = "dense" if is_dense else "other"
        fresh = timed(spec)
        repeated = timed(with_settings(spec, OTHER_SEEDS))
        row = {"network": kind, "data": dataset, "family": family, "widths": spec.widths}
        rows.append({**row, "fresh": fresh, "repeated": repeated})
    return {"rows": rows}


def timed(spec: Spec) -> Row:
    """Return wall and processor seconds to the first and the last mark."""
    meter = Meter()
    marks = []
    for event in run(spec, scheduler=""):
        has_mark = isinstance(event, PointFinished) or (
            isinstance(event, PointProgress) and event.point is not None
        )
        if has_mark:
            marks.append(meter.read())
    first = marks[0]
    last = marks[-1]
    return {
        "first_s": first["wall_s"],
        "last_s": last["wall_s"],
        "first_processor_s": first["processor_s"],
        "last_processor_s": last["processor_s"],
    }
