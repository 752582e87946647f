"""Public names. Written by ``make stubs``: do not edit."""

import typing

import linearity_lab.runs as runs

from ._specs import ArchitectureSpec as ArchitectureSpec
from ._specs import DatasetSpec as DatasetSpec
from ._specs import ExperimentSpec as ExperimentSpec
from ._specs import Preset as Preset
from ._specs import ResultValue as ResultValue
from ._specs import TrainingSpec as TrainingSpec
from ._specs import canonical_json as canonical_json
from ._specs import estimate as estimate
from ._specs import parse_spec as parse_spec
from ._specs import presets as presets
from ._specs import run as run
from ._specs import run_summary as run_summary
from ._specs import spec_digest as spec_digest
from ._specs import with_settings as with_settings
from .adding.point import AddingResult as AddingResult
from .adding.point import AddingSpec as AddingSpec
from .architectures.point import ArchitecturesResult as ArchitecturesResult
from .architectures.point import ArchitecturesSpec as ArchitecturesSpec
from .attribution.point import AttributionResult as AttributionResult
from .attribution.point import AttributionSpec as AttributionSpec
from .dag.point import DAGResult as DAGResult
from .dag.point import DAGSpec as DAGSpec
from .depth_width.point import DepthWidthResult as DepthWidthResult
from .depth_width.point import DepthWidthSpec as DepthWidthSpec
from .dynamics.point import DynamicsResult as DynamicsResult
from .dynamics.point import DynamicsSpec as DynamicsSpec
from .early_time.point import EarlyTimeResult as EarlyTimeResult
from .early_time.spec import EarlyTimeSpec as EarlyTimeSpec
from .explore.point import ExploreResult as ExploreResult
from .explore.spec import ExploreSpec as ExploreSpec
from .generalization.point import GeneralizationResult as GeneralizationResult
from .generalization.point import GeneralizationSpec as GeneralizationSpec
from .hessian.network import ComparedNetwork as ComparedNetwork
from .hessian.point import HessianResult as HessianResult
from .hessian.spec import HessianSpec as HessianSpec
from .horizon.point import HorizonResult as HorizonResult
from .horizon.point import HorizonSpec as HorizonSpec
from .kernel_change.point import KernelChangeResult as KernelChangeResult
from .kernel_change.spec import KernelChangeSpec as KernelChangeSpec
from .lazy.point import LazyResult as LazyResult
from .lazy.point import LazySpec as LazySpec
from .learning_rate.point import LearningRateResult as LearningRateResult
from .learning_rate.point import LearningRateSpec as LearningRateSpec
from .optimization.point import OptimizationResult as OptimizationResult
from .optimization.point import OptimizationSpec as OptimizationSpec

if not typing.TYPE_CHECKING:
    from ._compute import compute as compute
    from ._compute import preset as preset

EXPERIMENTS: tuple[str, ...]
KEPT: tuple[str, ...]
__all__: list[str]

_Result = typing.TypeVar("_Result", bound=ResultValue)
_Settings = typing.Mapping[str, object]

