"""Groups of settings and functions that all experiments share, for ``__init__.pyi``."""
# ruff: noqa: F401

from linearity_lab.data.spec import DatasetSpec
from linearity_lab.networks.spec import ArchitectureSpec
from linearity_lab.runs import (
    ExperimentSpec,
    Preset,
    ResultValue,
    canonical_json,
    estimate,
    parse_spec,
    presets,
    run,
    run_summary,
    spec_digest,
)
from linearity_lab.settings.grammar import with_settings
from linearity_lab.settings.training import TrainingSpec
