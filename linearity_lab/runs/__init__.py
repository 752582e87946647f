"""Runs: compute a spec and yield events, here or on a cluster; resumable.
Imports JAX only to compute.
"""

from linearity_lab.runs import display  # registers the display of specs and results
from linearity_lab.runs._any_result import Point, Result
from linearity_lab.runs._estimate import (
    capped,
    check_result_size,
    check_size,
    check_time,
    estimate,
    result_bytes,
    setting_of,
    work_of_points,
)
from linearity_lab.runs._experiment import Computation, Experiment, load_data
from linearity_lab.runs._parse import canonical_json, parse_spec, spec_digest, spec_from
from linearity_lab.runs._presets import Preset
from linearity_lab.runs._result import ResultValue
from linearity_lab.runs._run import PointStore, run, run_to_end
from linearity_lab.runs._spec import ExperimentSpec, SeededSpec, Spec, SpecOf, SweepSpec, point_key
from linearity_lab.runs._table import (
    EXPERIMENTS,
    KINDS,
    PRESETS,
    counts_of,
    experiment_of,
    packages_outside,
    preset,
    presets,
    run_summary,
)
from linearity_lab.runs._values import (
    OUTCOME_WORDS,
    EndStatus,
    Mean,
    Outcome,
    PointValue,
    Provenance,
    Value,
    WidthPoint,
    finite_or_none,
    finite_sup,
    imported_words,
    mean,
)
from linearity_lab.runs.columns import aligned, between, outcome_notes, with_error
from linearity_lab.runs.costs import (
    BYTES,
    SHIPPED,
    Counted,
    Counts,
    Machine,
    Work,
    learn,
    machine,
    peak_bytes,
    typical_steps,
)
