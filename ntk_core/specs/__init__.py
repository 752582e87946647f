"""What to compute: frozen, validated, with canonical JSON and a digest; shared by pages, command line and notebooks.

A spec is plain data. Every setting carries its bounds and a one-line help, from which forms are derived; ``parse_spec``
turns anything from outside into a spec or says, setting by setting, what is wrong. One module an experiment.
"""

from ntk_core.spec_parts import ArchitectureSpec, DatasetSpec, SpecPart, TrainingSpec
from ntk_core.specs._dag import DRAWN, DAGSpec
from ntk_core.specs._dynamics import DynamicsSpec
from ntk_core.specs._early_time import EarlyDataSpec, EarlyNetworkSpec, EarlyTimeSpec, EarlyTrainingSpec
from ntk_core.specs._experiment import SCHEMA_VERSION, ExperimentSpec, Spec, SweepSpec
from ntk_core.specs._hessian import HESSIAN_NETWORK_PARTS, HessianNetwork, HessianSpec, Series, has_bound, hessian_key
from ntk_core.specs._kernel_drift import (
    INFINITE_WIDTH_KINDS,
    KernelDriftSpec,
    TrainingGroup,
    has_infinite_width,
    training_groups,
)
from ntk_core.specs._lazy import LazySpec, lazy_key
from ntk_core.specs._optimization import OptimizationSpec
from ntk_core.specs._parse import (
    EXPERIMENTS,
    MAX_JSON_BYTES,
    InvalidSpec,
    canonical_json,
    digest,
    parse_spec,
    setting_names,
    with_settings,
)

__all__ = [
    "DRAWN",
    "EXPERIMENTS",
    "HESSIAN_NETWORK_PARTS",
    "INFINITE_WIDTH_KINDS",
    "MAX_JSON_BYTES",
    "SCHEMA_VERSION",
    "ArchitectureSpec",
    "DAGSpec",
    "DatasetSpec",
    "DynamicsSpec",
    "EarlyDataSpec",
    "EarlyNetworkSpec",
    "EarlyTimeSpec",
    "EarlyTrainingSpec",
    "ExperimentSpec",
    "HessianNetwork",
    "HessianSpec",
    "InvalidSpec",
    "KernelDriftSpec",
    "LazySpec",
    "OptimizationSpec",
    "Series",
    "Spec",
    "SpecPart",
    "SweepSpec",
    "TrainingGroup",
    "TrainingSpec",
    "canonical_json",
    "digest",
    "has_bound",
    "has_infinite_width",
    "hessian_key",
    "lazy_key",
    "parse_spec",
    "setting_names",
    "training_groups",
    "with_settings",
]
