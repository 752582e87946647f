"""``compute`` and ``preset``, typed for every experiment."""

from collections.abc import Iterator, Mapping
from typing import Literal, overload

from linearity_lab.experiments.architectures.point import ArchitecturesResult, ArchitecturesSpec
from linearity_lab.experiments.dag.point import DAGResult, DAGSpec
from linearity_lab.experiments.depth_width.point import DepthWidthResult, DepthWidthSpec
from linearity_lab.experiments.dynamics.point import DynamicsResult, DynamicsSpec
from linearity_lab.experiments.early_time.point import EarlyTimeResult
from linearity_lab.experiments.early_time.spec import EarlyTimeSpec
from linearity_lab.experiments.generalization.point import GeneralizationResult, GeneralizationSpec
from linearity_lab.experiments.hessian.point import HessianResult
from linearity_lab.experiments.hessian.spec import HessianSpec
from linearity_lab.experiments.horizon.point import HorizonResult, HorizonSpec
from linearity_lab.experiments.kernel_change.point import KernelChangeResult
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.experiments.lazy.point import LazyResult, LazySpec
from linearity_lab.experiments.learning_rate.point import LearningRateResult, LearningRateSpec
from linearity_lab.experiments.optimization.point import OptimizationResult, OptimizationSpec
from linearity_lab.runs import Points, Preset, ResultValue, Spec, run, spec_from
from linearity_lab.runs import preset as _preset
from linearity_lab.runs.events import Ended
from linearity_lab.settings.grammar import with_settings
from linearity_lab.shown import with_terminal_bar
from ntk_core.errors import RunFailed

# Preset names by experiment, for type checkers; other names give the base class of results.
KernelChangePreset = Literal[
    "liu-fig1-left",
    "liu-fig1-right",
    "liu-fig1-wide",
    "liu-fig2",
    "liu-resnet",
    "liu-cnn",
    "liu-mixed",
    "kernel-velocity",
    "why-one-over-m",
    "kernel-convergence",
]
ArchitecturesPreset = Literal[
    "bottleneck",
    "kernel-convergence-pair",
    "convolution",
    "transformer-width",
    "adapter-rank-change",
    "adapter-width-change",
]
HessianPreset = Literal[
    "liu-table1",
    "liu-shallow",
    "liu-theorem31",
    "liu-theorem41",
    "liu-ball",
    "liu-nonlinear-output",
    "zhu-vector-output",
    "relu-and-tanh",
    "liu-parameterization",
    "attention-heads",
    "attention-head-dim",
    "attention-length",
    "adapter-rank",
    "adapter-width",
    "assembly",
]
DynamicsPreset = Literal[
    "liu-true-and-linearized", "curves-in-one-dimension", "beyond-gradient-descent"
]
OptimizationPreset = Literal["liu-section5",]
LazyPreset = Literal["richness-dial", "richness-deep", "richness-anew", "liu-lazy", "liu-distance"]
DepthWidthPreset = Literal["depth-width",]
DAGPreset = Literal[
    "zhu-fig2",
    "zhu-preactivations",
    "zhu-bottleneck-neurons",
    "zhu-skip",
    "zhu-shared",
    "zhu-unequal",
    "zhu-nonlinear-output",
    "zhu-pl",
]
EarlyTimePreset = Literal[
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
    "hu-prop41",
    "hu-departure",
]
LearningRatePreset = Literal["catapult-map", "catapult-anew", "catapult-run", "catapult-one-sample"]
HorizonPreset = Literal["horizon", "horizon-cross-entropy", "horizon-rate", "horizon-weight-decay"]
GeneralizationPreset = Literal[
    "price-of-linearity", "no-price-on-digits", "learning-curves", "after-kernel"
]


@overload
def preset(name: KernelChangePreset) -> Preset[KernelChangeSpec]: ...
@overload
def preset(name: ArchitecturesPreset) -> Preset[ArchitecturesSpec]: ...
@overload
def preset(name: HessianPreset) -> Preset[HessianSpec]: ...
@overload
def preset(name: DynamicsPreset) -> Preset[DynamicsSpec]: ...
@overload
def preset(name: OptimizationPreset) -> Preset[OptimizationSpec]: ...
@overload
def preset(name: LazyPreset) -> Preset[LazySpec]: ...
@overload
def preset(name: DepthWidthPreset) -> Preset[DepthWidthSpec]: ...
@overload
def preset(name: DAGPreset) -> Preset[DAGSpec]: ...
@overload
def preset(name: EarlyTimePreset) -> Preset[EarlyTimeSpec]: ...
@overload
def preset(name: LearningRatePreset) -> Preset[LearningRateSpec]: ...
@overload
def preset(name: HorizonPreset) -> Preset[HorizonSpec]: ...
@overload
def preset(name: GeneralizationPreset) -> Preset[GeneralizationSpec]: ...
@overload
def preset(name: str) -> Preset[Spec]: ...
def preset(name: str) -> Preset[Spec]:
    """Return a preset by its name.

    Name → preset of a paper's figure: claim, source and specs.

    >>> preset("liu-fig1-left").spec.experiment
    'kernel_change'

    Args:
        name: such as ``liu-fig1-left``; ``presets()`` lists all.

    Returns:
        The preset.

    Raises:
        InvalidInput: for an unknown name.

    Source: our choice; each :class:`Preset` names that of its figure.
    """
    return _preset(name, "name")