@typing.overload
def preset(name: typing.Literal["explore"]) -> Preset[ExploreSpec]: ...
@typing.overload
def preset(
    name: typing.Literal[
        "liu-fig1-left",
        "liu-fig1-wide",
        "liu-fig1-right",
        "liu-fig2",
        "liu-resnet",
        "liu-cnn",
        "liu-mixed",
        "kernel-velocity",
        "why-one-over-m",
        "kernel-convergence",
    ],
) -> Preset[KernelChangeSpec]: ...
@typing.overload
def preset(
    name: typing.Literal[
        "bottleneck",
        "kernel-convergence-pair",
        "convolution",
        "transformer-width",
        "adapter-rank-change",
        "adapter-width-change",
    ],
) -> Preset[ArchitecturesSpec]: ...
@typing.overload
def preset(
    name: typing.Literal[
        "liu-table1",
        "liu-table1-kernel",
        "liu-shallow",
        "liu-theorem31",
        "liu-lemma31",
        "liu-theorem33",
        "liu-theorem41",
        "liu-theorem41-ball",
        "liu-ball",
        "liu-nonlinear-output",
        "zhu-ball",
        "zhu-vector-output",
        "relu-and-tanh",
        "liu-parameterization",
        "attention-heads",
        "attention-head-dim",
        "attention-length",
        "adapter-rank",
        "adapter-width",
        "assembly",
    ],
) -> Preset[HessianSpec]: ...
@typing.overload
def preset(
    name: typing.Literal[
        "liu-true-and-linearized",
        "curves-in-one-dimension",
        "beyond-gradient-descent",
        "second-order",
        "zhu-corollary37",
    ],
) -> Preset[DynamicsSpec]: ...
@typing.overload
def preset(
    name: typing.Literal["liu-section5", "zhu-pl-nonlinear"],
) -> Preset[OptimizationSpec]: ...
@typing.overload
def preset(
    name: typing.Literal[
        "richness-dial", "richness-deep", "richness-anew", "liu-lazy", "liu-distance"
    ],
) -> Preset[LazySpec]: ...
@typing.overload
def preset(name: typing.Literal["depth-width"]) -> Preset[DepthWidthSpec]: ...
@typing.overload
def preset(
    name: typing.Literal[
        "zhu-fig2",
        "zhu-preactivations",
        "zhu-bottleneck-neurons",
        "zhu-skip",
        "zhu-shared",
        "zhu-unequal",
        "zhu-nonlinear-output",
        "zhu-pl",
    ],
) -> Preset[DAGSpec]: ...
@typing.overload
def preset(
    name: typing.Literal[
        "hu-fig1",
        "hu-fig2",
        "hu-fig3",
        "hu-fig3-cnn",
        "hu-fig4",
        "hu-fig4-fashion",
        "hu-fig4-cifar",
        "hu-fig4-cnn",
        "hu-fig4-cifar-cnn",
        "hu-fig5",
        "hu-theorem32",
        "hu-theorem35",
        "hu-claim31",
        "hu-theorem-c2",
        "hu-prop41",
        "hu-deep-kernel",
        "hu-departure",
    ],
) -> Preset[EarlyTimeSpec]: ...
@typing.overload
def preset(
    name: typing.Literal[
        "catapult-map", "catapult-anew", "catapult-run", "catapult-one-sample", "edge-of-stability"
    ],
) -> Preset[LearningRateSpec]: ...
@typing.overload
def preset(
    name: typing.Literal[
        "horizon", "horizon-cross-entropy", "horizon-rate", "horizon-weight-decay"
    ],
) -> Preset[HorizonSpec]: ...
@typing.overload
def preset(
    name: typing.Literal[
        "price-of-linearity", "no-price-on-digits", "learning-curves", "after-kernel"
    ],
) -> Preset[GeneralizationSpec]: ...
@typing.overload
def preset(
    name: typing.Literal["adding-networks", "adding-curves", "adding-adapters", "adding-many"],
) -> Preset[AddingSpec]: ...
@typing.overload
def preset(
    name: typing.Literal["point-worth", "point-worth-swish", "point-worth-width"],
) -> Preset[AttributionSpec]: ...
@typing.overload
def preset(name: str) -> Preset[ExperimentSpec]: ...
@typing.overload
def compute(
    spec: typing.Literal["explore"], *, points: runs.PointStore | None = None, **settings: object
) -> ExploreResult: ...
@typing.overload
def compute(
    spec: typing.Literal[
        "liu-fig1-left",
        "liu-fig1-wide",
        "liu-fig1-right",
        "liu-fig2",
        "liu-resnet",
        "liu-cnn",
        "liu-mixed",
        "kernel-velocity",
        "why-one-over-m",
        "kernel-convergence",
    ],
    *,
    points: runs.PointStore | None = None,
    **settings: object,
) -> KernelChangeResult: ...
@typing.overload
def compute(
    spec: typing.Literal[
        "bottleneck",
        "kernel-convergence-pair",
        "convolution",
        "transformer-width",
        "adapter-rank-change",
        "adapter-width-change",
    ],
    *,
    points: runs.PointStore | None = None,
    **settings: object,
) -> ArchitecturesResult: ...
@typing.overload
def compute(
    spec: typing.Literal[
        "liu-table1",
        "liu-table1-kernel",
        "liu-shallow",
        "liu-theorem31",
        "liu-lemma31",
        "liu-theorem33",
        "liu-theorem41",
        "liu-theorem41-ball",
        "liu-ball",
        "liu-nonlinear-output",
        "zhu-ball",
        "zhu-vector-output",
        "relu-and-tanh",
        "liu-parameterization",
        "attention-heads",
        "attention-head-dim",
        "attention-length",
        "adapter-rank",
        "adapter-width",
        "assembly",
    ],
    *,
    points: runs.PointStore | None = None,
    **settings: object,
) -> HessianResult: ...
@typing.overload
def compute(
    spec: typing.Literal[
        "liu-true-and-linearized",
        "curves-in-one-dimension",
        "beyond-gradient-descent",
        "second-order",
        "zhu-corollary37",
    ],
    *,
    points: runs.PointStore | None = None,
    **settings: object,
) -> DynamicsResult: ...
@typing.overload
def compute(
    spec: typing.Literal["liu-section5", "zhu-pl-nonlinear"],
    *,
    points: runs.PointStore | None = None,
    **settings: object,
) -> OptimizationResult: ...
@typing.overload
def compute(
    spec: typing.Literal[
        "richness-dial", "richness-deep", "richness-anew", "liu-lazy", "liu-distance"
    ],
    *,
    points: runs.PointStore | None = None,
    **settings: object,
) -> LazyResult: ...
@typing.overload
def compute(
    spec: typing.Literal["depth-width"],
    *,
    points: runs.PointStore | None = None,
    **settings: object,
) -> DepthWidthResult: ...
@typing.overload
def compute(
    spec: typing.Literal[
        "zhu-fig2",
        "zhu-preactivations",
        "zhu-bottleneck-neurons",
        "zhu-skip",
        "zhu-shared",
        "zhu-unequal",
        "zhu-nonlinear-output",
        "zhu-pl",
    ],
    *,
    points: runs.PointStore | None = None,
    **settings: object,
) -> DAGResult: ...
@typing.overload
def compute(
    spec: typing.Literal[
        "hu-fig1",
        "hu-fig2",
        "hu-fig3",
        "hu-fig3-cnn",
        "hu-fig4",
        "hu-fig4-fashion",
        "hu-fig4-cifar",
        "hu-fig4-cnn",
        "hu-fig4-cifar-cnn",
        "hu-fig5",
        "hu-theorem32",
        "hu-theorem35",
        "hu-claim31",
        "hu-theorem-c2",
        "hu-prop41",
        "hu-deep-kernel",
        "hu-departure",
    ],
    *,
    points: runs.PointStore | None = None,
    **settings: object,
) -> EarlyTimeResult: ...
@typing.overload
def compute(
    spec: typing.Literal[
        "catapult-map", "catapult-anew", "catapult-run", "catapult-one-sample", "edge-of-stability"
    ],
    *,
    points: runs.PointStore | None = None,
    **settings: object,
) -> LearningRateResult: ...
@typing.overload
def compute(
    spec: typing.Literal[
        "horizon", "horizon-cross-entropy", "horizon-rate", "horizon-weight-decay"
    ],
    *,
    points: runs.PointStore | None = None,
    **settings: object,
) -> HorizonResult: ...
@typing.overload
def compute(
    spec: typing.Literal[
        "price-of-linearity", "no-price-on-digits", "learning-curves", "after-kernel"
    ],
    *,
    points: runs.PointStore | None = None,
    **settings: object,
) -> GeneralizationResult: ...
@typing.overload
def compute(
    spec: typing.Literal["adding-networks", "adding-curves", "adding-adapters", "adding-many"],
    *,
    points: runs.PointStore | None = None,
    **settings: object,
) -> AddingResult: ...
@typing.overload
def compute(
    spec: typing.Literal["point-worth", "point-worth-swish", "point-worth-width"],
    *,
    points: runs.PointStore | None = None,
    **settings: object,
) -> AttributionResult: ...
@typing.overload
def compute(
    spec: runs.SpecOf[_Result] | Preset[runs.SpecOf[_Result]],
    *,
    points: runs.PointStore | None = None,
    **settings: object,
) -> _Result: ...
@typing.overload
def compute(
    spec: ExperimentSpec | Preset[ExperimentSpec] | _Settings | str,
    *,
    points: runs.PointStore | None = None,
    **settings: object,
) -> ResultValue: ...
