from . import data as data
from . import experiments as experiments
from .data import load_dataset as load_dataset
from .experiments import compute as compute
from .runs import Preset as Preset
from .runs import estimate as estimate
from .runs import presets as presets
from .runs import run as run
from .runs import run_to_end as run_to_end
from .settings.grammar import InvalidSpec as InvalidSpec

__version__: str
__all__: list[str]