KernelChange = KernelChangeSpec | Preset[KernelChangeSpec] | KernelChangePreset
Architectures = ArchitecturesSpec | Preset[ArchitecturesSpec] | ArchitecturesPreset
Hessian = HessianSpec | Preset[HessianSpec] | HessianPreset
Dynamics = DynamicsSpec | Preset[DynamicsSpec] | DynamicsPreset
Optimization = OptimizationSpec | Preset[OptimizationSpec] | OptimizationPreset
Lazy = LazySpec | Preset[LazySpec] | LazyPreset
DepthWidth = DepthWidthSpec | Preset[DepthWidthSpec] | DepthWidthPreset
DAG = DAGSpec | Preset[DAGSpec] | DAGPreset
EarlyTime = EarlyTimeSpec | Preset[EarlyTimeSpec] | EarlyTimePreset
LearningRate = LearningRateSpec | Preset[LearningRateSpec] | LearningRatePreset
Horizon = HorizonSpec | Preset[HorizonSpec] | HorizonPreset
Generalization = GeneralizationSpec | Preset[GeneralizationSpec] | GeneralizationPreset


@overload
def compute(
    spec: KernelChange, *, points: Points | None = None, **settings: object
) -> KernelChangeResult: ...
@overload
def compute(
    spec: Architectures, *, points: Points | None = None, **settings: object
) -> ArchitecturesResult: ...
@overload
def compute(
    spec: Hessian, *, points: Points | None = None, **settings: object
) -> HessianResult: ...
@overload
def compute(
    spec: Dynamics, *, points: Points | None = None, **settings: object
) -> DynamicsResult: ...
@overload
def compute(
    spec: Optimization, *, points: Points | None = None, **settings: object
) -> OptimizationResult: ...
@overload
def compute(spec: Lazy, *, points: Points | None = None, **settings: object) -> LazyResult: ...
@overload
def compute(
    spec: DepthWidth, *, points: Points | None = None, **settings: object
) -> DepthWidthResult: ...
@overload
def compute(spec: DAG, *, points: Points | None = None, **settings: object) -> DAGResult: ...
@overload
def compute(
    spec: EarlyTime, *, points: Points | None = None, **settings: object
) -> EarlyTimeResult: ...
@overload
def compute(
    spec: LearningRate, *, points: Points | None = None, **settings: object
) -> LearningRateResult: ...
@overload
def compute(
    spec: Horizon, *, points: Points | None = None, **settings: object
) -> HorizonResult: ...
@overload
def compute(
    spec: Generalization, *, points: Points | None = None, **settings: object
) -> GeneralizationResult: ...
@overload
def compute(
    spec: Spec | Preset[Spec] | Mapping[str, object] | str,
    *,
    points: Points | None = None,
    **settings: object,
) -> ResultValue: ...
def compute(
    spec: Spec | Preset[Spec] | Mapping[str, object] | str,
    *,
    points: Points | None = None,
    **settings: object,
) -> ResultValue:
    """Compute a spec or preset and return its result.

    Spec or preset, settings → result, with a progress bar on a terminal or in a notebook.

    >>> result = compute("liu-fig1-left", widths=(4, 8), num_seeds=1, training={"max_steps": 5})
    >>> [point.width for point in result.points]
    [4, 8]

    Args:
        spec: a spec such as ``KernelChangeSpec()``, a preset or its name, or a mapping parsed from JSON.
        points: store of finished points, see ``run``.
        settings: values to replace in the spec; a group as a mapping, ``training={"learning_rate": 0.5}``.

    Returns:
        The result of the experiment, such as ``KernelChangeResult``.

    Raises:
        InvalidSpec: for an unknown setting or a value that is not allowed.
        RunFailed: when a point fails; its ``result`` has the finished points.
        InvalidInput, TooLarge: as ``run``.

    Source: our choice, docs/decisions/0001-specs-and-events.md.
    """
    changed = with_settings(spec_from(spec), dict(_dotted(settings)))
    ended = Ended(status="failed", reason="no result")
    for event in with_terminal_bar(run(changed, points=points)):
        if isinstance(event, Ended):
            ended = event
    if ended.result is None or ended.status != "completed":
        raise RunFailed(ended.reason, ended.result)
    return ended.result


def _dotted(settings: Mapping[str, object], outer: str = "") -> Iterator[tuple[str, object]]:
    """Yield nested settings by dotted names: ``{"training": {"max_steps": 5}}`` as ``training.max_steps``."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _dotted(value, f"{outer}{name}.")
        else:
            yield f"{outer}{name}", value
