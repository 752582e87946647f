from ._compute import compute as compute
from ._compute import preset as preset
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
from .architectures.point import ArchitecturesResult as ArchitecturesResult
from .architectures.point import ArchitecturesSpec as ArchitecturesSpec
from .dag.point import DAGResult as DAGResult
from .dag.point import DAGSpec as DAGSpec
from .depth_width.point import DepthWidthResult as DepthWidthResult
from .depth_width.point import DepthWidthSpec as DepthWidthSpec
from .dynamics.point import DynamicsResult as DynamicsResult
from .dynamics.point import DynamicsSpec as DynamicsSpec
from .early_time.point import EarlyTimeResult as EarlyTimeResult
from .early_time.spec import EarlyTimeSpec as EarlyTimeSpec
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

EXPERIMENTS: tuple[str, ...]
KEPT: tuple[str, ...]
__all__: list[str]
