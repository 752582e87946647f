"""Groups of settings and functions that all experiments share, for ``__init__.pyi``."""
# ruff: noqa: F401

from ntk_core.data.spec import DatasetSpec
from ntk_core.networks.spec import ArchitectureSpec
from ntk_core.runs import (
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
from ntk_core.settings.grammar import with_settings
from ntk_core.settings.training import TrainingSpec
